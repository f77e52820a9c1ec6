//! Which rule of the protocol a simulation takes away, to see that its checker notices.
//!
//! Nodes and stores know nothing of this. Wrappers at their seams take the rules away: the link ([`altered`](super::altered)),
//! the producer, the store's clock and the settings of the nodes. `docs/internals/simulation.md` lists the wrappers.

use std::cell::Cell;

thread_local! {
    /// The rule that the run of this thread goes without; empty: all hold.
    static AWAY: Cell<&'static str> = const { Cell::new("") };
}

/// Returns whether the run of this thread goes without this rule.
pub(super) fn without(rule: &str) -> bool {
    AWAY.get() == rule
}

/// Returns whether the run of this thread goes without any rule.
pub(super) fn is_any_away() -> bool {
    !AWAY.get().is_empty()
}

/// Takes a rule away on this thread until this is dropped; `None` takes none away.
#[derive(Debug)]
pub(super) struct RuleAway;

impl RuleAway {
    pub(super) fn take(rule: Option<&'static str>) -> Self {
        AWAY.set(rule.unwrap_or_default());
        Self
    }
}

impl Drop for RuleAway {
    fn drop(&mut self) {
        AWAY.set("");
    }
}
