//! How far a run has come, as its handler says.

use std::fmt;

use serde::Serialize;

use super::limits::cut;

/// The longest text, in bytes.
const MAX_TEXT: usize = 200;

/// How far a run has come: [`Channel::progress`](crate::Channel::progress). It goes with the end of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Progress {
    /// How much is done.
    pub done: u64,
    /// Of how much; 0: nobody knows.
    pub total: u64,
    /// What the handler says about it, at most 200 bytes.
    pub text: String,
}

impl Progress {
    /// A progress with this text, cut at a character and without control characters.
    pub(crate) fn new(done: u64, total: u64, text: &str) -> Self {
        let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
        Self { done, total, text: cut(text, MAX_TEXT).chars().map(plain).collect() }
    }

    /// The progress as a store keeps it: `DONE/TOTAL TEXT`.
    #[doc(hidden)]
    pub fn written(&self) -> String {
        format!("{}/{} {}", self.done, self.total, self.text)
    }

    /// Reads what [`written`](Self::written) writes; `None` if another program wrote it.
    #[doc(hidden)]
    pub fn read(written: &str) -> Option<Self> {
        let (numbers, text) = written.split_once(' ')?;
        let (done, total) = numbers.split_once('/')?;
        Some(Self::new(done.parse().ok()?, total.parse().ok()?, text))
    }
}

/// `30 of 120 (25 %): importing`.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.done)?;
        if self.total > 0 {
            let percent = u128::from(self.done) * 100 / u128::from(self.total);
            write!(f, " of {} ({percent} %)", self.total)?;
        }
        if self.text.is_empty() { Ok(()) } else { write!(f, ": {}", self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_reads_back_and_reads_well() {
        for (done, total, text) in [(30, 120, "importing a b\\c"), (0, 0, ""), (u64::MAX, u64::MAX, "é")] {
            let progress = Progress::new(done, total, text);
            assert_eq!(Progress::read(&progress.written()), Some(progress));
        }
        assert_eq!(Progress::new(30, 120, "importing").to_string(), "30 of 120 (25 %): importing");
        assert_eq!(Progress::new(3, 0, "").to_string(), "3");
        assert_eq!([Progress::read("3"), Progress::read("3/x y"), Progress::read("")], [None, None, None]);
    }

    #[test]
    fn a_text_is_cut_at_a_character_and_has_no_control_characters() {
        let progress = Progress::new(1, 2, &format!("a\tb\n{}", "é".repeat(200)));
        assert_eq!((progress.text.len(), &progress.text[..4]), (200, "a b "));
    }
}
