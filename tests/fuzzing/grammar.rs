//! The grammars of what a store, a file or a caller may give: JSON, records, ids, cron lines and schedules.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use dq::job::{FIELDS, Kind, Value};
use serde_json::{Value as Json, json};

use crate::draw::Draw;

/// Any JSON value, nested up to `depth`.
pub fn value(draw: &Draw, depth: u64) -> Json {
    match draw.below(if depth == 0 { 5 } else { 7 }) {
        0 => Json::Null,
        1 => json!(draw.one_in(2)),
        2 => json!(draw.number()),
        3 => json!(draw.number() as i64 as f64 / 7.0),
        4 => json!(draw.text()),
        5 => (0..draw.below(4)).map(|_| value(draw, depth - 1)).collect(),
        _ => Json::Object((0..draw.below(4)).map(|_| (draw.text(), value(draw, depth - 1))).collect()),
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

/// A value of a field of metadata: mostly one of its kind.
fn put_field(draw: &Draw, name: &str, kind: Kind, out: &mut impl FnMut(&[u8])) {
    let kind = if draw.one_in(400) { FIELDS[draw.below(FIELDS.len() as u64) as usize].1 } else { kind };
    match kind {
        Kind::Number(most) => {
            let small = if draw.one_in(3) { draw.number() } else { draw.below(most.min(1 << 20)) };
            let number = match name {
                "group_order" if !draw.one_in(3) => crate::draw::NOW * 1_000 + draw.below(1_000),
                _ if draw.one_in(40) => draw.number(),
                _ => small % most.saturating_add(1).max(1),
            };
            match draw.below(80) {
                0 => Value::Text(number.to_string().as_bytes()).put(out),
                1 => out(&[draw.below(256) as u8]),
                _ => Value::Number(number).put(out),
            }
        }
        Kind::Flag => Value::Flag(draw.one_in(2)).put(out),
        Kind::List => {
            let texts: Vec<_> = (0..2 * draw.below(4)).map(|_| draw.text()).collect();
            Value::List(texts.len() + usize::from(draw.one_in(60))).put(out);
            texts.iter().for_each(|text| Value::Text(text.as_bytes()).put(out));
        }
        Kind::Text => {
            let text = match name {
                "group" => group(draw).into_bytes(),
                "retry" if !draw.one_in(3) => retry(draw).into_bytes(),
                "state" | "result" => payload(draw),
                _ if draw.one_in(20) => draw.bytes(50),
                _ => draw.text().into_bytes(),
            };
            Value::Text(&text).put(out);
        }
    }
}

/// The bytes of a record: metadata as `job/metadata/encoding.rs` has them, codec and payload. Mostly what dq can read.
pub fn record(draw: &Draw) -> Vec<u8> {
    if draw.one_in(40) {
        return draw.bytes(80);
    }
    let mut out = Vec::new();
    let mut put = |bytes: &[u8]| out.extend_from_slice(bytes);
    let count = if draw.one_in(3) { draw.below(3) as usize } else { draw.below(FIELDS.len() as u64 + 1) as usize };
    Value::List(if draw.one_in(60) { draw.below(40) as usize } else { count }).put(&mut put);
    let has = draw.number();
    for (place, (name, kind)) in FIELDS[..count].iter().enumerate() {
        match kind {
            kind if place == 0 || has >> (place % 8) & 1 == 1 => put_field(draw, name, *kind, &mut put),
            Kind::Number(_) => Value::Number(0).put(&mut put),
            Kind::Text => Value::Text(b"").put(&mut put),
            Kind::Flag => Value::Flag(false).put(&mut put),
            Kind::List => Value::List(0).put(&mut put),
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
pub fn definition(draw: &Draw) -> Json {
    // All ticks that were missed since 1970 are as many jobs as that says.
    let on_missed = draw.pick(&["skip", "once", "all"]);
    let is_far = on_missed != "all" && draw.one_in(4);
    let times = if draw.one_in(2) {
        let (line, zone) = cron(draw);
        let (skipped, repeated) = (draw.pick(&["l", "n", "x"]), draw.pick(&["f", "s", "b"]));
        json!({ "cron": { "line": line, "zone": zone, "skipped": skipped, "repeated": repeated } })
    } else {
        json!({ "every": if draw.one_in(3) { draw.number() } else { 1_000 << draw.below(20) } })
    };
    let some = || if draw.one_in(6) { json!(draw.number()) } else { Json::Null };
    let origin = json!({ "code": { "fingerprint": draw.number(), "superseded": [draw.number()] } });
    let deliver = draw.pick(&["queue", "broadcast", "both"]);
    let mut definition = json!({
        "ticks": { "times": times, "start": some(), "end": some() },
        "on_missed": on_missed,
        "overlap": draw.pick(&["allow", "skip"]),
        "jitter": if draw.one_in(3) { draw.number() } else { 0 },
        "job": { "record": STANDARD_NO_PAD.encode(record(draw)), "expires_after": some(), "deliver": deliver },
        "tick": if is_far { draw.number() } else { crate::draw::NOW - draw.below(100_000) },
        "origin": if draw.one_in(6) { origin } else { json!("call") },
        "made": draw.one_in(12),
    });
    if draw.one_in(8) {
        definition["last"] = json!(id(draw));
    }
    if draw.one_in(20) {
        definition["pause"] = json!({ "reason": draw.text(), "by": draw.text() });
    }
    if draw.one_in(20) {
        let key = draw.pick(&["ticks", "tick", "job", "origin", "jitter", "on_missed", "other"]);
        definition[key] = value(draw, 1);
    }
    definition
}
