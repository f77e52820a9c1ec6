//! Rules of the protocol that a simulation switches off, to prove that it notices. In a program every rule is on.
//!
//! Without the feature `testing` the answer is a constant, so the check costs nothing.

/// Returns whether this rule is switched off.
#[cfg(not(feature = "testing"))]
pub(crate) const fn without(_rule: u8) -> bool {
    false
}

#[cfg(feature = "testing")]
pub use switched::{take_away, without};

#[cfg(feature = "testing")]
mod switched {
    use std::cell::Cell;

    thread_local! {
        /// The rule that is switched off for simulations on this thread; 0 if every rule is on.
        static AWAY: Cell<u8> = const { Cell::new(0) };
    }

    /// Returns whether this rule is switched off.
    pub fn without(rule: u8) -> bool {
        AWAY.get() == rule
    }

    /// Switches this rule off on this thread, and every other rule on.
    pub fn take_away(rule: Option<u8>) {
        AWAY.set(rule.unwrap_or_default());
    }
}
