use std::collections::HashSet;

use jiff::tz::{TimeZone, db};
use jiff::{Timestamp, ToSpan, Zoned};

use super::{Cron, InvalidCron, RepeatedTime, SkippedTime};

mod lines;

fn cron(line: &str, zone: &str) -> Cron {
    Cron::parse(line, zone).unwrap()
}

/// The times from `start` on, as text in the zone of the line.
fn times(cron: &Cron, start: &str, count: usize) -> Vec<String> {
    let start: Zoned = start.parse().unwrap();
    let mut at = start.timestamp().as_millisecond() as u64 - 1;
    let mut found = Vec::new();
    for _ in 0..count {
        at = cron.next_after(at).unwrap();
        let zoned = Timestamp::from_millisecond(at as i64).unwrap().to_zoned(start.time_zone().clone());
        found.push(zoned.strftime("%d %H:%M%:z").to_string());
    }
    found
}

#[test]
fn the_policies_override_what_a_line_does_by_default() {
    let never = cron("30 2 * * *", "Europe/Berlin").at_skipped_times(SkippedTime::Never);
    assert_eq!(times(&never, "2026-03-29T00:00[Europe/Berlin]", 1), ["30 02:30+02:00"]);
    let second = cron("30 2 25 * *", "Europe/Berlin").at_repeated_times(RepeatedTime::Second);
    assert_eq!(times(&second, "2026-10-25T00:00[Europe/Berlin]", 2), ["25 02:30+01:00", "25 02:30+01:00"]);
    let both = cron("30 2 25 10 *", "Europe/Berlin").at_repeated_times(RepeatedTime::Both);
    assert_eq!(times(&both, "2026-10-25T00:00[Europe/Berlin]", 2), ["25 02:30+02:00", "25 02:30+01:00"]);
    let later = cron("15 * * * *", "Europe/Berlin").at_skipped_times(SkippedTime::Later);
    assert_eq!(
        times(&later, "2026-03-29T01:15[Europe/Berlin]", 3),
        ["29 01:15+01:00", "29 03:00+02:00", "29 03:15+02:00"]
    );
}

#[test]
fn the_next_time_is_later_than_the_given_millisecond() {
    let cron = cron("* * * * * *", "UTC");
    assert_eq!(cron.next_after(5_000), Some(6_000));
    assert_eq!(cron.next_after(5_999), Some(6_000));
    assert_eq!(cron.next_after(u64::MAX), None);
}

#[test]
fn rare_days_are_found_across_many_changes_of_the_clock() {
    let leap_monday = times(&cron("0 12 29 FEB +MON", "Europe/Berlin"), "2027-01-01T00:00[Europe/Berlin]", 1);
    assert_eq!(leap_monday, ["29 12:00+01:00"], "2044-02-29 is a Monday");
}

#[test]
fn a_day_that_a_zone_left_out_does_not_stop_a_line() {
    // Samoa had no 30 December 2011.
    let samoa = times(&cron("0 9 * * *", "Pacific/Apia"), "2011-12-29T00:00[Pacific/Apia]", 3);
    assert_eq!(samoa, ["29 09:00-10:00", "31 00:00+14:00", "31 09:00+14:00"]);
}

#[test]
fn a_bad_line_or_zone_says_what_to_write() {
    let text = |line, zone| Cron::parse(line, zone).unwrap_err().to_string();
    assert_eq!(Cron::parse("0 0 30 2 *", "UTC"), Err(InvalidCron::Never { line: "0 0 30 2 *".into() }));
    assert!(text("0 9 * *", "UTC").contains("it has 4 fields; write `minute hour day month weekday`"));
    assert_eq!(
        text("61 9 * * *", "UTC"),
        "`61 9 * * *` is not a cron line: minute `61` at position 1: the number is out of range (it takes 0 to 59); \
         write `minute hour day month weekday`, for example `0 9 * * MON-FRI`"
    );
    let zone = text("0 9 * * *", "Asia/Singapur");
    assert!(zone.contains("`Asia/Singapur` does not exist, did you mean `Asia/Singapore`"), "{zone}");
    assert!(text("0 9 * * *", "Singapor").contains("`Asia/Singapore`"));
}

/// A line of a minute and hours, as an independent reading of the same words: every minute of real time is compared with it.
struct Plain {
    line: &'static str,
    minutes: &'static [i8],
    hours: Option<&'static [i8]>,
}

const LINES: [Plain; 3] = [
    Plain { line: "*/15 * * * *", minutes: &[0, 15, 30, 45], hours: None },
    Plain { line: "30 0,2 * * *", minutes: &[30], hours: Some(&[0, 2]) },
    Plain { line: "0 */3 * * *", minutes: &[0], hours: Some(&[0, 3, 6, 9, 12, 15, 18, 21]) },
];

const STEP_MINUTES: i64 = 15;

impl Plain {
    fn names(&self, local: jiff::civil::DateTime) -> bool {
        self.minutes.contains(&local.minute()) && self.hours.is_none_or(|hours| hours.contains(&local.hour()))
    }

    /// Walks from quarter to quarter of real time and looks at the clock of the zone.
    fn times(&self, zone: &TimeZone, from: Timestamp, to: Timestamp) -> Vec<u64> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        let mut at = from;
        let mut expected = zone.to_datetime(at);
        while at < to {
            let local = zone.to_datetime(at);
            let mut fires = self.names(local) && (self.hours.is_none() || seen.insert(local));
            while expected < local {
                // The clock has skipped this local time.
                fires |= self.hours.is_some() && self.names(expected) && seen.insert(expected);
                expected = expected.checked_add(STEP_MINUTES.minutes()).unwrap();
            }
            if fires {
                found.push(at.as_millisecond() as u64);
            }
            expected = local.checked_add(STEP_MINUTES.minutes()).unwrap();
            at = at.checked_add(STEP_MINUTES.minutes()).unwrap();
        }
        found
    }
}

#[test]
fn every_zone_fires_at_no_time_too_few_and_none_too_many_in_two_years() {
    let from: Timestamp = "2026-01-01T00:00Z".parse().unwrap();
    let to: Timestamp = "2028-01-01T00:00Z".parse().unwrap();
    let mut seen = HashSet::new();
    let mut zones = 0;
    for name in db().available() {
        zones += 1;
        let zone = TimeZone::get(name.as_str()).unwrap();
        let changes: Vec<_> = zone.following(from).take_while(|change| change.timestamp() < to).collect();
        let clock: Vec<_> = changes.iter().map(|change| (change.timestamp(), change.offset())).collect();
        // Zones whose clocks show the same in these years need one look.
        if !seen.insert((zone.to_offset(from), clock)) {
            continue;
        }
        for plain in &LINES {
            let cron = cron(plain.line, name.as_str());
            let mut at = from.as_millisecond() as u64 - 1;
            let computed = std::iter::from_fn(|| {
                at = cron.next_after(at)?;
                Some(at)
            });
            let computed: Vec<_> = computed.take_while(|at| *at < to.as_millisecond() as u64).collect();
            let walked = plain.times(&zone, from, to);
            let differs = computed.iter().zip(&walked).find(|(computed, walked)| computed != walked);
            assert!(
                computed == walked,
                "{name} `{}`: {} and {} times, {differs:?}",
                plain.line,
                computed.len(),
                walked.len()
            );
        }
    }
    assert!(zones > 400 && seen.len() > 40, "{zones} zones, {} clocks", seen.len());
}

/// To look for zones that resemble a name took time with the square of its length: 14 s for 38 kB.
#[test]
fn a_line_or_zone_that_is_far_too_long_is_refused_without_a_proposal() {
    let long = "Europe/Berlin".repeat(100_000);
    let InvalidCron::Zone { proposals, .. } = Cron::parse("0 9 * * *", &long).unwrap_err() else {
        panic!("it is a zone")
    };
    assert_eq!(proposals, [""; 0]);
    let all = |most: u32| (0..=most).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let line = format!("{} {} {} * * *", all(59), all(59), all(23));
    assert!(Cron::parse(&line, "UTC").is_ok());
    let error = Cron::parse(&format!("{}0 * * * *", "0,".repeat(100_000)), "UTC").unwrap_err().to_string();
    assert!(error.contains("is 200009 bytes long; the limit is 1000") && error.len() < 400, "{error}");
}
