//! The state of a topic as a whole: whether it is paused, drains, or has a default delay.

use super::now::Now;
use crate::store::{Due, SetTopic, TopicSet, TopicState};
use crate::time::Timestamp;

/// The state of the topic as a whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    known: TopicState,
    /// Whether a journal wants to know of changes, and whether there is one; never between steps.
    is_logged: bool,
    is_touched: bool,
}

impl Settings {
    pub(super) const fn get(&self) -> &TopicState {
        &self.known
    }

    pub(super) const fn set_logged(&mut self, is_logged: bool) {
        self.is_logged = is_logged;
    }

    /// The state, if the step has changed it.
    pub(super) fn take_touched(&mut self) -> Option<&TopicState> {
        std::mem::take(&mut self.is_touched).then_some(&self.known)
    }

    /// Puts what a journal says.
    pub(super) const fn restore(&mut self) -> &mut TopicState {
        &mut self.known
    }

    /// Changes the state. `until` says when what is given as a delay ends.
    pub(super) fn change(&mut self, now: Now, set: SetTopic, until: impl Fn(Due) -> Timestamp) -> TopicSet {
        self.is_touched = self.is_logged;
        self.known.set(now.floor(), set, until)
    }
}
