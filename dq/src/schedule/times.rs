//! When a schedule has its ticks.

use std::time::Duration;

#[cfg(feature = "cron")]
use dq_grammar::Cron;
use serde::{Deserialize, Serialize};

use crate::time::{Timestamp, in_millis, millis_ceil};

/// The ticks of a schedule, without its start and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Times {
    /// A tick after each interval. The ticks are multiples of the interval since the start of the schedule, or since the Unix
    /// epoch if it has none: so all nodes have the same ticks, whenever they start.
    Every(#[serde(with = "in_millis")] Duration),
    /// The times of a cron line in a zone.
    #[cfg(feature = "cron")]
    Cron(#[serde(with = "in_words")] Cron),
}

/// A cron line as its words: the line, the zone, and the letters of its policies.
#[cfg(feature = "cron")]
mod in_words {
    use dq_grammar::Cron;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    #[derive(Serialize, Deserialize)]
    struct Words {
        line: String,
        zone: String,
        skipped: char,
        repeated: char,
    }

    pub(super) fn serialize<S: Serializer>(cron: &Cron, to: S) -> Result<S::Ok, S::Error> {
        let ((skipped, repeated), line, zone) = (cron.policies(), cron.line().into(), cron.zone().into());
        Words { line, zone, skipped: skipped.letter(), repeated: repeated.letter() }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Cron, D::Error> {
        let Words { line, zone, skipped, repeated } = Words::deserialize(from)?;
        Cron::with_letters(&line, &zone, skipped, repeated).map_err(de::Error::custom)
    }
}

/// Why the words of a cron line are no times here; `None` if they are.
pub(super) fn why_unread(words: &serde_json::Value) -> Option<String> {
    if cfg!(feature = "cron") {
        return Times::deserialize(serde_json::json!({ "cron": words })).err().map(|bad| bad.to_string());
    }
    let line = words.get("line")?.as_str()?;
    Some(format!("it has the cron line `{line}`, and this program was built without the feature `cron`"))
}

/// The ticks of a schedule between its start and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticks {
    /// When the ticks are.
    pub times: Times,
    /// No tick is before it.
    pub start: Option<Timestamp>,
    /// No tick is after it.
    pub end: Option<Timestamp>,
}

impl Ticks {
    /// The first tick later than `after`; `None` if there is none.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = match self.start {
            Some(start) if after < start => Timestamp::from_millis(start.as_millis().checked_sub(1)?),
            _ => after,
        };
        let next = match &self.times {
            Times::Every(interval) => self.next_multiple(millis_ceil(*interval).max(1), after)?,
            #[cfg(feature = "cron")]
            Times::Cron(cron) => Timestamp::from_millis(cron.next_after(after.as_millis())?),
        };
        self.end.is_none_or(|end| next <= end).then_some(next)
    }

    fn next_multiple(&self, interval: u64, after: Timestamp) -> Option<Timestamp> {
        let anchor = self.start.unwrap_or_default().as_millis();
        let Some(since) = after.as_millis().checked_sub(anchor) else { return Some(Timestamp::from_millis(anchor)) };
        let count = since / interval + 1;
        anchor.checked_add(count.checked_mul(interval)?).map(Timestamp::from_millis)
    }

    /// The last tick after `after` and up to `now`; `None` if there is none. It halves the time in which that tick may be, so it asks for
    /// few ticks, however often they are, however long ago `after` is, and whenever the schedule has ended.
    pub fn last_between(&self, after: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let next = |from| self.next_after(from).filter(|tick| *tick <= now);
        // There is no tick after `none` and up to `now`.
        let (mut last, mut none) = (next(after)?, now);
        while last < none {
            let middle = Timestamp::from_millis(last.as_millis().midpoint(none.as_millis()));
            match next(middle) {
                Some(tick) => last = tick,
                None => none = middle,
            }
        }
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn every(interval: Duration, start: Option<Timestamp>, end: Option<Timestamp>) -> Ticks {
        Ticks { times: Times::Every(interval), start, end }
    }

    #[test]
    fn an_interval_counts_from_the_epoch_or_from_the_start() {
        let ticks = every(Duration::from_secs(30), None, None);
        assert_eq!(ticks.next_after(at(0)), Some(at(30_000)));
        assert_eq!(ticks.next_after(at(29_999)), Some(at(30_000)));
        assert_eq!(ticks.next_after(at(30_000)), Some(at(60_000)));
        let ticks = every(Duration::from_secs(30), Some(at(1_234)), None);
        assert_eq!(ticks.next_after(at(0)), Some(at(1_234)), "the start is a tick");
        assert_eq!(ticks.next_after(at(1_234)), Some(at(31_234)));
        assert_eq!(every(Duration::from_secs(1), Some(at(0)), None).next_after(at(0)), Some(at(1_000)));
    }

    #[test]
    fn no_tick_is_after_the_end() {
        let ticks = every(Duration::from_secs(10), None, Some(at(20_000)));
        assert_eq!(ticks.next_after(at(10_000)), Some(at(20_000)));
        assert_eq!(ticks.next_after(at(20_000)), None);
    }

    #[test]
    fn the_last_of_very_many_ticks_is_found_without_walking_over_them() {
        let year = Duration::from_secs(365 * 24 * 3600);
        let ticks = every(Duration::from_millis(250), None, None);
        let now = at(0).after(year);
        assert_eq!(ticks.last_between(at(0), now), Some(now));
        let rare = every(Duration::from_secs(24 * 3600), None, None);
        assert_eq!(rare.last_between(at(0), at(3 * 86_400_000 + 5)), Some(at(3 * 86_400_000)));
        assert_eq!(rare.last_between(at(3 * 86_400_000), at(3 * 86_400_000 + 5)), None);
        let ended = every(Duration::from_millis(1), None, Some(at(7)));
        assert_eq!(ended.last_between(at(0), at(1 << 47)), Some(at(7)));
    }

    /// Whatever the ticks are, the last one is that of a walk over all of them.
    #[test]
    fn the_last_tick_is_that_of_a_walk() {
        for (interval, start, end) in
            [(1, None, None), (7, Some(at(3)), None), (5, None, Some(at(31))), (90, None, None)]
        {
            let ticks = every(Duration::from_millis(interval), start, end);
            for (after, now) in (0..50).flat_map(|after| (0..50).map(move |now| (at(after), at(now)))) {
                let walk = std::iter::successors(ticks.next_after(after), |tick| ticks.next_after(*tick));
                let last = walk.take_while(|tick| *tick <= now).last();
                assert_eq!(ticks.last_between(after, now), last, "{interval} {after:?} {now:?}");
            }
        }
    }

    #[cfg(feature = "cron")]
    #[test]
    fn a_cron_line_ticks_between_start_and_end() {
        let cron = Cron::parse("0 9 * * *", "UTC").unwrap();
        let hours = |hours: u64| at(hours * 3_600_000);
        let ticks = Ticks { times: Times::Cron(cron), start: Some(hours(24 + 10)), end: Some(hours(72)) };
        assert_eq!(ticks.next_after(at(0)), Some(hours(48 + 9)));
        assert_eq!(ticks.next_after(hours(48 + 9)), None);
        assert_eq!(ticks.last_between(at(0), hours(72)), Some(hours(48 + 9)));
    }
}
