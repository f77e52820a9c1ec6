//! Durations in the form that people write.

use std::time::Duration;

/// The longest delay of a job: ten years of 365 days.
pub const LONGEST_DELAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a duration: write a number and a unit, such as \"500ms\", \"30s\", \"15m\", \"1h 30m\" or \"2d\""
)]
pub struct BadDuration {
    /// The text, cut after 100 characters.
    pub text: String,
}

/// Reads a duration, such as `"500ms"`, `"30s"`, `"15m"`, `"1h 30m"` or `"2d"`.
///
/// # Errors
/// [`BadDuration`] when the number or the unit is missing, or the unit is unknown.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    humantime::parse_duration(text.trim()).map_err(|_| BadDuration { text: text.chars().take(100).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_numbers_with_units_and_an_error_keeps_the_text() {
        assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration(" 500ms"), Ok(Duration::from_millis(500)));
        for bad in ["5x", "", "15", "-1s"] {
            assert_eq!(parse_duration(bad), Err(BadDuration { text: bad.into() }), "{bad}");
        }
    }
}
