//! What a check, or the work of a simulation, may return.

use std::fmt::Display;

/// Nothing is wrong, or what is: `()` for code that asserts, or a `Result` whose error says what is wrong.
pub trait Verdict {
    /// What is wrong.
    ///
    /// # Errors
    /// What is wrong, as text.
    fn verdict(self) -> Result<(), String>;
}

impl Verdict for () {
    fn verdict(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Display> Verdict for Result<(), E> {
    fn verdict(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())
    }
}
