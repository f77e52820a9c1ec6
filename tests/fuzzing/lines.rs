//! Export lines: an import of them, a node that runs the jobs, and an export that another store takes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use dq::environment::TokioClock;
use dq::job::{AppName, JobId, ProducerId, TopicKey};
use dq::store::memory::MemoryStore;
use dq::store::redis::RedisStore;
use dq::store::{OnDuplicate, Store};
use dq_cli::Repeating;
use dq_cli::export::{self, Choice};
use dq_cli::failure::Failure;
use dq_cli::import::{self, Options};
use dq_cli::progress::Progress;
use dq_testing::disk::SimulatedDisk;
use serde_json::{Value, json};

use crate::answers::server;
use crate::draw::{Draw, NOW};
use crate::journal::{on, reopened};
use crate::node::{Node, key, lasting, paused};
use crate::target::Found;
use crate::{batches, grammar};

/// How many lines a node gets at a time.
const LINES: u64 = 12;
const REPEATING: Repeating = Repeating(Duration::from_secs(5));

/// The line of a job.
fn line(draw: &Draw, number: u64) -> Value {
    let id = if draw.one_in(9) { grammar::id(draw) } else { format!("{number}{}", draw.word()) };
    let state = draw.pick(&["delayed", "delayed", "delayed", "unacked", "dead", "done", "running"]);
    let at = if draw.one_in(4) { draw.number() } else { NOW - 50_000 + draw.below(100_000) };
    let mut line = json!({ "topic": "t", "id": id, "state": state, "at": at });
    if draw.one_in(6) {
        line["broadcast"] = json!(true);
    }
    if draw.one_in(3) {
        line["record_base64"] = json!(BASE64_STANDARD.encode(grammar::record(draw)));
        return line;
    }
    let number = || if draw.one_in(3) { draw.number() } else { draw.below(9) };
    if draw.one_in(6) {
        line["crashes"] = json!(number());
    }
    if draw.one_in(5) {
        line["taken_until"] = json!(if draw.one_in(3) { draw.number() } else { NOW + draw.below(200_000) });
    }
    line["metadata"] = metadata(draw, number);
    let is_schedule = line["id"].as_str().is_some_and(|id| id.starts_with("dq:schedule:"));
    match draw.below(12) {
        0 => line["payload_base64"] = json!(BASE64_STANDARD.encode(grammar::payload(draw))),
        _ if is_schedule => line["payload"] = grammar::definition(draw),
        _ => line["payload"] = grammar::value(draw, 3),
    }
    if draw.one_in(30) {
        line[draw.text()] = grammar::value(draw, 1);
    }
    line
}

/// What the record of a line has besides the payload.
fn metadata(draw: &Draw, number: impl Fn() -> u64) -> Value {
    let mut metadata = json!({});
    let numbers = ["attempts", "delay", "expires_at", "retain", "parked_by", "version", "first_added"];
    for field in numbers.into_iter().filter(|_| draw.one_in(6)) {
        metadata[field] = json!(number());
    }
    if draw.one_in(6) {
        metadata["weight"] = json!(if draw.one_in(4) { draw.number() } else { 1 + draw.below(10_000) });
    }
    if draw.one_in(4) {
        metadata["group"] = json!(grammar::group(draw));
        metadata["group_order"] = json!(if draw.one_in(3) { draw.number() } else { NOW * 1_000 + draw.below(1_000) });
    }
    for field in ["kept_state", "result"].into_iter().filter(|_| draw.one_in(8)) {
        metadata[field] = grammar::value(draw, 2);
    }
    if draw.one_in(5) {
        metadata["cause"] =
            json!(draw.pick(&["error", "panic", "timeout", "crash", "decode", "expired", "defect", "why"]));
    }
    if draw.one_in(6) {
        metadata["exhausted"] = json!(draw.one_in(2));
    }
    if draw.one_in(5) {
        metadata["priority"] = json!(draw.pick(&["high", "low", "normal", "urgent"]));
    }
    if draw.one_in(4) {
        metadata["retry"] = json!(grammar::retry(draw));
    }
    if draw.one_in(4) {
        metadata["headers"] = (0..draw.below(4)).map(|_| json!([draw.text(), draw.text()])).collect();
    }
    if draw.one_in(4) {
        metadata["error"] = json!(draw.text());
    }
    if draw.one_in(30) {
        metadata[draw.text()] = grammar::value(draw, 1);
    }
    metadata
}

/// The line of follow-ups that have not arrived.
fn follow_ups(draw: &Draw) -> Value {
    let position = || if draw.one_in(4) { draw.number() } else { NOW * 1_000 + draw.below(1_000) };
    let mut line = json!({
        "topic": draw.pick(&["t", "u"]), "target": draw.pick(&batches::TARGETS), "position": position(),
        "after": if draw.one_in(2) { 0 } else { position() },
        "batch_base64": BASE64_STANDARD.encode(batches::packed(draw)),
    });
    if draw.one_in(4) {
        line["written"] = json!(position());
    }
    if draw.one_in(4) {
        line["after_written"] = json!(position());
    }
    line
}

/// Imports into the app of the text, or into this one.
async fn imported(store: &dyn Store, app: Option<&AppName>, text: &str) -> Result<(), Failure> {
    // Batches of one producer under the same number would be one batch.
    static IMPORTS: AtomicU64 = AtomicU64::new(0);
    let producer = ProducerId::new(format!("fuzz-{}", IMPORTS.fetch_add(1, Relaxed)));
    let on_duplicate = OnDuplicate::Keep;
    let app = app.cloned();
    let options = Options { app, on_duplicate, partial: true, cut_ahead: false, repeating: REPEATING, producer };
    import::import(store, &options, text.as_bytes(), &Progress::hidden()).await.map(drop)
}

fn memory() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Arc::new(TokioClock::at(NOW * 1_000))))
}

/// Imports each line by itself, so that a bad one stops no other. Returns the ids of the jobs that the store took.
async fn import_all(store: &dyn Store, app: &AppName, draw: &Draw, found: &mut Found) -> Vec<JobId> {
    let start = format!(
        "{{\"export\":{{\"format\":1,\"app\":\"test\"}}}}\n{{\"topic\":{{\"topic\":\"t\",\"fence\":{}}}}}\n",
        if draw.one_in(8) { draw.number() } else { draw.below(9) }
    );
    let (mut ids, key) = (Vec::new(), TopicKey { app: app.clone(), topic: key().topic });
    for number in 0..LINES {
        if draw.one_in(5) {
            let line = json!({ "follow_ups": follow_ups(draw) });
            found.input(imported(store, Some(app), &format!("{start}{line}\n")).await.is_ok());
            continue;
        }
        let line = line(draw, number);
        let text = json!({ "job": line }).to_string();
        let text = if draw.one_in(30) { draw.spoiled(&text) } else { text };
        let is_accepted = imported(store, Some(app), &format!("{start}{text}\n")).await.is_ok();
        found.input(is_accepted);
        // A broadcast is gone once it is published.
        let stays = is_accepted && line["broadcast"] != true;
        let read: Value = serde_json::from_str(&text).unwrap_or_default();
        let id = read["job"]["id"].as_str().and_then(|id| JobId::new(id).ok());
        let Some(id) = id.filter(|_| stays) else { continue };
        let stored = store.get(&key, std::slice::from_ref(&id)).await.expect("the store answers");
        if stored.iter().all(Option::is_none) && draw.is_left_alone(&id) {
            found.lost(format!("it was imported and is not there: {}", text.escape_debug()));
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// What is in the store must be within the limits, as for a caller.
async fn check_limits(store: &dyn Store, app: &AppName, ids: &[JobId], found: &mut Found) {
    let key = TopicKey { app: app.clone(), topic: key().topic };
    for stored in store.get(&key, ids).await.expect("the store answers").into_iter().flatten() {
        if let Err(over) = stored.record.check_new() {
            found.let_in(format!("a record that is over a limit: {over}"));
        }
    }
}

async fn exported(store: &dyn Store, app: &AppName) -> Result<String, Failure> {
    let mut out = Vec::new();
    let choice = Choice { topics: Vec::new(), states: Vec::new(), running: true };
    export::export(store, app, &choice, REPEATING, &mut out, &Progress::hidden()).await?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Does something to a job that a person or program may do.
async fn change(node: &Node, draw: &Draw, id: &JobId) -> bool {
    let topic = node.dq.provider().topic("t").expect("it is a topic");
    let id = id.as_str();
    match draw.below(12) {
        0 => drop(topic.reschedule(id, Duration::from_millis(draw.time())).await),
        1 => drop(topic.extend_by(id, Duration::from_millis(draw.number())).await),
        2 => drop(topic.run_now(id).await),
        3 => drop(topic.update_json(id, grammar::value(draw, 2)).await),
        4 => drop(topic.requeue(id).await),
        5 => return topic.delete(id).await.is_ok(),
        6 => return topic.ack(id).await.is_ok(),
        _ => {}
    }
    false
}

/// The lines of an export that are about a job, without what an import leaves out: that an id was taken until now, because it is free, and a
/// fence of a job that is not parked.
fn jobs_of(text: &str, now: u64) -> BTreeSet<String> {
    let job = |line: &str| {
        let mut line: Value = serde_json::from_str(line).ok()?;
        let job = line.get_mut("job")?.as_object_mut()?;
        if job.get("taken_until").and_then(Value::as_u64).is_some_and(|until| until <= now) {
            job.remove("taken_until");
        }
        let is_parked = job.get("state").is_some_and(|state| state == "unacked");
        if let Some(metadata) = job.get_mut("metadata").and_then(Value::as_object_mut).filter(|_| !is_parked) {
            metadata.remove("parked_by");
        }
        Some(line.to_string())
    };
    text.lines().filter_map(job).collect()
}

/// What is in a store is exported, and imported into another one, whose export has the same jobs.
async fn moves(store: &dyn Store, app: &AppName, to: (&dyn Store, &AppName), found: &mut Found) {
    let text = match exported(store, app).await {
        Ok(text) => text,
        // A set that has not ended is refused by its name.
        Err(failure) if failure.to_string().contains("has not ended, and nothing was exported") => return,
        Err(failure) => return found.lost(format!("it cannot be exported: {failure}")),
    };
    if let Err(failure) = imported(to.0, Some(to.1), &text).await {
        return found.lost(format!("the export cannot be imported: {failure}"));
    }
    let again = match exported(to.0, to.1).await {
        Ok(text) => text,
        Err(failure) => return found.lost(format!("what was imported cannot be exported: {failure}")),
    };
    // Redis tells whole seconds.
    let now = to.0.contact().await.expect("the store answers").as_millis() + 999;
    let (before, after) = (jobs_of(&text, now), jobs_of(&again, now));
    // Follow-ups arrive with the import, and change jobs.
    if before != after && !text.contains("{\"follow_ups\"") {
        let (gone, new): (Vec<_>, Vec<_>) =
            (before.difference(&after).take(2).collect(), after.difference(&before).take(2).collect());
        found.lost(format!("an export is not as the one before: without {gone:?}, with {new:?}"));
    }
}

/// Jobs are imported, changed, run, retried and parked by a node, exported, and imported into another store. Half of the stores are
/// directories, which the next process opens before the export.
pub fn lines(draw: &Draw, found: &mut Found) {
    paused(async {
        let (disk, app) = (draw.one_in(2).then(SimulatedDisk::default), key().app);
        let store: Arc<dyn Store> = match &disk {
            None => memory(),
            Some(disk) => {
                let store = on(disk);
                store.open().await.expect("an empty disk opens");
                store
            }
        };
        let ids = import_all(&*store, &app, draw, found).await;
        check_limits(&*store, &app, &ids, found).await;
        let mut ids = lasting(&*store, ids, draw).await;
        let node = Node::start(store.clone()).await;
        let mut left = Vec::new();
        for id in ids.drain(..) {
            if !change(&node, draw, &id).await {
                left.push(id);
            }
        }
        node.runs_innocent_jobs(found).await;
        node.looks(found).await;
        node.still_has(&left, found).await;
        let other = memory();
        match &disk {
            None => moves(&*store, &app, (&*other, &app), found).await,
            Some(disk) => match reopened(disk).await {
                Ok(next) => moves(&*next, &app, (&*other, &app), found).await,
                Err(what) => found.lost(what),
            },
        }
    });
}

/// The same lines on Redis: an import, an export over other connections, and an import into another app.
pub fn redis(draw: &Draw, found: &mut Found) {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Relaxed);
    let [app, other] = ["one", "two"].map(|name| AppName::new(format!("lines-{name}-{run}")).expect("it is a name"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let [store, next] = [(); 2].map(|()| RedisStore::new(&server().url()).expect("it is a URL"));
        let ids = import_all(&store, &app, draw, found).await;
        check_limits(&store, &app, &ids, found).await;
        moves(&next, &app, (&store, &other), found).await;
    });
}

#[cfg(test)]
mod tests {
    use dq_cli::line::{FORMAT, Line};

    use super::*;

    /// The names that a type of a line knows, from its error about another one, which `{}` stands for in this text.
    fn known(text: &str) -> BTreeSet<String> {
        let error =
            serde_json::from_str::<Line>(&text.replace("{}", "\"?\":1")).expect_err("it is no name").to_string();
        let (_, names) = error.split_once("expected ").unwrap_or_else(|| panic!("{error}"));
        names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    fn keys(value: &Value) -> impl Iterator<Item = String> {
        value.as_object().into_iter().flat_map(|object| object.keys().cloned())
    }

    #[test]
    fn each_field_of_a_line_is_generated() {
        let [mut job, mut metadata, mut entry] = [const { BTreeSet::new() }; 3];
        for seed in 0..500 {
            let draw = Draw::new(seed);
            let line = line(&draw, seed);
            job.extend(keys(&line));
            metadata.extend(keys(&line["metadata"]));
            entry.extend(keys(&follow_ups(&draw)));
        }
        for (text, generated) in [
            ("{\"job\":{{}}}", job),
            ("{\"job\":{\"metadata\":{{}}}}", metadata),
            ("{\"follow_ups\":{{}}}", entry),
            ("{\"topic\":{{}}}", ["topic", "fence"].map(str::to_owned).into()),
            ("{\"export\":{{}}}", ["format", "app"].map(str::to_owned).into()),
            ("{\"end\":{{}}}", ["jobs", "follow_ups"].map(str::to_owned).into()),
            ("{{}}", ["export", "topic", "job", "follow_ups", "end"].map(str::to_owned).into()),
        ] {
            let missing: Vec<_> = known(text).difference(&generated).cloned().collect();
            assert!(missing.is_empty(), "the grammar of lines has no {missing:?} in {text}");
        }
        assert_eq!(FORMAT, 1);
    }
}
