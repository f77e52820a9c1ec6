//! Points in time in the form that people and programs write.

use std::time::{Duration, UNIX_EPOCH};

use humantime::format_rfc3339_seconds;

use crate::InvalidValue;

/// Numbers from here on are milliseconds; smaller ones would be before 1973, and are seconds of today.
const FEWEST_MILLIS: u64 = 100_000_000_000;
/// The end of the year 9999, the last one that RFC 3339 can write. Later numbers are micro- or nanoseconds of today.
const LAST: u64 = 253_402_300_799_999;
/// The most digits of a number of milliseconds.
const MAX_DIGITS: usize = 15;
const HOW_TO_WRITE: &str =
    "write a time with its offset, such as `2026-12-01T12:00:00Z` or `2026-12-01T12:00:00.500+05:30`";

/// Reads a time in milliseconds since the Unix epoch; a part of a millisecond rounds up. The text is RFC 3339 with its offset, where a space may
/// stand for the `T` and ` UTC` for the `Z`, as the pages of the dashboard write times; or it is a number of milliseconds from 10^11 on.
///
/// # Errors
/// [`InvalidValue`]: what is wrong with the text, and what to write.
pub fn parse_time(text: &str) -> Result<u64, InvalidValue> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return of_number(text);
    }
    let bad = |why: &str| {
        let text: String = text.chars().take(100).flat_map(char::escape_debug).collect();
        InvalidValue::new(format!("`{text}` {why}: {HOW_TO_WRITE}"))
    };
    let mut rest = Rest(text.as_bytes());
    let local = rest.local().ok_or_else(|| bad("is not a time"))?;
    let offset = match rest.0 {
        b"" => return Err(bad("has no offset from UTC")),
        b"Z" | b"z" | b" UTC" => 0,
        _ => rest.offset().ok_or_else(|| bad("is not a time with an offset"))?,
    };
    let seconds = local.seconds().ok_or_else(|| bad("has a number that no date and time has"))? - offset * 60;
    if local.second == LEAP && seconds % DAY != 0 {
        return Err(bad("has a second 60, as only the last minute of a day of UTC may"));
    }
    let millis = u64::try_from(seconds * 1_000 + local.millis).map_err(|_| bad("is before 1970"))?;
    if millis > LAST { Err(bad("is after the year 9999")) } else { Ok(millis) }
}

fn of_number(digits: &str) -> Result<u64, InvalidValue> {
    let too_large = || {
        let digits: String = digits.chars().take(40).collect();
        InvalidValue::new(format!(
            "`{digits}` is too large for milliseconds since 1970, which have 13 digits today: {HOW_TO_WRITE}"
        ))
    };
    let number = Some(digits.trim_start_matches('0')).filter(|digits| digits.len() <= MAX_DIGITS);
    let number: u64 = number.and_then(|digits| format!("0{digits}").parse().ok()).ok_or_else(too_large)?;
    match number {
        FEWEST_MILLIS..=LAST => Ok(number),
        0..FEWEST_MILLIS => {
            let millis = if number * 1_000 >= FEWEST_MILLIS {
                format!("milliseconds, `{number}000`, or ")
            } else {
                String::new()
            };
            let time = format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(number));
            Err(InvalidValue::new(format!("`{number}` is taken for seconds since 1970: write {millis}`{time}`")))
        }
        _ => Err(too_large()),
    }
}

/// The second that a minute has in addition when the world inserts one; it is the first of the next minute, as in all Unix times.
const LEAP: i64 = 60;
const DAY: i64 = 24 * 3600;

/// The date and the time of day.
struct Local {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// Of the fraction, rounded up.
    millis: i64,
}

impl Local {
    /// Seconds since the Unix epoch if this is UTC; `None` if there is no such date or time.
    fn seconds(&self) -> Option<i64> {
        let Self { year, month, day, hour, minute, second, .. } = *self;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + i64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        let is_there = (1..=days).contains(&day) && hour < 24 && minute < 60 && second <= LEAP;
        // Years that begin in March end with the leap day.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let days = year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468;
        is_there.then_some(days * DAY + hour * 3600 + minute * 60 + second)
    }
}

/// What is not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// One of these bytes.
    fn one(&mut self, of: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first().filter(|(first, _)| of.contains(first))?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        (0..digits).try_fold(0, |number, _| Some(number * 10 + i64::from(self.one(b"0123456789")? - b'0')))
    }

    /// `2026-12-01T12:00:00.5`.
    fn local(&mut self) -> Option<Local> {
        let (year, _) = (self.number(4)?, self.one(b"-")?);
        let (month, _) = (self.number(2)?, self.one(b"-")?);
        let (day, _) = (self.number(2)?, self.one(b"Tt ")?);
        let (hour, _) = (self.number(2)?, self.one(b":")?);
        let (minute, _) = (self.number(2)?, self.one(b":")?);
        let second = self.number(2)?;
        let millis = if self.one(b".").is_some() { self.fraction()? } else { 0 };
        Some(Local { year, month, day, hour, minute, second, millis })
    }

    /// The digits of a fraction, at least one.
    fn fraction(&mut self) -> Option<i64> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.0.split_at(digits);
        self.0 = rest;
        let (whole, below) = fraction.split_at(digits.min(3));
        let millis = (0..3).fold(0, |millis, n| millis * 10 + whole.get(n).map_or(0, |digit| i64::from(digit - b'0')));
        (digits > 0).then(|| millis + i64::from(below.iter().any(|digit| *digit != b'0')))
    }

    /// `+05:30` and nothing after it, in minutes.
    fn offset(&mut self) -> Option<i64> {
        let sign = if self.one(b"+-")? == b'+' { 1 } else { -1 };
        let (hours, _, minutes) = (self.number(2)?, self.one(b":")?, self.number(2)?);
        (self.0.is_empty() && hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(text: &str) -> String {
        parse_time(text).expect_err(text).to_string()
    }

    #[test]
    fn an_offset_belongs_to_the_time_with_and_without_a_fraction() {
        let noon = 1_796_126_400_000; // 2026-12-01T12:00:00Z
        let half = 5 * 3_600_000 + 1_800_000;
        for (text, at) in [
            ("2026-12-01T12:00:00Z", noon),
            ("2026-12-01t12:00:00z", noon),
            ("2026-12-01 12:00:00 UTC", noon),
            ("2026-12-01T12:00:00+05:30", noon - half),
            ("2026-12-01T12:00:00.500000+05:30", noon - half + 500),
            ("2026-12-01T12:00:00.000+02:00", noon - 2 * 3_600_000),
            ("2026-12-01T12:00:00.25-08:00", noon + 8 * 3_600_000 + 250),
            ("2026-12-01T12:00:00-00:00", noon),
            ("2026-12-01T00:00:00+23:59", noon - 12 * 3_600_000 - 86_340_000),
            ("2026-12-01T11:59:59.9990000001Z", noon),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
            ("2017-01-01T05:29:60+05:30", 1_483_228_800_000),
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:01.5Z", 1_500),
            ("1969-12-31T23:00:00-01:00", 0),
            ("9999-12-31T23:59:59.999Z", LAST),
            ("1796126400000", noon),
            ("100000000000", FEWEST_MILLIS),
            ("253402300799999", LAST),
        ] {
            assert_eq!(parse_time(text), Ok(at), "{text}");
        }
    }

    #[test]
    fn a_time_without_an_offset_or_with_more_after_it_is_refused_with_what_to_write() {
        for text in ["2026-12-01T12:00:00", "2026-12-01 12:00:00", "2026-12-01T12:00:00.5"] {
            assert_eq!(bad(text), format!("`{text}` has no offset from UTC: {HOW_TO_WRITE}"));
        }
        let junk = ["Zjunk", "Z ", "Z[Europe/Berlin]", "+02:00Z", " CET", "UTC", "+0200", "+02", "+24:00", "+02:60"];
        for junk in junk.map(|junk| format!("2026-12-01T12:00:00{junk}")) {
            assert_eq!(bad(&junk), format!("`{junk}` is not a time with an offset: {HOW_TO_WRITE}"));
        }
        for text in ["", "tomorrow", "2026-12-01", "2026-12-01T12:00Z", "20261201T120000Z", " 2026-12-01T12:00:00Z"] {
            assert_eq!(bad(text), format!("`{text}` is not a time: {HOW_TO_WRITE}"));
        }
        for text in
            ["26-12-01T12:00:00Z", "2026-12-01T12:00:00.Z", "-1", "1796126400000.5", "1e12", "2026-12-01T12:00:00"]
        {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert!(
            bad("2026-12-01T12:00:00Z\u{1b}[2J\u{202e}")
                .starts_with("`2026-12-01T12:00:00Z\\u{1b}[2J\\u{202e}` is not")
        );
    }

    #[test]
    fn a_date_or_time_that_does_not_exist_is_refused() {
        for text in [
            "2026-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
        ] {
            assert_eq!(bad(text), format!("`{text}` has a number that no date and time has: {HOW_TO_WRITE}"));
        }
        assert!(bad("2026-01-01T12:00:60Z").contains("has a second 60"));
        assert!(bad("1969-12-31T23:59:59Z").contains("is before 1970"));
        assert!(bad("1970-01-01T00:00:00+00:01").contains("is before 1970"));
        assert!(bad("9999-12-31T23:59:59-00:01").contains("is after the year 9999"));
    }

    #[test]
    fn a_number_that_would_be_seconds_or_microseconds_is_refused() {
        assert_eq!(
            bad("1796126400"),
            "`1796126400` is taken for seconds since 1970: write milliseconds, `1796126400000`, or `2026-12-01T12:00:00Z`"
        );
        assert!(
            bad("99999999999").contains("is taken for seconds since 1970: write milliseconds, `99999999999000`, or")
        );
        assert_eq!(bad("0"), "`0` is taken for seconds since 1970: write `1970-01-01T00:00:00Z`");
        for text in ["253402300800000", "1796126400000000", "1796126400000000000", "99999999999999999999999"] {
            assert!(bad(text).starts_with(&format!("`{text}` is too large for milliseconds since 1970")), "{text}");
        }
    }

    /// Another program's arithmetic, over each day of the years that RFC 3339 can write.
    #[test]
    fn every_day_is_read_as_it_is_written() {
        for day in 0..=LAST / 86_400_000 {
            let at = Duration::from_millis(day * 86_400_000 + day % 86_400_000);
            let text = humantime::format_rfc3339_millis(UNIX_EPOCH + at).to_string();
            assert_eq!(parse_time(&text), Ok(at.as_millis() as u64), "{text}");
        }
    }
}
