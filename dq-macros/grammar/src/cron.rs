//! Cron lines in a time zone: when they fire, also where the clock of the zone skips or repeats an hour.
//!
//! A line names local times. The clock of most zones skips an hour of them in spring and shows an hour twice in autumn, so a
//! local time may exist never or twice. [`SkippedTime`] and [`RepeatedTime`] say what happens then. What a line does by default
//! depends on whether it fires in every hour:
//!
//! | line | skipped local time | repeated local time |
//! |---|---|---|
//! | fires in every hour, such as `*/15 * * * *` | does not fire: time itself goes on | fires both times |
//! | names hours, such as `30 2 * * *` or `0 */2 * * *` | fires once, when the clock has skipped | fires the first time |
//!
//! dq reads the fields, so that all of a line is understood or the line is refused; croner finds the local times, and jiff knows the zones.

use std::fmt;
use std::sync::Arc;

use croner::Cron as Line;
use croner::errors::CronError;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

mod fields;
mod zones;

#[cfg(test)]
mod tests;

/// A day longer than the clock of any zone has ever skipped, in seconds.
const MORE_THAN_ANY_SHIFT: i64 = 2 * 24 * 3600;
/// More transitions than a zone has between two local times of a line; a leap day on a given weekday comes every 40 years.
const MAX_TRANSITIONS: usize = 1_000;
/// The most bytes of a line: a list of every second of a minute, minute of an hour and so on has fewer.
const MAX_LINE: usize = 1_000;

/// A cron line and the zone of its local times.
#[derive(Clone)]
pub struct Cron {
    line: Arc<Line>,
    text: String,
    zone: TimeZone,
    zone_name: String,
    skipped: SkippedTime,
    repeated: RepeatedTime,
}

/// What a line does at a local time that the clock of its zone skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SkippedTime {
    /// It fires once, at the moment at which the clock has skipped: 02:30 becomes 03:00. The default of a line that names hours.
    Later,
    /// It does not fire on that day. The default of a line that fires in every hour.
    Never,
}

/// What a line does at a local time that the clock of its zone shows twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RepeatedTime {
    /// It fires the first time. The default of a line that names hours.
    First,
    /// It fires the second time.
    Second,
    /// It fires both times. The default of a line that fires in every hour.
    Both,
}

/// The error of a text that is no cron line, or not the name of a zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCron {
    /// The text is not a cron line.
    #[error(
        "`{line}` is not a cron line: {reason}; write `minute hour day month weekday`, for example `0 9 * * MON-FRI`"
    )]
    Line {
        /// The text.
        line: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No day is such a day.
    #[error("the cron line `{line}` never fires: no date matches it")]
    Never {
        /// The line.
        line: String,
    },
    /// No zone has this name.
    #[error("the time zone `{zone}` does not exist{}; write a name of the IANA database, for example `Asia/Singapore` or `UTC`", proposed(.proposals))]
    Zone {
        /// The text.
        zone: String,
        /// Names that are close to it.
        proposals: Vec<String>,
    },
}

fn proposed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        _ => {
            format!(", did you mean {}?", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or "))
        }
    }
}

impl SkippedTime {
    /// The policy as a letter.
    pub const fn letter(self) -> char {
        match self {
            Self::Later => 'l',
            Self::Never => 'n',
        }
    }

    /// The policy of this letter.
    pub fn of_letter(letter: char) -> Option<Self> {
        [Self::Later, Self::Never].into_iter().find(|policy| policy.letter() == letter)
    }
}

impl RepeatedTime {
    /// The policy as a letter.
    pub const fn letter(self) -> char {
        match self {
            Self::First => 'f',
            Self::Second => 's',
            Self::Both => 'b',
        }
    }

    /// The policy of this letter.
    pub fn of_letter(letter: char) -> Option<Self> {
        [Self::First, Self::Second, Self::Both].into_iter().find(|policy| policy.letter() == letter)
    }
}

impl Cron {
    /// Reads a line, the name of a zone and the letters of the policies.
    ///
    /// # Errors
    /// A text: what is wrong.
    pub fn with_letters(line: &str, zone: &str, skipped: char, repeated: char) -> Result<Self, String> {
        let cron = Self::parse(line, zone).map_err(|bad| bad.to_string())?;
        let skipped = SkippedTime::of_letter(skipped).ok_or("its policy for skipped times is unknown")?;
        let repeated = RepeatedTime::of_letter(repeated).ok_or("its policy for repeated times is unknown")?;
        Ok(cron.at_skipped_times(skipped).at_repeated_times(repeated))
    }

    /// Reads a line and the name of a zone. A line has five fields (minute, hour, day of the month, month, weekday), or six with
    /// seconds before them, or is a short form such as `@daily`. If it names both a day of the month and a weekday, it fires on either; if one of
    /// the two begins with `*`, or the weekday with `+`, on days that are both.
    ///
    /// # Errors
    /// [`InvalidCron`], also if no date matches the line.
    pub fn parse(line: &str, zone: &str) -> Result<Self, InvalidCron> {
        let text = line.trim();
        let bad = |reason: String| {
            let line = text.chars().take(140).flat_map(char::escape_debug).collect();
            InvalidCron::Line { line, reason }
        };
        if text.len() > MAX_LINE {
            return Err(bad(format!("it is {} bytes long; the limit is {MAX_LINE}", text.len())));
        }
        let fields::Fields { numbers, in_every_hour } = fields::read(text).map_err(bad)?;
        let parsed: Line = numbers.parse().map_err(|error: CronError| bad(error.to_string()))?;
        let (skipped, repeated) = match in_every_hour {
            true => (SkippedTime::Never, RepeatedTime::Both),
            false => (SkippedTime::Later, RepeatedTime::First),
        };
        let zone_name = zone.trim().to_owned();
        let zone = zones::named(&zone_name)?;
        let cron = Self { line: Arc::new(parsed), text: text.into(), zone, zone_name, skipped, repeated };
        match cron.line.find_next_occurrence(&DateTime::constant(2000, 1, 1, 0, 0, 0, 0), true) {
            Ok(_) => Ok(cron),
            Err(_) => Err(InvalidCron::Never { line: cron.text }),
        }
    }

    /// Sets what happens at local times that the clock skips.
    #[must_use]
    pub fn at_skipped_times(self, skipped: SkippedTime) -> Self {
        Self { skipped, ..self }
    }

    /// Sets what happens at local times that the clock shows twice.
    #[must_use]
    pub fn at_repeated_times(self, repeated: RepeatedTime) -> Self {
        Self { repeated, ..self }
    }

    /// What happens at local times that the clock skips, and at those that it shows twice.
    pub const fn policies(&self) -> (SkippedTime, RepeatedTime) {
        (self.skipped, self.repeated)
    }

    /// The line, as it was written.
    pub fn line(&self) -> &str {
        &self.text
    }

    /// The name of the zone, as it was written.
    pub fn zone(&self) -> &str {
        &self.zone_name
    }

    /// When the line fires next after `after`; both are milliseconds since the Unix epoch. `None` if it never does again before the
    /// year 5000.
    pub fn next_after(&self, after: u64) -> Option<u64> {
        let mut from = Timestamp::from_second(i64::try_from(after / 1000).ok()?).ok()?;
        let mut is_included = false;
        for _ in 0..MAX_TRANSITIONS {
            let period = Period::of(&self.zone, from);
            match self.next_within(&period, from, is_included)? {
                Next::At(at) => return u64::try_from(at.as_millisecond()).ok(),
                Next::From(later) => (from, is_included) = (later, true),
            }
        }
        None
    }

    /// The next time in one period between two transitions of the zone, or where to go on.
    fn next_within(&self, period: &Period, from: Timestamp, is_included: bool) -> Option<Next> {
        let mut local = period.offset.to_datetime(from);
        let mut is_included = is_included;
        loop {
            let found = self.line.find_next_occurrence(&local, is_included).ok()?;
            let at = period.offset.to_timestamp(found).ok()?;
            match period.end {
                Some(end) if at >= end => return Some(self.beyond(period, end, found, at)),
                _ if self.fires(period, found) => return Some(Next::At(at)),
                _ => (local, is_included) = (found, false),
            }
        }
    }

    /// The line fires next at the local time `found`, which is behind the end of the period; by the offset of the period that is `at`.
    fn beyond(&self, period: &Period, end: Timestamp, found: DateTime, at: Timestamp) -> Next {
        let is_skipped = found < period.offset_behind.to_datetime(end);
        if is_skipped && self.skipped == SkippedTime::Later {
            return Next::At(end);
        }
        // Where the clock goes back, it shows times again before which the search has already been.
        let goes_back = period.offset_behind < period.offset;
        let near = Timestamp::from_second(at.as_second() - MORE_THAN_ANY_SHIFT).unwrap_or(end);
        Next::From(if goes_back { end } else { end.max(near) })
    }

    /// Whether the line fires at this local time of the period, which the period before or behind it may have as well.
    fn fires(&self, period: &Period, local: DateTime) -> bool {
        let is_second = period.start.is_some_and(|start| local < period.offset_before.to_datetime(start));
        let is_first = period.end.is_some_and(|end| local >= period.offset_behind.to_datetime(end));
        match self.repeated {
            RepeatedTime::First => !is_second,
            RepeatedTime::Second => !is_first,
            RepeatedTime::Both => true,
        }
    }
}

/// Where a search ends or goes on.
enum Next {
    At(Timestamp),
    From(Timestamp),
}

/// The time between two transitions of a zone, in which its clock goes on steadily.
struct Period {
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    offset_before: Offset,
    offset: Offset,
    offset_behind: Offset,
}

impl Period {
    fn of(zone: &TimeZone, at: Timestamp) -> Self {
        let offset = zone.to_offset(at);
        // A transition at this very moment begins the period.
        let start = at
            .checked_add(jiff::SignedDuration::from_nanos(1))
            .ok()
            .and_then(|just_after| zone.preceding(just_after).next().map(|transition| transition.timestamp()));
        let end = zone.following(at).next().map(|transition| transition.timestamp());
        let just_before = |at: Timestamp| at.checked_sub(jiff::SignedDuration::from_nanos(1)).unwrap_or(at);
        Self {
            start,
            end,
            offset_before: start.map_or(offset, |start| zone.to_offset(just_before(start))),
            offset,
            offset_behind: end.map_or(offset, |end| zone.to_offset(end)),
        }
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        let parts = |cron: &Self| (cron.text.clone(), cron.zone_name.clone(), cron.skipped, cron.repeated);
        parts(self) == parts(other)
    }
}

impl Eq for Cron {}

/// Shows the line and the zone, for example `0 9 * * MON-FRI, Asia/Singapore`.
impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.text, self.zone_name)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cron")
            .field("line", &self.text)
            .field("zone", &self.zone_name)
            .field("skipped", &self.skipped)
            .field("repeated", &self.repeated)
            .finish()
    }
}
