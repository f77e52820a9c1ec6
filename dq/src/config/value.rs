//! The types of settings: how dq reads their values, and how it shows them.

use std::time::Duration;

use dq_grammar::parse_duration;

use crate::job::RetryPolicy;
use crate::listener::{AckMode, OnBlocked, OnTimeout};
use crate::store::{Durability, Rate, masked_url};

/// A value in a config file or in an environment variable, where every value is a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written<'a> {
    Text(&'a str),
    Number(i64),
    Flag(bool),
    /// A value that no setting can have, by its name: "a table".
    Other(&'a str),
}

impl Written<'_> {
    /// The value, for messages.
    pub(crate) fn shown(self) -> String {
        match self {
            // A URL in a wrong place may have a password.
            Self::Text(url) if url.contains("://") => masked_url(url),
            Self::Text(text) => text.chars().take(100).flat_map(char::escape_debug).collect(),
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Other(kind) => kind.into(),
        }
    }
}

/// A type of settings.
pub(crate) trait Value: Clone + Send + Sync + 'static {
    /// Reads a value. The error is the text for the message.
    fn read(written: Written<'_>) -> Result<Self, String>;

    /// The text from which [`read`](Self::read) makes this value.
    fn show(&self) -> String;

    /// The value as a config file writes it: numbers and flags without quotes.
    fn quoted(&self) -> String {
        let shown = self.show();
        let is_bare = shown.parse::<u64>().is_ok() || shown.parse::<bool>().is_ok();
        if is_bare { shown } else { format!("\"{shown}\"") }
    }
}

fn refused<T>(written: Written<'_>, expected: &str) -> Result<T, String> {
    Err(format!("`{}` is not {expected}", written.shown()))
}

/// Shows `duration` in the largest units up to days, so that [`parse_duration`] reads it back.
pub(crate) fn show_duration(duration: Duration) -> String {
    const DAY: u64 = 24 * 3600;
    let days = duration.as_secs() / DAY;
    let rest = duration - Duration::from_secs(days * DAY);
    match (days, rest.is_zero()) {
        (0, _) => humantime::format_duration(rest).to_string(),
        (_, true) => format!("{days}d"),
        (_, false) => format!("{days}d {}", humantime::format_duration(rest)),
    }
}

impl Value for Duration {
    fn read(written: Written<'_>) -> Result<Self, String> {
        match written {
            Written::Text(text) => parse_duration(text).map_err(|bad| bad.to_string()),
            other => parse_duration(&other.shown()).map_err(|bad| bad.to_string()),
        }
    }

    fn show(&self) -> String {
        show_duration(*self)
    }
}

/// A duration; `"none"` or zero means no limit.
impl Value for Option<Duration> {
    fn read(written: Written<'_>) -> Result<Self, String> {
        if matches!(written, Written::Text("none" | "0") | Written::Number(0)) {
            return Ok(None);
        }
        let limit = Duration::read(written).map_err(|bad| format!("{bad}; or write \"none\" for no limit"))?;
        Ok(Some(limit).filter(|limit| !limit.is_zero()))
    }

    fn show(&self) -> String {
        self.map_or_else(|| "none".into(), show_duration)
    }
}

macro_rules! number {
    ($($number:ty),+) => { $(
        impl Value for $number {
            fn read(written: Written<'_>) -> Result<Self, String> {
                let read = match written {
                    Written::Text(text) => text.trim().parse().ok(),
                    Written::Number(number) => Self::try_from(number).ok(),
                    Written::Flag(_) | Written::Other(_) => None,
                };
                read.map_or_else(|| refused(written, "a whole number such as 64"), Ok)
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+ };
}
number!(u32, usize);

macro_rules! limit {
    ($($limit:ty),+) => { $(
        /// A limit; `"none"` means that there is none.
        impl Value for Option<$limit> {
            fn read(written: Written<'_>) -> Result<Self, String> {
                if written == Written::Text("none") {
                    return Ok(None);
                }
                <$limit>::read(written).map(Some).map_err(|bad| format!("{bad}, or \"none\" for no limit"))
            }

            fn show(&self) -> String {
                self.as_ref().map_or_else(|| "none".into(), Value::show)
            }
        }
    )+ };
}
limit!(usize, Rate);

impl Value for bool {
    fn read(written: Written<'_>) -> Result<Self, String> {
        match written {
            Written::Flag(flag) => Ok(flag),
            Written::Text("true") => Ok(true),
            Written::Text("false") => Ok(false),
            other => refused(other, "true or false"),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Values that have a text of their own.
macro_rules! of_text {
    ($($value:ty: $expected:literal),+) => { $(
        impl Value for $value {
            fn read(written: Written<'_>) -> Result<Self, String> {
                match written {
                    Written::Text(text) => text.parse::<$value>().map_err(|bad| bad.to_string()),
                    other => refused(other, $expected),
                }
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+ };
}
of_text!(
    RetryPolicy: "a retry policy such as \"none\", \"1m, 5m, 1h\" or \"exponential 10s x 5\"",
    Rate: "a rate such as \"100/s\" or \"1000/h, burst 50\"",
    OnBlocked: "what blocks a group, such as \"retry: pass\" or \"dead: wait, park: wait\""
);

/// What a durability may be, for the text that reports a bad one.
const DURABILITIES: &str = "\"local\", \"sync\" (`file:` only), \"interval:TIME\" such as \"interval:50ms\" (`file:` only), or \"wait(REPLICAS, TIME)\" such as \
                            \"wait(1, 500ms)\" (Redis only)";

impl Value for Durability {
    fn read(written: Written<'_>) -> Result<Self, String> {
        let of_text = |text: &str| {
            match text {
                "local" => return Some(Self::Local),
                "sync" => return Some(Self::Sync),
                _ => {}
            }
            if let Some(interval) = text.strip_prefix("interval:") {
                return parse_duration(interval.trim()).ok().map(Self::Interval);
            }
            let (replicas, timeout) = text.strip_prefix("wait(")?.strip_suffix(')')?.split_once(',')?;
            let (replicas, timeout) = (replicas.trim().parse().ok()?, parse_duration(timeout.trim()).ok()?);
            Some(Self::Wait { replicas, timeout })
        };
        let durability = match written {
            Written::Text(text) => of_text(text),
            _ => None,
        };
        durability.map_or_else(|| refused(written, DURABILITIES), Ok)
    }

    fn show(&self) -> String {
        match self {
            Self::Local => "local".into(),
            Self::Sync => "sync".into(),
            Self::Interval(interval) => format!("interval:{}", show_duration(*interval)),
            Self::Wait { replicas, timeout } => format!("wait({replicas}, {})", show_duration(*timeout)),
        }
    }
}

macro_rules! choice {
    ($choice:ty: $($variant:ident = $name:literal),+; $expected:literal) => {
        impl Value for $choice {
            fn read(written: Written<'_>) -> Result<Self, String> {
                match written {
                    $(Written::Text($name) => Ok(Self::$variant),)+
                    other => refused(other, $expected),
                }
            }

            fn show(&self) -> String {
                match self { $(Self::$variant => $name,)+ }.into()
            }
        }
    };
}
choice!(OnTimeout: Retry = "retry", Immediate = "immediate"; "\"retry\" or \"immediate\"");
choice!(AckMode: OnReturn = "on_return", OnClaim = "on_claim"; "\"on_return\" or \"on_claim\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_back_and_is_never_shown_in_months() {
        for text in ["0s", "500ms", "1h 30m", "30d", "3650d", "1d 2h"] {
            let duration = Duration::read(Written::Text(text)).unwrap();
            assert_eq!(duration.show(), text);
        }
    }

    #[test]
    fn no_limit_is_none_or_zero() {
        for none in [Written::Text("none"), Written::Text("0"), Written::Text("0s"), Written::Number(0)] {
            assert_eq!(Option::<Duration>::read(none), Ok(None), "{none:?}");
        }
        assert_eq!(Option::<Duration>::read(Written::Text("5s")), Ok(Some(Duration::from_secs(5))));
    }

    #[test]
    fn a_limit_is_a_number_or_none() {
        for (written, limit) in
            [(Written::Text("none"), None), (Written::Text("8"), Some(8)), (Written::Number(8), Some(8))]
        {
            assert_eq!(Option::<usize>::read(written), Ok(limit));
        }
        assert_eq!((None::<usize>.quoted(), Some(8_usize).quoted()), ("\"none\"".into(), "8".into()));
        let bad = Option::<usize>::read(Written::Text("few")).unwrap_err();
        assert_eq!(bad, "`few` is not a whole number such as 64, or \"none\" for no limit");
    }

    #[test]
    fn a_durability_reads_back_and_other_texts_are_rejected_with_the_right_form() {
        for text in ["local", "sync", "interval:50ms", "wait(1, 500ms)", "wait(2, 1s)"] {
            assert_eq!(Durability::read(Written::Text(text)).unwrap().show(), text);
        }
        for text in [
            "wait",
            "wait(1)",
            "wait(one, 1s)",
            "wait(1, 500)",
            "synced",
            "wait(-1, 1s)",
            "",
            "interval",
            "interval:50",
        ] {
            let bad = Durability::read(Written::Text(text)).unwrap_err();
            assert_eq!(bad, format!("`{text}` is not {DURABILITIES}"));
        }
        assert!(Durability::read(Written::Flag(true)).is_err());
    }

    #[test]
    fn a_wrong_value_is_shown_with_what_is_expected() {
        assert_eq!(u32::read(Written::Number(-1)), Err("`-1` is not a whole number such as 64".into()));
        assert_eq!(bool::read(Written::Text("yes")), Err("`yes` is not true or false".into()));
        assert_eq!(AckMode::read(Written::Text("no")), Err("`no` is not \"on_return\" or \"on_claim\"".into()));
        let unitless = Duration::read(Written::Number(30)).unwrap_err();
        assert!(unitless.starts_with("`30` is not a duration: write a number and a unit"), "{unitless}");
    }
}
