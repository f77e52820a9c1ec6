//! Keys of Redis into which another program, or a later version, has written: what the doctor says of them, and whether other jobs run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use dq::Provider;
use dq::context::ContextFactory;
use dq::store::redis::RedisStore;
use dq_tests::redis::ask;
use serde_json::json;

use crate::answers::server;
use crate::draw::{Draw, NOW};
use crate::node::{Handles, Runs};
use crate::target::Found;
use crate::{batches, grammar};

/// How many entries another program writes.
const ENTRIES: u64 = 12;
const JOBS: u64 = 3;
/// A repair may reveal something.
const ROUNDS: u64 = 4;
/// The jobs that have nothing to do with them are over by then.
const SOON: Duration = Duration::from_secs(10);

/// The keys of a topic and their types, from the table in the source.
fn topic_keys() -> Vec<(&'static str, &'static str)> {
    let source = include_str!("../../dq/src/store/redis/keys.rs");
    let rows = source.lines().filter_map(|line| {
        let words: Vec<_> = line.trim().strip_suffix("\";")?.split('"').collect();
        Some((*words.get(1)?, *words.get(3)?))
    });
    rows.filter(|row| row.1 != "channel").collect()
}

/// The fields of `meta` that say something of entries.
const FIELDS: [&str; 12] = [
    "fence",
    "retains",
    "priorities",
    "taken",
    "largest",
    "far",
    "outbox",
    "outbox:t",
    "outbox:u",
    "members",
    "groups",
    "opens",
];

fn id(draw: &Draw) -> Vec<u8> {
    match draw.below(4) {
        0 => grammar::id(draw).into_bytes(),
        1 => draw.bytes(20),
        number => format!("known-{}", number - 2).into_bytes(),
    }
}

fn joined(parts: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    parts.into_iter().collect::<Vec<_>>().join(&0)
}

/// A place among follow-ups, and perhaps when it was written.
fn position(draw: &Draw) -> Vec<u8> {
    let number = || if draw.one_in(4) { draw.number() } else { NOW * 1_000 };
    let written = if draw.one_in(3) { format!(",{}", number()) } else { String::new() };
    format!("{}{written}{}", number(), if draw.one_in(12) { draw.pick(&["\n", ",", "x", "99999"]) } else { "" })
        .into_bytes()
}

/// A member of a ZSET: mostly what dq writes there.
fn member(draw: &Draw, key: &str) -> Vec<u8> {
    let number = || format!("{:016}", if draw.one_in(4) { draw.number() } else { NOW * 1_000 }).into_bytes();
    match key {
        _ if draw.one_in(6) => draw.bytes(60),
        "outbox" => {
            let before =
                [position(draw), if draw.one_in(3) { [b";".to_vec(), number()].concat() } else { vec![] }].concat();
            joined([draw.pick(&batches::TARGETS).into(), number(), before, batches::packed(draw)])
        }
        "grouped" => joined([grammar::group(draw).into(), [b"w".to_vec(), number(), number(), id(draw)].concat()]),
        "set" => joined([b"t".to_vec(), id(draw)]),
        _ => id(draw),
    }
}

/// A value of a HASH.
fn value(draw: &Draw, key: &str) -> Vec<u8> {
    let number = || draw.number().to_string();
    match key {
        _ if draw.one_in(6) => draw.bytes(60),
        "jobs" | "metadata" | "far-jobs" | "broadcast-jobs" | "replacements" => grammar::record(draw),
        "running" => format!("{}:{}", number(), number()).into_bytes(),
        "members" => joined([b"home".to_vec(), b"s".to_vec(), draw.pick(&["c", "w", "r", "?"]).into()]),
        "sets" => {
            let counts = (0..4).map(|_| draw.below(3).to_string()).collect::<Vec<_>>().join(",");
            format!("{},{counts},{},0", draw.pick(&["o", "c", "e"]), number()).into_bytes()
        }
        "crashes" => format!("{}{}", number(), draw.pick(&["", "+", "!", " 1;1/2 x"])).into_bytes(),
        _ => number().into_bytes(),
    }
}

/// A command that writes an entry of the key.
fn entry(draw: &Draw, app: &str, (key, kind): (&str, &str)) -> Vec<Vec<u8>> {
    let name = match key {
        "running" | "sequence" | "calls" => format!("{key}:{}", draw.pick(&["n", "outbox:u"])),
        "set" => "set:s".to_owned(),
        _ => key.to_owned(),
    };
    let name = format!("dq:{{{app}:t}}:{name}").into_bytes();
    let score = if draw.one_in(3) { draw.number().to_string() } else { (NOW + draw.below(100_000)).to_string() };
    match kind {
        // A key of another type, mostly.
        _ if draw.one_in(40) => vec![b"SET".to_vec(), name, draw.bytes(30)],
        "hash" => {
            let field = if key == "meta" { draw.pick(&FIELDS).into() } else { id(draw) };
            let value = if field.starts_with(b"outbox") { position(draw) } else { value(draw, key) };
            vec![b"HSET".to_vec(), name, field, value]
        }
        "zset" => vec![b"ZADD".to_vec(), name, score.into_bytes(), member(draw, key)],
        _ if key == "calls" && draw.one_in(2) => vec![b"SET".to_vec(), name, position(draw)],
        _ => vec![b"SET".to_vec(), name, if draw.one_in(3) { draw.bytes(30) } else { score.into_bytes() }],
    }
}

/// The doctor names what is wrong and takes it away, and the one after that finds nothing more to repair.
async fn repaired(provider: &Provider) -> Result<(), String> {
    let mut left = String::new();
    for _ in 0..ROUNDS {
        let mut doctor = provider.inspect().doctor(Some("t")).map_err(|error| error.to_string())?;
        while doctor.step().await.map_err(|error| format!("the doctor fails: {error}"))?.is_some() {}
        let more = doctor.findings().iter().find(|is| is.repair.is_some());
        let Some(more) = more else { return Ok(()) };
        left = format!("{more:?}");
        while doctor.next_repair().is_some() {
            doctor.repair().await.map_err(|error| format!("the doctor repairs nothing: {error}"))?;
        }
    }
    Err(format!("after {ROUNDS} repairs there is {left}"))
}

async fn over(app: &str, provider: &Provider) -> Result<(), String> {
    let error = |error: &dyn std::fmt::Display| error.to_string();
    repaired(provider).await?;
    let runs = Runs::default();
    let factory = ContextFactory::new(app).without_inventory().provide(runs.clone()).listener::<Handles>();
    let store = RedisStore::new(&server().url()).map_err(|e| error(&e))?;
    let node = factory.store(Arc::new(store)).start().await.map_err(|e| error(&e))?;
    let topic = provider.topic("t").expect("it is a topic");
    for number in 0..JOBS {
        let id = format!("innocent-{number}");
        topic.add_json(json!(number)).id(id.as_str()).await.map_err(|e| format!("`{id}` is not added: {e}"))?;
    }
    let ran = async {
        for number in 0..JOBS {
            runs.ended(&format!("innocent-{number}")).await;
        }
    };
    let ran = tokio::time::timeout(SOON, ran).await;
    node.shutdown(Duration::ZERO).await;
    ran.map_err(|_| "a job that has nothing to do with the entries did not run".to_owned())
}

/// Another program writes into the keys of a topic. The doctor names it and sets it aside, and other jobs run.
pub fn keys(draw: &Draw, found: &mut Found) {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let app = format!("keys-{}", RUNS.fetch_add(1, Relaxed));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let provider = Provider::connect(app.as_str(), server().url()).await.expect("the server answers");
        let topic = provider.topic("t").expect("it is a topic");
        for number in 0..2 {
            let id = format!("known-{number}");
            topic.add_json(json!(number)).id(id.as_str()).after("1h").await.expect("the server answers");
        }
        let (mut stream, keys) = (server().connect(), topic_keys());
        for _ in 0..ENTRIES {
            let entry = entry(draw, &app, keys[draw.below(keys.len() as u64) as usize]);
            found.input(!ask(&mut stream, &entry).starts_with('-'));
        }
        if let Err(what) = over(&app, &provider).await {
            found.lost(what);
        }
    });
}
