//! How pages write numbers, times and links.

use std::fmt::Write as _;
use std::time::Duration;

use dq::time::Timestamp;
use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stays as it is in a part of a URL.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as a part of a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    // `.` and `..` would be resolved by browsers, even encoded; no topic is named so, and ids stand in queries.
    utf8_percent_encode(text, KEPT).to_string()
}

/// A path with a query.
pub(crate) fn link(path: &str, query: &[(&str, &str)]) -> String {
    let mut link = path.to_owned();
    for (n, (name, value)) in query.iter().filter(|(_, value)| !value.is_empty()).enumerate() {
        let sign = if n == 0 { '?' } else { '&' };
        let _ = write!(link, "{sign}{name}={}", encoded(value));
    }
    link
}

/// A number in groups of three digits.
pub(crate) fn number(n: usize) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `n` of something, in the singular or the plural.
pub(crate) fn jobs(n: usize) -> String {
    format!("{} {}", number(n), if n == 1 { "job" } else { "jobs" })
}

/// A duration with its two largest units.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let Some(first) = units.iter().position(|(unit, _)| seconds >= *unit) else {
        return format!("{} ms", time.as_millis());
    };
    let (unit, name) = units[first];
    let mut text = format!("{} {name}", seconds / unit);
    if let Some((next, name)) = units.get(first + 1)
        && seconds % unit / next > 0
    {
        let _ = write!(text, " {} {name}", seconds % unit / next);
    }
    text
}

/// A moment, and how far it is from `now`.
pub(crate) fn moment(at: Timestamp, now: Timestamp) -> Markup {
    let away =
        if at >= now { format!("in {}", duration(at.since(now))) } else { format!("{} ago", duration(now.since(at))) };
    html! { time datetime=(at) { (plain(at)) " " span.quiet { "(" (away) ")" } } }
}

/// A moment without its distance.
pub(crate) fn plain(at: Timestamp) -> String {
    let text = at.to_string();
    let second = text.get(..19).unwrap_or(&text);
    format!("{} UTC", second.replacen('T', " ", 1))
}

/// The time of day, or the day.
pub(crate) fn clock(at: Timestamp) -> String {
    at.to_string().get(11..16).unwrap_or_default().to_owned()
}

pub(crate) fn day(at: Timestamp) -> String {
    at.to_string().get(5..10).unwrap_or_default().to_owned()
}

/// Now, by this machine.
pub(crate) fn now() -> Timestamp {
    std::time::SystemTime::now().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_durations_and_links_read_well() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        let spans = [0, 59, 60, 3_661, 90_000].map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(spans, ["0 ms", "59 s", "1 m", "1 h 1 m", "1 d 1 h"]);
        assert_eq!(link("/a", &[("id", "ü/\"<&"), ("none", "")]), "/a?id=%C3%BC%2F%22%3C%26");
    }
}
