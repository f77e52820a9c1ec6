//! Retry policies: when a failed job runs again, and when no attempt is left.
//!
//! | text | meaning |
//! |---|---|
//! | `none` | no retry |
//! | `immediate x 3` | three retries, each at once; `immediate` alone means five |
//! | `30s x 5` | five retries, each after 30 s |
//! | `1m, 5m, 10m, 30m, 1h` | a ladder: one retry after each step; `30s` alone is a ladder of one step |
//! | `exponential 10s x 5, factor 3, max 1h, jitter 10%` | retries after 10 s, 30 s, 90 s …; the parts after the first comma are optional, and without `max` it is 1 h or the first delay, the longer of the two |

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use humantime::format_duration;

use crate::InvalidValue;
use crate::duration::{MAX_DELAY, parse_duration};

/// The limit of retries.
const MAX_RETRIES: u32 = 1_000;
/// The retries of `immediate` and `exponential 10s` without a number.
const DEFAULT_RETRIES: u32 = 5;
/// The longest delay of a policy that says none, unless its first delay is longer.
const DEFAULT_LONGEST: Duration = Duration::from_secs(3600);
/// The limit of steps of a ladder.
const MAX_STEPS: usize = 64;

/// When a failed job runs again. `N` retries mean at most `N + 1` runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryPolicy {
    /// No retry: the first failure exhausts the job.
    None,
    /// Each retry at once.
    Immediate {
        /// The number of retries.
        times: u32,
    },
    /// Each retry after the same delay.
    Fixed {
        /// The delay.
        delay: Duration,
        /// The number of retries.
        times: u32,
    },
    /// A retry after each step, in order.
    Ladder(Vec<Duration>),
    /// Each delay is the previous one times `factor`, but at most `longest`, then up to `jitter` percent more or less.
    Exponential {
        /// The first delay.
        first: Duration,
        /// The number of retries.
        times: u32,
        /// The factor from one delay to the next.
        factor: u32,
        /// The longest delay, before jitter.
        longest: Duration,
        /// The jitter in percent, 0 to 100.
        jitter: u32,
    },
}

impl Default for RetryPolicy {
    /// Five retries: the first after 10 s, each next delay three times as long, at most 1 h, ± 10 %.
    fn default() -> Self {
        Self::exponential(Duration::from_secs(10), DEFAULT_RETRIES)
    }
}

impl RetryPolicy {
    fn exponential(first: Duration, times: u32) -> Self {
        Self::Exponential { first, times, factor: 3, longest: first.max(DEFAULT_LONGEST), jitter: 10 }
    }

    /// Reads the policy of a job that a store has: an older version of dq may have added it, with delays that are refused today.
    #[doc(hidden)]
    pub fn stored(text: &str) -> Option<Self> {
        read(text.trim()).ok()
    }

    /// Checks that every delay is what the policy says, and at most ten years.
    ///
    /// # Errors
    /// [`InvalidValue`]: what is wrong, and what to write.
    pub fn check(&self) -> Result<(), InvalidValue> {
        if let Self::Exponential { first, longest, .. } = self
            && longest < first
        {
            let (first, longest) = (format_duration(*first), format_duration(*longest));
            return Err(InvalidValue::new(format!(
                "`max {longest}` is shorter than the first delay, which is {first}: write `max {first}` or more"
            )));
        }
        match self.longest_delay() {
            Some(delay) if delay > MAX_DELAY => Err(InvalidValue::new(
                "a delay of the policy is longer than ten years, with its jitter: write 3650d at most".to_string(),
            )),
            _ => Ok(()),
        }
    }

    /// The largest number of retries.
    pub fn retries(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Immediate { times } | Self::Fixed { times, .. } | Self::Exponential { times, .. } => *times,
            Self::Ladder(steps) => u32::try_from(steps.len()).unwrap_or(u32::MAX),
        }
    }

    /// The longest delay before any retry, with the most jitter; `None` if there is no retry.
    pub fn longest_delay(&self) -> Option<Duration> {
        let most_jitter = match self {
            Self::Exponential { jitter, .. } => u64::from(*jitter) * 2 * 1000,
            _ => 0,
        };
        (1..=self.retries()).filter_map(|retry| self.delay(retry, most_jitter)).max()
    }

    /// The delay before retry number `retry`, from 1; `None` if no attempt is left. `random` decides the jitter.
    pub fn delay(&self, retry: u32, random: u64) -> Option<Duration> {
        if retry == 0 || retry > self.retries() {
            return None;
        }
        match self {
            Self::None => None,
            Self::Immediate { .. } => Some(Duration::ZERO),
            Self::Fixed { delay, .. } => Some(*delay),
            Self::Ladder(steps) => steps.get(retry as usize - 1).copied(),
            Self::Exponential { first, factor, longest, jitter, .. } => {
                let times = factor.checked_pow(retry - 1).unwrap_or(u32::MAX);
                let delay = first.saturating_mul(times).min(*longest);
                let spread = u64::from(*jitter) * 2 * 1000 + 1; // in parts of 100,000
                let parts = 100_000 + random % spread - u64::from(*jitter) * 1000;
                let nanos = delay.as_nanos().saturating_mul(u128::from(parts)) / 100_000;
                Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
            }
        }
    }
}

fn times(text: &str) -> Result<u32, InvalidValue> {
    match text.trim().parse() {
        Ok(number @ 1..=MAX_RETRIES) => Ok(number),
        _ => Err(InvalidValue::new(format!("`{}` is not a number of retries: write 1 to {MAX_RETRIES}", text.trim()))),
    }
}

/// Splits `10s x 5` into the text before the `x` and the number.
fn split_times(text: &str) -> Result<(&str, Option<u32>), InvalidValue> {
    match text.rsplit_once(" x ") {
        Some((before, number)) => Ok((before.trim(), Some(times(number)?))),
        None => Ok((text.trim(), None)),
    }
}

fn duration(what: &str, text: &str) -> Result<Duration, InvalidValue> {
    parse_duration(text.trim()).map_err(|bad| InvalidValue::new(format!("{what}: {bad}")))
}

fn parse_exponential(text: &str) -> Result<RetryPolicy, InvalidValue> {
    let mut parts = text.split(',');
    let (first, number) = split_times(parts.next().unwrap_or_default())?;
    let mut policy = RetryPolicy::exponential(duration("first delay", first)?, number.unwrap_or(DEFAULT_RETRIES));
    let RetryPolicy::Exponential { factor, longest, jitter, .. } = &mut policy else {
        return Ok(policy);
    };
    for part in parts.map(str::trim) {
        let (word, value) = part.split_once(' ').unwrap_or((part, ""));
        let wrong = |allowed: &str| InvalidValue::new(format!("`{part}`: `{word}` takes {allowed}"));
        match word {
            "factor" => {
                *factor = value.parse().ok().filter(|f| (1..=100).contains(f)).ok_or_else(|| wrong("1 to 100"))?;
            }
            "max" => *longest = duration("max", value)?,
            "jitter" => {
                let number = value.strip_suffix('%').and_then(|percent| percent.trim().parse().ok());
                *jitter = number.filter(|&j: &u32| j <= 100).ok_or_else(|| wrong("0% to 100%"))?;
            }
            _ => {
                return Err(InvalidValue::new(format!(
                    "`{part}` is unknown: write `factor 3`, `max 1h` or `jitter 10%`"
                )));
            }
        }
    }
    Ok(policy)
}

fn parse_ladder(text: &str) -> Result<RetryPolicy, InvalidValue> {
    let steps: Vec<_> = text.split(',').map(str::trim).collect();
    if steps.len() > MAX_STEPS {
        return Err(InvalidValue::new(format!("the ladder has {} steps; the limit is {MAX_STEPS}", steps.len())));
    }
    let step = |(i, text): (usize, &&str)| duration(&format!("step {} of the ladder", i + 1), text);
    steps.iter().enumerate().map(step).collect::<Result<_, _>>().map(RetryPolicy::Ladder)
}

fn unknown(text: &str) -> InvalidValue {
    let text: String = text.chars().take(100).collect();
    InvalidValue::new(format!(
        "`{text}` is not a retry policy: write `none`, `immediate x 3`, `30s x 5`, `1m, 5m, 10m` or `exponential 10s x 5`"
    ))
}

/// Reads a policy, whatever its delays are.
fn read(text: &str) -> Result<RetryPolicy, InvalidValue> {
    if text.is_empty() {
        return Err(InvalidValue::new("the retry policy is empty: write `none` for no retry"));
    }
    if text == "none" {
        return Ok(RetryPolicy::None);
    }
    if let Some(rest) = text.strip_prefix("exponential ") {
        return parse_exponential(rest);
    }
    if text.contains(',') {
        return parse_ladder(text);
    }
    Ok(match split_times(text)? {
        ("immediate", number) => RetryPolicy::Immediate { times: number.unwrap_or(DEFAULT_RETRIES) },
        (delay, Some(times)) => RetryPolicy::Fixed { delay: duration("delay", delay)?, times },
        (delay, None) => RetryPolicy::Ladder(vec![parse_duration(delay).map_err(|_| unknown(delay))?]),
    })
}

impl FromStr for RetryPolicy {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let policy = read(text.trim())?;
        policy.check()?;
        Ok(policy)
    }
}

impl fmt::Display for RetryPolicy {
    /// A text that parses to this policy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Immediate { times } => write!(f, "immediate x {times}"),
            Self::Fixed { delay, times } => write!(f, "{} x {times}", format_duration(*delay)),
            Self::Ladder(steps) => {
                for (i, step) in steps.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { ", " }, format_duration(*step))?;
                }
                Ok(())
            }
            Self::Exponential { first, times, factor, longest, jitter } => {
                let (first, longest) = (format_duration(*first), format_duration(*longest));
                write!(f, "exponential {first} x {times}, factor {factor}, max {longest}, jitter {jitter}%")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn parsed(text: &str) -> RetryPolicy {
        text.parse().unwrap_or_else(|bad| panic!("{text}: {bad}"))
    }

    #[test]
    fn the_text_of_a_policy_parses_to_the_same_policy() {
        let texts = [
            "none",
            "immediate",
            "immediate x 3",
            "30s x 5",
            "1m, 5m, 10m",
            "30s",
            "exponential 2s x 7, factor 2, max 5m, jitter 0%",
        ];
        for policy in texts.map(parsed).into_iter().chain([RetryPolicy::default()]) {
            assert_eq!(parsed(&policy.to_string()), policy);
        }
        assert_eq!(parsed("exponential 10s"), RetryPolicy::default());
    }

    #[test]
    fn a_policy_has_one_delay_per_retry_and_then_no_more() {
        let ladder = parsed("1m, 5m");
        assert_eq!(ladder.delay(1, 0), Some(60 * SECOND));
        assert_eq!(ladder.delay(2, 0), Some(300 * SECOND));
        assert_eq!(ladder.delay(3, 0), None);
        assert_eq!(parsed("none").delay(1, 0), None);
        assert_eq!(parsed("immediate x 2").delay(2, 9), Some(Duration::ZERO));
    }

    #[test]
    fn exponential_delays_grow_to_the_longest_and_jitter_stays_within_its_percentage() {
        let policy = RetryPolicy::default();
        for (retry, seconds) in [(1, 10), (2, 30), (3, 90), (4, 270), (5, 810)] {
            for random in [0, 7_777, 20_000, u64::MAX] {
                let delay = policy.delay(retry, random).unwrap();
                assert!(
                    delay >= SECOND * seconds * 9 / 10 && delay <= SECOND * seconds * 11 / 10,
                    "{retry}: {delay:?}"
                );
            }
        }
        assert_eq!(parsed("exponential 1s x 40, factor 10, jitter 0%").delay(40, 0), Some(3600 * SECOND));
    }

    #[test]
    fn the_usual_maximum_does_not_shorten_a_first_delay() {
        let policy = parsed("exponential 6h x 3, jitter 0%");
        assert_eq!([1, 2, 3].map(|retry| policy.delay(retry, 0)), [Some(6 * 3600 * SECOND); 3]);
        assert_eq!(parsed("exponential 6h x 3").longest_delay(), Some(6 * 3600 * SECOND * 11 / 10));
        assert_eq!(parsed("exponential 30m x 3, jitter 0%").delay(2, 0), Some(3600 * SECOND));
        assert_eq!(parsed("exponential 6h x 3, factor 2, max 1d, jitter 0%").delay(3, 0), Some(24 * 3600 * SECOND));
    }

    #[test]
    fn a_stated_maximum_below_the_first_delay_and_a_delay_of_more_than_ten_years_are_refused() {
        let bad = |text: &str| text.parse::<RetryPolicy>().expect_err(text).to_string();
        for text in ["exponential 6h x 3, max 1h", "exponential 6h, max 1h, factor 1"] {
            assert_eq!(bad(text), "`max 1h` is shorter than the first delay, which is 6h: write `max 6h` or more");
        }
        assert!("exponential 6h x 3, max 6h".parse::<RetryPolicy>().is_ok());
        for text in [
            "3651d",
            "3651d x 2",
            "1m, 3651d",
            "exponential 3651d x 1, jitter 0%",
            "exponential 3650d x 1",
            "exponential 1d x 9, factor 100, max 3651d, jitter 0%",
            "exponential 600y x 1",
            "exponential 500000000000y x 1, jitter 100%",
        ] {
            assert!(bad(text).contains("is longer than ten years"), "{text}: {}", bad(text));
        }
        for text in ["3650d", "1m, 3650d", "exponential 3650d x 1, jitter 0%", "exponential 1s x 2, max 20y"] {
            parsed(text);
        }
    }

    #[test]
    fn the_policy_of_a_job_of_an_older_version_is_still_read() {
        let stored = |text| RetryPolicy::stored(text).unwrap().delay(1, 1_000_000_000);
        assert!(stored("exponential 6h x 3, factor 3, max 1h, jitter 10%") < Some(2 * 3600 * SECOND));
        assert_eq!(stored("3651d x 2"), Some(3651 * 24 * 3600 * SECOND));
        assert_eq!(RetryPolicy::stored("often"), None);
    }

    #[test]
    fn the_longest_delay_has_all_of_the_jitter() {
        assert_eq!(parsed("exponential 10s x 2, factor 3, jitter 10%").longest_delay(), Some(33 * SECOND));
        assert_eq!(parsed("exponential 1h x 9, max 2h, jitter 100%").longest_delay(), Some(4 * 3600 * SECOND));
        assert_eq!(parsed("1m, 5m, 2m").longest_delay(), Some(300 * SECOND));
        assert_eq!(parsed("none").longest_delay(), None);
    }

    #[test]
    fn the_error_of_a_bad_policy_says_which_part_is_wrong() {
        let bad = |text: &str| text.parse::<RetryPolicy>().unwrap_err().to_string();
        assert!(bad("1m, 5x").starts_with("step 2 of the ladder: `5x` is not a duration: write a number and a unit"));
        assert!(bad("30s x 0").contains("write 1 to 1000"));
        assert!(bad("exponential 1s, foo 3").contains("write `factor 3`, `max 1h` or `jitter 10%`"));
        assert!(bad("").contains("`none`"));
        assert!(bad("fixed 5s").starts_with("`fixed 5s` is not a retry policy: write `none`,"));
    }
}
