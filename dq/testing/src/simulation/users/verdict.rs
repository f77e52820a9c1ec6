//! What the check and the work of a simulation may return.

use std::fmt::Display;

/// The result of a check or of the work: `()` if the code asserts, or a `Result` whose error says what is wrong.
///
/// ```
/// use dq_testing::Verdict;
///
/// assert_eq!(().verdict(), Ok(()));
/// assert_eq!(Err::<(), _>("order 7 was charged twice").verdict(), Err("order 7 was charged twice".to_owned()));
/// ```
pub trait Verdict {
    /// Converts the result.
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
