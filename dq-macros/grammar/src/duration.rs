//! Durations in the form that people write.

use std::time::Duration;

use crate::InvalidValue;

/// The longest delay of a job: ten years of 365 days.
pub const MAX_DELAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The shortest and the longest time for which an id can stay taken.
pub const MIN_UNIQUE: Duration = Duration::from_secs(1);
/// See [`MIN_UNIQUE`].
pub const MAX_UNIQUE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The shortest interval of a schedule.
pub const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Reads a duration, such as `"500ms"`, `"30s"`, `"15m"`, `"1h 30m"` or `"2d"`.
///
/// # Errors
/// [`InvalidValue`] when the number or the unit is missing, or the unit is unknown.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidValue> {
    humantime::parse_duration(text.trim()).map_err(|_| {
        let text: String = text.chars().take(100).collect();
        InvalidValue::new(format!(
            "`{text}` is not a duration: write a number and a unit, such as \"500ms\", \"30s\", \"15m\", \"1h 30m\" or \"2d\""
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_numbers_with_units_and_an_error_keeps_the_text() {
        assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration(" 500ms"), Ok(Duration::from_millis(500)));
        for bad in ["5x", "", "15", "-1s"] {
            let error = parse_duration(bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{bad}` is not a duration: write")), "{error}");
        }
    }
}
