//! Rules of the protocol that a simulation takes away, to see that it would notice. Elsewhere all hold.
//!
//! Without the feature `testing` the question is a constant, and nothing of it is left in the program.

/// Whether this rule of PROTOCOL.md is taken away.
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
        /// The rule that simulations of this thread go without; 0: all hold.
        static AWAY: Cell<u8> = const { Cell::new(0) };
    }

    /// Whether this rule of PROTOCOL.md is taken away.
    pub fn without(rule: u8) -> bool {
        AWAY.get() == rule
    }

    /// Takes a rule away on this thread, or none.
    pub fn take_away(rule: Option<u8>) {
        AWAY.set(rule.unwrap_or_default());
    }
}
