//! Metadata as scripts read and change them, compared with what nodes read.

use std::fmt::Write as _;
use std::time::Duration;

use dq::environment::Seeded;
use dq::job::{Cause, Codec, FIELDS, Fence, GroupName, KeptState, Kind, Metadata, Priority, Record, Weight};
use dq::time::Timestamp;
use dq_tests::redis::RedisServer;

const PARTS: [&str; 3] = [
    include_str!("../../dq/src/store/redis/lua/parts/clock.lua"),
    include_str!("../../dq/src/store/redis/lua/parts/metadata.lua"),
    include_str!("../../dq/src/store/redis/lua/parts/edit.lua"),
];

/// Answers one line for each record: the fixed fields, then the metadata after each change.
const SCRIPT: &str = "
local function hex(text) return (string.gsub(text, '.', function(c) return string.format('%02x', string.byte(c)) end)) end
local lines = {}
for i, coded in ipairs(ARGV) do
  local text = metadata_in((string.gsub(coded, '..', function(pair) return string.char(tonumber(pair, 16)) end)))
  local expires = field(text, FIELD.expires_at)
  local fields = {
    int(field(text, FIELD.delay) or 0), int(field(text, FIELD.retain) or 0), expires and int(expires) or '-', parking_fence_of(text) or '-',
    field(text, FIELD.exhausted) and '1' or '0', table.concat({change_facts(text)}, ','), hex(with_metadata(text, '', '77')), hex(with_metadata(text, '', nil)),
    hex(exhausted_by(CRASHES, text)), hex(revived(text)), hex(edited(text, 7, 9, 5)),
  }
  lines[i] = table.concat(fields, ' ')
end
return table.concat(lines, '|')";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// What the loader writes in place of these words.
fn words() -> String {
    let places: Vec<_> = (1..).zip(FIELDS).map(|(place, (name, _))| format!("{name} = {place}")).collect();
    let bounds: Vec<_> = FIELDS.iter().map(|(_, kind)| kind.in_lua()).collect();
    format!("local FIELD, BOUNDS = {{{}}}, {{{}}}\n", places.join(", "), bounds.join(", "))
}

fn answers(server: &RedisServer, records: &[Record]) -> Vec<String> {
    let code = |text: &str| text.split_once("]]\n").unwrap().1.to_owned();
    let script = words() + &PARTS.map(code).concat() + SCRIPT;
    let in_hex: Vec<String> = records.iter().map(|record| hex(record.as_bytes())).collect();
    let ask = |batch: &[String]| {
        let words: Vec<&str> = ["EVAL", &script, "0"].into_iter().chain(batch.iter().map(String::as_str)).collect();
        server.command(&words).split('|').map(str::to_owned).collect::<Vec<_>>()
    };
    in_hex.chunks(500).flat_map(ask).collect()
}

fn fixed_of(record: &Record) -> String {
    let fixed = record.fixed();
    let expires = fixed.expires_at.map_or("-".into(), |at| at.as_millis().to_string());
    let fence = fixed.parked_by.map_or("-".into(), |fence| fence.0.to_string());
    let (delay, retain) = (fixed.delay.as_millis(), fixed.retain.as_millis());
    let first = fixed.first_added.map_or(0, Timestamp::as_millis);
    format!("{delay} {retain} {expires} {fence} {} {},{first}", u8::from(fixed.exhausted), fixed.version)
}

fn some_fields(fields: u32) -> Metadata {
    let has = |bit: u32| fields >> bit & 1 == 1;
    // The longest state or result makes the length of the texts longer.
    let left =
        has(12).then(|| KeptState::from_bytes(&vec![b'7'; if fields.is_multiple_of(7) { 64 << 10 } else { 30 }]));
    Metadata {
        attempts: if has(0) { 513 } else { 0 },
        cause: has(1).then_some(Cause::Timeout),
        exhausted: has(2),
        delay: Duration::from_millis(if has(3) { 0x0102_0304 } else { 0 }),
        expires_at: has(4).then_some(Timestamp::from_millis(1_763_000_000_000)),
        retain: Duration::from_secs(if has(5) { 60 } else { 0 }),
        parked_by: has(6).then_some(Fence(if has(0) { u64::MAX - 1 } else { 1_763_000_000_000_001 })),
        retry: has(7).then(|| "none".to_owned()),
        headers: if has(8) { vec![("name".to_owned(), "värde".to_owned())] } else { Vec::new() },
        error: has(9).then(|| "x".repeat(300)),
        version: if has(10) { 0x0102_0304 } else { 0 },
        first_added: has(11).then_some(Timestamp::from_millis(1_763_000_000_001)),
        priority: Priority::ALL[fields as usize % 3],
        weight: Weight::new(1 + 300 * (fields as u16 % 7 / 4)).unwrap(),
        group: (fields % 5 > 2).then(|| GroupName::new("customer-é").unwrap()),
        group_order: if fields % 5 > 2 { 1_763_000_000_000_003 } else { 0 },
        state: left.clone().filter(|_| !fields.is_multiple_of(3)),
        result: left.filter(|_| fields.is_multiple_of(3)),
    }
}

fn read(metadata: &str) -> Metadata {
    let mut record = from_hex(metadata);
    record.extend_from_slice(b"J1");
    Record::from_bytes(record.into()).metadata().unwrap()
}

#[test]
fn scripts_read_and_change_metadata_as_nodes_read_them() {
    let server = RedisServer::start();
    let all: Vec<Metadata> =
        (0..1 << 13).filter(|fields| fields >> 12 == 0 || fields % 8 == 1).map(some_fields).collect();
    let records: Vec<Record> = all.iter().map(|metadata| Record::new(metadata, Codec::Json, b"{}")).collect();
    let answers = answers(&server, &records);
    assert_eq!(answers.len(), all.len());
    for ((metadata, record), answer) in all.iter().zip(&records).zip(&answers) {
        let words: Vec<&str> = answer.split(' ').collect();
        assert_eq!(words[..6].join(" "), fixed_of(record), "{metadata:?}");
        let [parked, unparked, exhausted, revived, edited] = [6, 7, 8, 9, 10].map(|i| read(words[i]));
        assert_eq!(parked, Metadata { parked_by: Some(Fence(77)), ..metadata.clone() });
        assert_eq!(unparked, Metadata { parked_by: None, ..metadata.clone() });
        assert_eq!(exhausted, Metadata { exhausted: true, cause: Some(Cause::Crashes), ..metadata.clone() });
        let expected = Metadata { exhausted: false, attempts: 0, expires_at: None, ..metadata.clone() };
        assert_eq!(revived, expected);
        let expires_at = metadata.expires_at.map(|at| at.after(Duration::from_millis(5)));
        let first_added = Some(Timestamp::from_millis(9));
        assert_eq!(edited, Metadata { version: 7, first_added, expires_at, ..metadata.clone() });
    }
}

#[test]
fn scripts_refuse_the_bytes_that_nodes_refuse() {
    let server = RedisServer::start();
    let random = Seeded::new(1);
    let one_of = |values: &[&[u8]]| values[random.next() as usize % values.len()].to_vec();
    let value = |place: usize| {
        let place = if random.next().is_multiple_of(30) { random.next() as usize } else { place };
        match FIELDS[place % FIELDS.len()].1 {
            Kind::Number(_) if random.next().is_multiple_of(4) => {
                one_of(&[b"\xcd\x01\x07", b"\xce\x01\0\0\0", b"\xa212", b"\xb420000000000000000000"])
            }
            Kind::Number(_) => vec![random.next() as u8 % 12],
            Kind::Text => one_of(&[b"\xa0", b"\xa1x", b"\xd9\x02xy"]),
            Kind::Flag => one_of(&[b"\xc2", b"\xc3"]),
            Kind::List => one_of(&[b"\x90", b"\x92\xa1a\xa0"]),
        }
    };
    let record = |_| {
        let count = random.next() as usize % 20;
        let head = if count > 15 { vec![0xdc, 0, count as u8] } else { vec![0x90 | count as u8] };
        let mut bytes = [head, (0..count).flat_map(value).collect(), b"J1".to_vec()].concat();
        if random.next().is_multiple_of(8) {
            bytes.truncate(random.next() as usize % bytes.len());
        }
        Record::from_bytes(bytes.into())
    };
    let short = (0..=u8::MAX).map(|byte| Record::from_bytes(vec![byte; usize::from(byte % 5)].into()));
    let records: Vec<Record> = (0..10_000).map(record).chain(short).collect();
    assert!(records.iter().filter(|record| record.fixed() != Metadata::default()).count() > 1_000);
    for (record, answer) in records.iter().zip(answers(&server, &records)) {
        let fields = answer.split(' ').take(6).collect::<Vec<_>>().join(" ");
        assert_eq!(fields, fixed_of(record), "{record:?}");
    }
}

#[test]
fn a_change_of_what_no_node_can_read_begins_with_plain_metadata() {
    let server = RedisServer::start();
    let unreadable: Vec<Record> =
        (0..=u8::MAX).map(|byte| Record::from_bytes(vec![byte; usize::from(byte % 5)].into())).collect();
    for (record, answer) in unreadable.iter().zip(answers(&server, &unreadable)) {
        let words: Vec<&str> = answer.split(' ').collect();
        let [parked, exhausted, revived] = [6, 8, 9].map(|i| read(words[i]));
        assert_eq!(parked, Metadata { parked_by: Some(Fence(77)), ..Metadata::default() }, "{record:?}");
        let crashed = Metadata { exhausted: true, cause: Some(Cause::Crashes), ..Metadata::default() };
        assert_eq!((exhausted, revived), (crashed, Metadata::default()), "{record:?}");
    }
}
