//! Lines of many parsers' bug reports and manuals, each with what becomes of it.
//!
//! `run.txt` has the lines that run, with their next three times after the beginning of 2027 in UTC. Another program computed them: it walks from
//! day to day and asks each field of the text by itself, by the rules of Vixie's cron, and of Quartz for L, W and #. `refused.txt` has the
//! lines that are refused, with a part of the error.

use jiff::Timestamp;

use super::Cron;

fn rows(table: &str) -> Vec<(&str, &str)> {
    table.lines().map(|row| row.split_once(" | ").unwrap()).collect()
}

#[test]
fn each_line_fires_at_the_times_of_an_independent_reading() {
    let rows = rows(include_str!("lines/run.txt"));
    assert!(rows.len() >= 340, "{}", rows.len());
    let mut wrong = Vec::new();
    for (line, times) in rows {
        let mut at = 1_798_761_600_000; // 2027-01-01T00:00:00Z
        let format = if line.split(' ').count() == 6 { "%Y-%m-%d %H:%M:%S" } else { "%Y-%m-%d %H:%M" };
        let found = Cron::parse(line, "UTC").map(|cron| {
            let next = |_: &str| {
                at = cron.next_after(at).unwrap();
                Timestamp::from_millisecond(at as i64).unwrap().strftime(format).to_string()
            };
            times.split(", ").map(next).collect::<Vec<_>>().join(", ")
        });
        if found.as_deref() != Ok(times) {
            wrong.push(format!("{line}: {found:?} instead of {times}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_other_line_is_refused_with_its_field_and_what_to_write() {
    let rows = rows(include_str!("lines/refused.txt"));
    assert!(rows.len() >= 270, "{}", rows.len());
    let mut wrong = Vec::new();
    for (line, why) in rows {
        match Cron::parse(line, "UTC") {
            Err(bad) if bad.to_string().contains(why) => {}
            other => wrong.push(format!(
                "{line}: {} instead of {why}",
                other.map_or_else(|bad| bad.to_string(), |_| "runs".into())
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
