//! The grammars of what a store, a file or a caller may give: JSON, records, ids, cron lines and schedules.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};

use crate::draw::Draw;

/// Any JSON value, nested up to `depth`.
pub fn value(draw: &Draw, depth: u64) -> Value {
    match draw.below(if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => json!(draw.one_in(2)),
        2 => json!(draw.number()),
        3 => json!(draw.number() as i64 as f64 / 7.0),
        4 => json!(draw.text()),
        5 => (0..draw.below(4)).map(|_| value(draw, depth - 1)).collect(),
        _ => Value::Object((0..draw.below(4)).map(|_| (draw.text(), value(draw, depth - 1))).collect()),
    }
}

/// A payload: mostly JSON.
pub fn payload(draw: &Draw) -> Vec<u8> {
    match draw.below(20) {
        0 => draw.bytes(60),
        1 => "[".repeat(draw.below(400) as usize).into_bytes(),
        2 => draw.spoiled(&value(draw, 2).to_string()).into_bytes(),
        _ => value(draw, 3).to_string().into_bytes(),
    }
}

/// The id of a job: mostly valid, sometimes one of dq's own.
pub fn id(draw: &Draw) -> String {
    match draw.below(12) {
        0 => draw.text(),
        1 => format!("dq:schedule:{}", draw.word()),
        2 => format!("dq:tick:{}@{}", draw.word(), draw.number()),
        3 => "é".repeat(1 + draw.below(128) as usize),
        _ => draw.word(),
    }
}

/// What a length says: mostly the truth.
fn length(draw: &Draw, truth: usize) -> u16 {
    let truth = truth.min(usize::from(u16::MAX)) as u16;
    if draw.one_in(60) { truth.wrapping_add(draw.below(5) as u16).wrapping_sub(2) } else { truth }
}

fn put_block(draw: &Draw, out: &mut Vec<u8>, block: &[u8]) {
    let length = length(draw, block.len());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&block[..block.len().min(usize::from(u16::MAX))]);
}

fn put_number(out: &mut Vec<u8>, number: u64, bytes: usize) {
    out.extend_from_slice(&number.to_le_bytes()[..bytes]);
}

/// The bytes of a record: metadata as `job/metadata/encoding.rs` has them, codec and payload. Mostly what dq can read.
pub fn record(draw: &Draw) -> Vec<u8> {
    if draw.one_in(40) {
        return draw.bytes(80);
    }
    let flags = if draw.one_in(2) { draw.below(256) as u8 } else { 1 << draw.below(8) };
    // How long the delay is, or 7 if there is a weight, and 8 if there is a group; the format has one of three priorities.
    let (shape, group) = (if draw.one_in(5) { 7 } else { draw.below(7) as u8 }, u8::from(draw.one_in(4)) << 3);
    let version = if draw.one_in(60) { draw.below(16) as u8 } else { 9 + [0, 0, 1, 2][draw.below(4) as usize] };
    let mut out = vec![version << 4 | group | shape, flags];
    let has = |bit: u8| flags & 1 << bit != 0;
    for (bit, bytes) in [(0, 6), (1, 6), (2, 8)] {
        if has(bit) {
            put_number(&mut out, draw.number(), bytes);
        }
    }
    if has(3) {
        put_number(&mut out, draw.number(), 2);
        out.push(if draw.one_in(20) {
            draw.below(256) as u8
        } else {
            draw.below(10) as u8 | (draw.below(2) as u8) << 7
        });
    }
    if has(7) {
        put_number(&mut out, draw.number(), 4);
        put_number(&mut out, draw.number(), 6);
    }
    if shape == 7 {
        put_number(&mut out, if draw.one_in(4) { draw.number() } else { 1 + draw.below(9_999) }, 2);
    }
    put_number(&mut out, draw.number(), usize::from(shape.min(6)));
    if group != 0 {
        put_group(draw, &mut out);
    }
    if flags & 0b0111_0000 != 0 {
        let mut texts = texts(draw, has);
        if draw.one_in(3) {
            // Without any text, the headers precede it; here they are whatever the flags say.
            texts.push(*b"JRJ?".get(draw.below(if draw.one_in(30) { 4 } else { 3 }) as usize).unwrap_or(&b'J'));
            texts.extend(payload(draw));
        }
        if draw.one_in(20) {
            out.extend(u16::MAX.to_le_bytes());
            out.extend((texts.len() as u32).to_le_bytes());
            out.extend(texts);
        } else {
            put_block(draw, &mut out, &texts);
        }
    }
    out.push(if draw.one_in(60) { draw.below(256) as u8 } else { b'J' });
    out.extend(payload(draw));
    out
}

/// The name of a group: mostly one of a few.
pub fn group(draw: &Draw) -> String {
    match draw.below(8) {
        0 => draw.text(),
        1 => "\u{e9}".repeat(1 + draw.below(64) as usize),
        _ => draw.pick(&["customer-7", "g", "h"]).into(),
    }
}

/// The length of the name of a group, the order of the job there, and the name.
fn put_group(draw: &Draw, out: &mut Vec<u8>) {
    let name = group(draw);
    let name = name.get(..name.len().min(255)).unwrap_or("g");
    let length = name.len() as u8;
    out.push(if draw.one_in(60) { length.wrapping_add(draw.below(5) as u8).wrapping_sub(2) } else { length });
    let order = if draw.one_in(3) { draw.number() } else { crate::draw::NOW * 1_000 + draw.below(1_000) };
    put_number(out, order, 8);
    out.extend(name.as_bytes());
}

/// Retry policy, headers and error.
fn texts(draw: &Draw, has: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    if has(4) {
        let policy = if draw.one_in(3) { draw.text() } else { retry(draw) };
        put_block(draw, &mut out, policy.as_bytes());
    }
    if has(5) {
        let mut headers = Vec::new();
        for _ in 0..draw.below(4) {
            put_block(draw, &mut headers, draw.text().as_bytes());
            put_block(draw, &mut headers, draw.text().as_bytes());
        }
        put_block(draw, &mut out, &headers);
    }
    if has(6) {
        let error = if draw.one_in(20) { draw.bytes(50) } else { draw.text().into_bytes() };
        put_block(draw, &mut out, &error);
    }
    out
}

/// A duration as people write it.
pub fn duration(draw: &Draw) -> String {
    let unit = draw.pick(&["ms", "s", "m", "h", "d", "w", "", "us", "M", "y"]);
    match draw.below(10) {
        0 => draw.text(),
        1 => format!("{}h {}m", draw.below(100), draw.below(100)),
        _ => format!("{}{unit}", draw.number()),
    }
}

/// A retry policy as text.
pub fn retry(draw: &Draw) -> String {
    match draw.below(6) {
        0 => "none".into(),
        1 => format!("{} x {}", duration(draw), draw.number()),
        2 => {
            let (first, times, factor) = (duration(draw), draw.number(), draw.number());
            format!("exponential {first} x {times}, factor {factor}, max {}, jitter {}%", duration(draw), draw.number())
        }
        _ => (0..=draw.below(if draw.one_in(30) { 80 } else { 5 }))
            .map(|_| duration(draw))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// A field of a cron line whose numbers go from `least` to `most`.
fn cron_field(draw: &Draw, least: u64, most: u64) -> String {
    let number = || if draw.one_in(60) { draw.number() } else { least + draw.below(most - least + 1) };
    let range = || {
        let (one, two) = (number(), number());
        format!("{}-{}", one.min(two), one.max(two))
    };
    match draw.below(16) {
        0..=4 => "*".into(),
        5 | 6 => number().to_string(),
        7 => range(),
        8 => format!("*/{}", 1 + draw.below(most)),
        9 => format!("{}/{}", range(), 1 + draw.below(most)),
        10 => (0..=draw.below(8)).map(|_| number().to_string()).collect::<Vec<_>>().join(","),
        11 if most == 31 => draw.pick(&["L", "LW", "15W", "31W", "?", "29", "30", "31", "L-3"]).into(),
        11 if most == 12 => draw.pick(&["FEB", "FEB-OCT/2", "2", "JAN,FEB", "DEC-JAN"]).into(),
        11 if most == 7 => draw.pick(&["MON", "FRI#3", "MON-FRI", "5L", "SUN#5", "+MON", "0", "7", "FRI#L"]).into(),
        12 if draw.one_in(8) => draw.text(),
        _ => "*".into(),
    }
}

/// A cron line, and what may be the name of a zone.
pub fn cron(draw: &Draw) -> (String, String) {
    // With seconds or without; rarely with other fields.
    let ranges = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7), (1970, 2100)];
    let first = draw.below(if draw.one_in(20) { 6 } else { 2 }) as usize;
    let last = if draw.one_in(20) { 7 } else { 6 };
    let fields = ranges[first.min(last)..last].iter();
    let line = match draw.below(20) {
        0 => {
            draw.pick(&["@daily", "@yearly", "@reboot", "@hourly", "@every 1s", "0 0 30 2 *", "0 0 29 2 MON#5"]).into()
        }
        1 => draw.text(),
        2 => vec!["0,".repeat(draw.below(3_000) as usize); 5].join(" "),
        _ => fields.map(|(least, most)| cron_field(draw, *least, *most)).collect::<Vec<_>>().join(" "),
    };
    let zone = match draw.below(12) {
        0 => draw.text(),
        1 => draw
            .pick(&["../../etc/passwd", "/etc/localtime", "EST5EDT,M3.2.0,M11.1.0", "UTC+25", "europe/berlin", ""])
            .into(),
        2 => "Europe/Berlin".repeat(draw.below(3_000) as usize),
        _ => draw
            .pick(&["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo"])
            .into(),
    };
    (line, zone)
}

/// A schedule as a store has it, mostly one that dq can read.
pub fn definition(draw: &Draw) -> Value {
    // All ticks that were missed since 1970 are as many jobs as that says.
    let on_missed = draw.pick(&["skip", "once", "all"]);
    let is_far = on_missed != "all" && draw.one_in(4);
    let mut definition = json!({
        "on_missed": on_missed,
        "overlap": draw.pick(&["allow", "skip"]),
        "jitter_ms": if draw.one_in(3) { draw.number() } else { 0 },
        "tick": if is_far { draw.number() } else { crate::draw::NOW - draw.below(100_000) },
        "record": STANDARD_NO_PAD.encode(record(draw)),
        "deliver": draw.pick(&["q", "b", "t"]),
    });
    if draw.one_in(2) {
        let (line, zone) = cron(draw);
        let (skipped, repeated) = (draw.pick(&["l", "n", "x"]), draw.pick(&["f", "s", "b"]));
        definition["cron"] = json!({ "line": line, "zone": zone, "skipped": skipped, "repeated": repeated });
    } else {
        definition["every_ms"] = json!(if draw.one_in(3) { draw.number() } else { 1_000 << draw.below(20) });
    }
    for key in ["start", "end", "expires_after_ms", "fingerprint"] {
        if draw.one_in(6) {
            definition[key] = json!(draw.number());
        }
    }
    if draw.one_in(8) {
        definition["last"] = json!(id(draw));
    }
    if draw.one_in(12) {
        definition["made"] = json!(true);
    }
    if draw.one_in(20) {
        definition["pause"] = json!({ "reason": draw.text(), "by": draw.text() });
    }
    if draw.one_in(20) {
        let key = draw.pick(&["every_ms", "tick", "record", "deliver", "jitter_ms", "on_missed", "other"]);
        definition[key] = value(draw, 1);
    }
    definition
}
