//! Times and durations on the command line.

use std::time::{Duration, SystemTime};

use dq::job::InvalidValue;
use dq::time::{Delay, Timestamp};

/// The longest duration of the library: ten years.
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);

/// Reads a duration such as `15m`.
///
/// # Errors
/// What is wrong with it.
pub fn duration(text: &str) -> Result<Duration, String> {
    let time = Delay::parse(text).duration().map_err(|bad| bad.to_string())?;
    if time > LONGEST { Err("the limit is ten years (3650d)".into()) } else { Ok(time) }
}

/// Reads a time: `now`, `+15m` or `-2h` from now by the clock of this machine, or what a [`Timestamp`] is read
/// from, such as `2026-11-23T03:00:00Z`.
///
/// # Errors
/// What is wrong with it.
pub fn time(text: &str) -> Result<Timestamp, String> {
    let now = Timestamp::from(SystemTime::now());
    if text == "now" {
        return Ok(now);
    }
    if let Some(ahead) = text.strip_prefix('+') {
        return duration(ahead).map(|ahead| now.after(ahead));
    }
    if let Some(ago) = text.strip_prefix('-') {
        let earlier = |ago| SystemTime::now().checked_sub(ago).map(Timestamp::from);
        return duration(ago).and_then(|ago| earlier(ago).ok_or_else(|| "it is before 1970".into()));
    }
    text.parse().map_err(|bad: InvalidValue| format!("{bad}; or write `now`, `+15m` or `-2h`"))
}

/// A duration as people read it: its two largest units.
pub fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds == 0 && !time.is_zero() => format!("{}ms", time.as_millis().max(1)),
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes:02}m"),
        _ => format!("{days}d {hours:02}h"),
    }
}

/// A time as people read it: in UTC, and how far it is from now.
pub fn beside(at: Timestamp, now: Timestamp) -> String {
    let text = whole_seconds(at);
    match (at.since(now), now.since(at)) {
        (ahead, _) if !ahead.is_zero() => format!("{text} (in {})", short(ahead)),
        (_, ago) if !ago.is_zero() => format!("{text} ({} ago)", short(ago)),
        _ => format!("{text} (now)"),
    }
}

/// A time in UTC without its milliseconds.
pub fn whole_seconds(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('.').map_or(text.clone(), |(whole, _)| format!("{whole}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_or_have_a_zone() {
        assert_eq!(time("2026-11-23T03:00:00Z"), Ok(Timestamp::from_millis(1_795_402_800_000)));
        assert_eq!(time("2026-11-23T05:00:00+02:00"), time("2026-11-23T03:00:00Z"));
        assert!(time("-2h").unwrap() < time("now").unwrap());
        assert!(time("+2h").unwrap() > time("now").unwrap());
        assert_eq!(time("1795402800000"), time("2026-11-23T03:00:00Z"));
        for bad in
            ["tomorrow", "2026-11-23T03:00:00", "+2", "1960-01-01T00:00:00Z", "1795402800", "2026-11-23T03:00:00Zjunk"]
        {
            assert!(time(bad).is_err(), "{bad}");
        }
        let error = time("2026-11-23T03:00:00").unwrap_err();
        assert!(error.contains("has no offset from UTC: write") && error.contains("`+15m`"), "{error}");
    }

    #[test]
    fn durations_have_two_units() {
        let texts = [(0, "0s"), (7, "7s"), (125, "2m 05s"), (3_700, "1h 01m"), (200_000, "2d 07h")];
        for (seconds, text) in texts {
            assert_eq!(short(Duration::from_secs(seconds)), text);
        }
        assert_eq!(short(Duration::from_millis(3)), "3ms");
        let at = Timestamp::from_millis(1_795_402_800_123);
        assert_eq!(beside(at, at.after(Duration::from_secs(61))), "2026-11-23T03:00:00Z (1m 01s ago)");
    }
}
