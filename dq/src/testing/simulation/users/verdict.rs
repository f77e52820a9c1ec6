//! What a check, or the work of a simulation, may return.

use std::any::Any;
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

/// What a panic said.
pub(super) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no message)").into()
}
