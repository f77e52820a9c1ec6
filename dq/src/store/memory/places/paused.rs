//! The paused groups (rules 4 and 29). No claim takes a job of one, whether the job has a seat or not: a claim that meets one blocks it, as in a
//! full group, and the end of the pause lets it come again.

use smol_str::SmolStr;

use super::super::kept::{Item, Kept, Touches};
use super::Jobs;
use crate::store::Pause;
use crate::time::Timestamp;

impl Item<SmolStr> for Pause {
    fn end(&self) -> Option<Timestamp> {
        self.until
    }

    fn bytes(&self, _: &SmolStr) -> u64 {
        0
    }
}

/// The paused groups.
pub(crate) type PausedGroups = Kept<SmolStr, Pause>;

impl Jobs {
    /// The pause of the group, even one that has ended.
    pub(crate) fn pause_of_group(&self, name: &SmolStr) -> Option<&Pause> {
        self.groups.paused.get(name)
    }

    /// Gives the group this pause, or none.
    pub(crate) fn set_pause_of_group(&mut self, name: &SmolStr, pause: Option<Pause>) {
        let continues = pause.is_none();
        self.groups.paused.put(name, pause);
        if continues {
            self.open_group(name, self.groups.now());
        }
    }

    /// The groups continue whose pauses have ended by now, each at the end of its pause.
    pub(crate) fn end_pauses(&mut self, clock: Timestamp) {
        while let Some((end, name)) = self.groups.paused.first_end().filter(|(end, _)| *end <= clock).cloned() {
            self.groups.paused.put(&name, None);
            self.open_group(&name, end.as_millis().saturating_mul(1_000));
        }
    }

    /// When the next pause of a group ends, or the next rate of one opens for which a job waits.
    pub(crate) fn next_opening(&self) -> Option<Timestamp> {
        let end = self.groups.paused.first_end().map(|(end, _)| *end);
        end.into_iter().chain(self.groups.rates.next_opening()).min()
    }

    /// The paused groups, even those whose pauses have ended.
    pub(crate) const fn paused_groups(&self) -> &PausedGroups {
        &self.groups.paused
    }

    /// The groups whose pauses the step has changed.
    pub(crate) const fn touched_pauses(&mut self) -> &mut Touches<SmolStr> {
        &mut self.groups.paused.touched
    }
}
