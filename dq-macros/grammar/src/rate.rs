//! Rates: how many jobs of a topic all nodes together may claim within a period.
//!
//! | text | meaning |
//! |---|---|
//! | `100/s` | 100 jobs a second, one each 10 ms |
//! | `1000/h`, `5/m`, `50/d` | the same for an hour, a minute, a day |
//! | `10/250ms` | any period from 1 ms to a day |
//! | `100/s, burst 20` | after a quiet time up to 21 at once, and never more than 120 in a second |

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use humantime::format_duration;

use crate::InvalidValue;
use crate::duration::parse_duration;
use crate::settings::{DAY, HOUR, MINUTE, MS, SECOND};

/// The most jobs of a period.
const MAX_JOBS: u32 = 1_000_000;
/// The largest burst.
const MAX_BURST: u32 = 10_000;

/// How many jobs of a topic all nodes together may claim within a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    jobs: u32,
    period: Duration,
    burst: u32,
}

impl Rate {
    /// So many jobs, 1 to 1,000,000, in a period of 1 ms to a day, in whole milliseconds; `burst`, 0 to 10,000, is how many more there may be in one.
    pub fn new(jobs: u32, period: Duration, burst: u32) -> Result<Self, InvalidValue> {
        if !(1..=MAX_JOBS).contains(&jobs) {
            return Err(InvalidValue::new(format!("{jobs} jobs: a rate is 1 to {MAX_JOBS} jobs in a period")));
        }
        if !(MS..=DAY).contains(&period) || !period.subsec_nanos().is_multiple_of(1_000_000) {
            let period = format_duration(period);
            return Err(InvalidValue::new(format!(
                "{period}: the period of a rate is 1ms to 1d, in whole milliseconds"
            )));
        }
        if burst > MAX_BURST {
            return Err(InvalidValue::new(format!("burst {burst}: a burst is 0 to {MAX_BURST} jobs")));
        }
        Ok(Self { jobs, period, burst })
    }

    /// How many jobs in a period.
    pub const fn jobs(self) -> u32 {
        self.jobs
    }

    /// The period.
    pub const fn period(self) -> Duration {
        self.period
    }

    /// How many more jobs there may be in a period, after a quiet time.
    pub const fn burst(self) -> u32 {
        self.burst
    }

    /// The most jobs in any period: the number of the rate, and the burst.
    pub const fn most(self) -> u32 {
        self.jobs + self.burst
    }
}

fn period(text: &str) -> Result<Duration, InvalidValue> {
    match text {
        "ms" => Ok(MS),
        "s" => Ok(SECOND),
        "m" => Ok(MINUTE),
        "h" => Ok(HOUR),
        "d" => Ok(DAY),
        text => parse_duration(text).map_err(|bad| InvalidValue::new(format!("the period of the rate: {bad}"))),
    }
}

impl FromStr for Rate {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let form =
            || InvalidValue::new(format!("`{text}` is not a rate: write `100/s`, `1000/h` or `100/s, burst 20`"));
        let (rate, burst) = match text.split_once(',') {
            Some((rate, burst)) => (rate, Some(burst.trim().strip_prefix("burst ").ok_or_else(form)?)),
            None => (text, None),
        };
        let (jobs, per) = rate.split_once('/').ok_or_else(form)?;
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| form());
        Self::new(number(jobs)?, period(per.trim())?, burst.map_or(Ok(0), number)?)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.jobs)?;
        match self.period {
            MS => f.write_str("ms"),
            SECOND => f.write_str("s"),
            MINUTE => f.write_str("m"),
            HOUR => f.write_str("h"),
            DAY => f.write_str("d"),
            period => write!(f, "{}", format_duration(period).to_string().replace(' ', "")),
        }?;
        if self.burst > 0 {
            write!(f, ", burst {}", self.burst)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_and_written() {
        for (text, jobs, period, burst) in [
            ("100/s", 100, SECOND, 0),
            ("1/ms", 1, MS, 0),
            ("5/m", 5, MINUTE, 0),
            ("1000/h, burst 50", 1000, HOUR, 50),
            ("1000000/d", 1_000_000, DAY, 0),
            ("10/250ms, burst 10000", 10, Duration::from_millis(250), 10_000),
            ("10/1m30s", 10, Duration::from_secs(90), 0),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.jobs(), rate.period(), rate.burst()), (jobs, period, burst), "{text}");
            assert_eq!(rate.to_string(), text);
        }
        assert_eq!(" 10 / 1s ,  burst 3 ".parse::<Rate>().unwrap().to_string(), "10/s, burst 3");
    }

    #[test]
    fn other_texts_are_refused_with_what_to_write() {
        for (text, error) in [
            ("", "`` is not a rate: write `100/s`, `1000/h` or `100/s, burst 20`"),
            ("100", "`100` is not a rate: write `100/s`, `1000/h` or `100/s, burst 20`"),
            ("x/s", "`x/s` is not a rate: write `100/s`, `1000/h` or `100/s, burst 20`"),
            ("5/s, 3", "`5/s, 3` is not a rate: write `100/s`, `1000/h` or `100/s, burst 20`"),
            ("0/s", "0 jobs: a rate is 1 to 1000000 jobs in a period"),
            ("1/2d", "2days: the period of a rate is 1ms to 1d, in whole milliseconds"),
            ("1/s, burst 10001", "burst 10001: a burst is 0 to 10000 jobs"),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap_err().to_string(), error, "{text}");
        }
        assert!("1/x".parse::<Rate>().unwrap_err().to_string().starts_with("the period of the rate: "));
    }
}
