//! The fields of a cron line: all of each is understood, or the line is refused. The library gets numbers alone.

use std::fmt::{Display, Write};

use crate::duration::parse_duration;

/// A field of a line.
struct Field {
    name: &'static str,
    low: u32,
    high: u32,
    /// The names of the values from `low` on.
    names: &'static [&'static str],
    /// What it takes, in words.
    takes: &'static str,
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
/// Sunday at the end of a range.
const SUNDAY: u32 = 7;

const SECOND: Field = Field { name: "second", low: 0, high: 59, names: &[], takes: "0 to 59" };
const MINUTE: Field = Field { name: "minute", ..SECOND };
const HOUR: Field = Field { name: "hour", low: 0, high: 23, names: &[], takes: "0 to 23" };
const DAY: Field = Field { name: "day of the month", low: 1, high: 31, names: &[], takes: "1 to 31, L, LW or 15W" };
const MONTH: Field = Field { name: "month", low: 1, high: 12, names: MONTHS, takes: "1 to 12 or JAN to DEC" };
const WEEKDAY: Field = Field {
    name: "weekday",
    low: 0,
    high: 6,
    names: WEEKDAYS,
    takes: "0 to 7 or SUN to SAT, where 0 and 7 are Sunday, FRIL or MON#2",
};

/// What a line means.
#[derive(Debug)]
pub(super) struct Fields {
    /// Six fields of numbers, as croner reads them.
    pub(super) numbers: String,
    pub(super) in_every_hour: bool,
}

/// What a field means.
#[derive(Default)]
struct Set {
    /// A bit for each value.
    values: u64,
    /// `L`, `LW`, `15W`, `5L` and `1#2`.
    others: Vec<String>,
    /// Whether the text of the field begins with a star.
    has_star: bool,
}

/// Why a part of a field is refused.
type Why = String;

/// Reads a line without spaces around it.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(line: &str) -> Result<Fields, Why> {
    let line = if line.starts_with('@') { of_nickname(line)? } else { line };
    let texts = texts(line);
    if let Some((_, first)) = texts.first().filter(|(_, first)| first.contains("TZ=")) {
        return Err(format!("`{first}` does not belong to the line, because the zone has a place of its own: `tz`"));
    }
    let with_seconds = [SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY];
    let fields = match texts.len() {
        5 => &with_seconds[1..],
        6 => &with_seconds[..],
        7 => {
            return Err(
                "it has 7 fields, and there is no field for the year: `start` and `end` bound a schedule".into()
            );
        }
        1 => return Err("it has 1 field".into()),
        count => return Err(format!("it has {count} fields")),
    };
    let read = |(field, (position, text)): (&Field, &(usize, &str))| field.read(text, *position);
    let sets: Vec<Set> = fields.iter().zip(&texts).map(read).collect::<Result<_, _>>()?;
    let [.., hour, day, month, weekday] = sets.as_slice() else { return Err("it has too few fields".into()) };
    let needs_both = day.has_star || weekday.has_star || texts.last().is_some_and(|(_, text)| text.starts_with('+'));
    let (days, weekdays) = (DAY.numbers(day, needs_both), WEEKDAY.numbers(weekday, needs_both));
    let both = if needs_both && days != "*" && weekdays != "*" { "+" } else { "" };
    let mut numbers = if fields.len() == 5 { "0 ".to_owned() } else { String::new() };
    for (field, set) in fields.iter().zip(&sets[..sets.len() - 3]) {
        let _ = write!(numbers, "{} ", field.numbers(set, true));
    }
    let _ = write!(numbers, "{days} {} {both}{weekdays}", MONTH.numbers(month, true));
    Ok(Fields { numbers, in_every_hour: HOUR.is_all(hour) })
}

/// The texts of the fields, each with the position of its first character, from 1.
fn texts(line: &str) -> Vec<(usize, &str)> {
    let mut texts = Vec::new();
    let mut position = 1;
    for text in line.split(char::is_whitespace) {
        if !text.is_empty() {
            texts.push((position, text));
        }
        position += text.chars().count() + 1;
    }
    texts
}

fn of_nickname(line: &str) -> Result<&'static str, Why> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (&*word.to_ascii_lowercase(), rest) {
        ("@yearly" | "@annually", "") => Ok("0 0 1 1 *"),
        ("@monthly", "") => Ok("0 0 1 * *"),
        ("@weekly", "") => Ok("0 0 * * 0"),
        ("@daily" | "@midnight", "") => Ok("0 0 * * *"),
        ("@hourly", "") => Ok("0 * * * *"),
        ("@every", time) => {
            let time = if parse_duration(time).is_ok() { time.trim() } else { "30m" };
            Err(format!("an interval is not a line: write `every = \"{time}\"`, or `.every(\"{time}\")` in a call"))
        }
        ("@reboot", _) => Err("a schedule outlives restarts: add a job when your program starts".into()),
        _ => Err("the short forms are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly".into()),
    }
}

impl Field {
    /// Reads the text of the field, whose first character has this position in the line.
    fn read(&self, text: &str, position: usize) -> Result<Set, Why> {
        let (text, mut position) = match text.strip_prefix('+').filter(|_| self.name == WEEKDAY.name) {
            Some(rest) => (rest, position + 1),
            None => (text, position),
        };
        let mut set = Set { has_star: text.starts_with(['*', '?']), ..Set::default() };
        let is_day = self.name == DAY.name || self.name == WEEKDAY.name;
        for part in text.split(',') {
            let refused = |why: &dyn Display| {
                let part: String = part.chars().take(40).flat_map(char::escape_debug).collect();
                format!("{} `{part}` at position {position}: {why} (it takes {})", self.name, self.takes)
            };
            match part {
                "?" if is_day && text == "?" => set.values = self.all(),
                "?" => return Err(refused(&"`?` may only be all of a day of the month or of a weekday")),
                part => self.part(part, &mut set).map_err(|why| refused(&why))?,
            }
            position += part.chars().count() + 1;
        }
        let has = |other: &str| set.others.iter().any(|text| text == other);
        match has("L") && has("LW") {
            true => Err(format!("{} `{text}`: L and LW do not go together: write one of them", self.name)),
            false => Ok(set),
        }
    }

    /// Reads a part of a list.
    fn part(&self, part: &str, set: &mut Set) -> Result<(), Why> {
        if part.is_empty() {
            return Err("a part of the list is missing".into());
        }
        if let Some(other) = self.other(&part.to_ascii_uppercase())? {
            set.others.push(other);
            return Ok(());
        }
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.low, self.high),
            Some((from, to)) => self.range(self.value(from)?, to)?,
            None => match (self.value(range), step) {
                (Ok(value), None) => (value, value),
                (Ok(value), Some(step)) => {
                    return Err(format!("a step needs a range: write `{}-{}/{step}`", self.one(value), self.high));
                }
                (Err(_), Some(step)) if range.is_empty() => return Err(format!("write `*/{step}`")),
                (Err(why), _) => return Err(why),
            },
        };
        for value in (from..=to).step_by(step.unwrap_or(1)) {
            set.values |= 1 << self.one(value);
        }
        Ok(())
    }

    /// What means other days in each month: `L`, `LW`, `15W`, `FRIL`, `MON#2`. `part` has capitals.
    fn other(&self, part: &str) -> Result<Option<String>, Why> {
        if self.name == DAY.name {
            return Ok(match (part, part.strip_suffix('W')) {
                ("L" | "LW", _) => Some(part.to_owned()),
                (_, Some(day)) => Some(format!("{}W", self.value(day)?)),
                _ if part.starts_with("L-") => return Err("days before the last one are not supported".into()),
                _ => None,
            });
        }
        if self.name != WEEKDAY.name {
            return Ok(None);
        }
        let weekday = |day| self.value(day).map(|value| self.one(value));
        match (part.split_once('#'), part.strip_suffix('L')) {
            (Some((day, "L")), _) => Ok(Some(format!("{}L", weekday(day)?))),
            (Some((day, nth)), _) => match nth {
                "1" | "2" | "3" | "4" | "5" => Ok(Some(format!("{}#{nth}", weekday(day)?))),
                _ => Err("the number after `#` is 1 to 5: the second Monday is `MON#2`".into()),
            },
            (None, Some("")) => Err("`L` needs a weekday: the last Friday is `FRIL`, and Saturday is `SAT`".into()),
            (None, Some(day)) => Ok(Some(format!("{}L", weekday(day)?))),
            (None, None) => Ok(None),
        }
    }

    /// A number or a name.
    fn value(&self, text: &str) -> Result<u32, Why> {
        let named = |names: &[&str]| names.iter().position(|name| name.eq_ignore_ascii_case(text));
        if let Some(place) = named(self.names) {
            return Ok(self.low + place as u32);
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let high = if self.name == WEEKDAY.name { SUNDAY } else { self.high };
            let value: Option<u32> = text.parse().ok();
            let value = value.filter(|value| (self.low..=high).contains(value));
            return value.ok_or_else(|| "the number is out of range".into());
        }
        let long = |names: &[&'static str]| {
            let begins = |name: &&&str| text.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
            names.iter().find(begins).copied().filter(|_| text.bytes().all(|byte| byte.is_ascii_alphabetic()))
        };
        Err(match (named(MONTHS), named(WEEKDAYS), long(self.names)) {
            (Some(_), ..) => "the name of a month belongs into the fourth field of five".into(),
            (_, Some(_), _) => "the name of a weekday belongs into the last field".into(),
            (.., Some(name)) => format!("names have three letters: write `{name}`"),
            _ => "this is neither a number, a range such as 1-5, a step such as */2 nor a list of them".into(),
        })
    }

    fn step(&self, text: &str) -> Result<usize, Why> {
        let most = (self.high - self.low) as usize;
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let step: Option<usize> = text.parse().ok();
        let step = step.filter(|step| is_number && (1..=most).contains(step));
        step.ok_or_else(|| format!("the step is a number from 1 to {most}"))
    }

    /// The values from `from` to what this text says.
    fn range(&self, from: u32, text: &str) -> Result<(u32, u32), Why> {
        let to = match self.value(text)? {
            // A week may end with Sunday.
            0 if from > 0 && self.names == WEEKDAYS && text.eq_ignore_ascii_case("SUN") => SUNDAY,
            to => to,
        };
        if from <= to {
            return Ok((from, to));
        }
        let rest = match to {
            0 if self.name == WEEKDAY.name => format!("{from}-{SUNDAY}"),
            to if from > self.high => format!("{}-{to}", self.low),
            to if from == self.high => format!("{from},{}-{to}", self.low),
            to => format!("{from}-{},{}-{to}", self.high, self.low),
        };
        Err(format!("the range ends before it begins: write `{rest}`"))
    }

    /// The value within the field: a Sunday may be 7.
    const fn one(&self, value: u32) -> u32 {
        value % (self.high + 1)
    }

    fn all(&self) -> u64 {
        (self.low..=self.high).fold(0, |all, value| all | (1 << value))
    }

    fn is_all(&self, set: &Set) -> bool {
        set.values == self.all()
    }

    /// The field as croner reads it. It takes a star for "whatever the other field of days says".
    fn numbers(&self, set: &Set, may_be_star: bool) -> String {
        if may_be_star && self.is_all(set) {
            return "*".into();
        }
        let values =
            (self.low..=self.high).filter(|value| set.values & (1 << value) != 0).map(|value| value.to_string());
        values.chain(set.others.iter().cloned()).collect::<Vec<_>>().join(",")
    }
}
