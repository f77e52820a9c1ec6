//! Texts and bytes that dq reads without a node.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use dq::context::open_store;
use dq::job::{AppName, Codec, JobId, Metadata, Record, TopicName};
use dq::schedule::Definition;
use dq::time::Timestamp;
use dq_grammar::{Cron, RepeatedTime, RetryPolicy, SkippedTime, parse_duration, parse_time};

use crate::draw::{Draw, NOW};
use crate::grammar;
use crate::target::Found;

/// The most ticks of a line that are compared.
const TICKS: usize = 3;

/// Reads a cron line; its ticks come in order, and it is the same line when it is written and read again.
pub fn cron(draw: &Draw, found: &mut Found) {
    let (line, zone) = grammar::cron(draw);
    let cron = Cron::parse(&line, &zone);
    found.input(cron.is_ok());
    let Ok(cron) = cron else { return };
    let cron = match draw.below(3) {
        0 => cron.at_skipped_times(SkippedTime::Later).at_repeated_times(RepeatedTime::Second),
        1 => cron.at_skipped_times(SkippedTime::Never).at_repeated_times(RepeatedTime::Both),
        _ => cron,
    };
    let mut after = draw.number();
    for _ in 0..TICKS {
        let Some(next) = cron.next_after(after) else { break };
        assert!(next > after, "`{cron}` fires at {next}, after {after}");
        after = next;
    }
    assert!(Cron::parse(cron.line(), cron.zone()).is_ok(), "`{cron}` is not read again");
}

/// A text that is read is the same when it is written and read again.
fn is_read_again<T: FromStr + Display + PartialEq + Debug>(text: &str) -> bool {
    let Ok(read) = text.parse::<T>() else { return false };
    let written = read.to_string();
    assert_eq!(written.parse::<T>().ok().as_ref(), Some(&read), "`{text}` became `{written}`");
    true
}

/// Reads durations, times, policies, names and the URLs of stores.
pub fn words(draw: &Draw, found: &mut Found) {
    let mut text = match draw.below(8) {
        0 => grammar::duration(draw),
        1 => grammar::retry(draw),
        2 => Timestamp::from_millis(draw.number()).to_string(),
        3 => format!("redis://{}:{}@{}:{}/{}", draw.text(), draw.text(), draw.text(), draw.number(), draw.text()),
        4 => format!("{}{}", draw.pick(&["redis://", "rediss://", "memory:", "redis+unix://", "redis:"]), draw.text()),
        _ => draw.text(),
    };
    if draw.one_in(4) {
        text = draw.spoiled(&text);
    }
    // A store in a directory would leave that behind.
    let is_store = (text.starts_with("redis") || text.starts_with("memory:")) && open_store(&text).is_ok();
    let read = [
        parse_duration(&text).is_ok(),
        parse_time(&text).is_ok(),
        is_read_again::<RetryPolicy>(&text),
        AppName::new(&text).is_ok(),
        TopicName::new(&text).is_ok(),
        JobId::new(&text).is_ok(),
        is_store,
    ];
    found.input(read.contains(&true));
}

/// Reads a record. Its metadata are the same when they are written and read again, and keep the payload.
pub fn records(draw: &Draw, found: &mut Found) {
    let record = Record::from_bytes(grammar::record(draw).into());
    let read = record.checked();
    found.input(read.is_ok());
    let mut other = read.clone().unwrap_or_default();
    if let (Ok(metadata), Ok((_, payload))) = (&read, record.payload()) {
        let written = Record::new(metadata, Codec::Json, payload);
        assert_eq!(written.metadata().as_ref(), Ok(metadata));
        assert_eq!(written.payload().map(|(_, payload)| payload), Ok(payload));
    }
    // Whatever a handler says of it.
    (other.error, other.attempts) = (Some(draw.text()), draw.number() as u16);
    other.headers.push((draw.text(), draw.text()));
    let next = record.with_metadata(&other);
    assert!(next.metadata().is_ok(), "what dq wrote is not read");
    assert!(Record::new(&Metadata::default(), Codec::Json, b"1").checked().is_ok());
    record.fixed();
}

/// Reads a schedule, and lets it fire.
pub fn schedules(draw: &Draw, found: &mut Found) {
    let text = grammar::definition(draw).to_string();
    let text = if draw.one_in(20) { draw.spoiled(&text) } else { text };
    let read = Definition::read(&Record::new(&Metadata::default(), Codec::Json, text.as_bytes()));
    found.input(read.is_ok());
    let Ok(definition) = read else { return };
    let written = Definition::read(&definition.to_record(draw.number() as u32));
    assert_eq!(written.ok().as_ref(), Some(&definition), "{text}");
    let name = if draw.one_in(9) { draw.text() } else { draw.word() };
    let now = Timestamp::from_millis(if draw.one_in(3) { draw.time() } else { NOW });
    let _ = definition.run(&name, definition.tick, now, 1);
}
