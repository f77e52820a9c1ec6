//! Job sets: a job that is added once when all members of a set have ended.

use dq::prelude::*;
use dq::provider::{CallError, Invalid, OnDead, Refusal, SetCounts, SetRefusal, SetState};
use dq::testing::Harness;
use serde::{Deserialize, Serialize};

use crate::scripted_listener::{HOUR, Log, MINUTE, Script, TestJob, default_settings, start, test_job};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "row")]
struct Row {
    #[job(id)]
    row: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "imported")]
struct Imported {
    #[job(id)]
    import: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "news", deliver = "broadcast")]
struct News {
    #[job(id)]
    number: u64,
}

#[delay_listener(register = false)]
async fn rows(job: Job<Row>, channel: Channel, log: &Log) -> Result<Decided, JobError> {
    log.record(format_args!("row {}", job.row));
    Ok(if job.row.starts_with("dead") { channel.dead("bad row") } else { channel.ack() })
}

#[delay_listener(register = false)]
async fn imported(job: Job<Imported>, channel: Channel, log: &Log) -> Result<Decided, JobError> {
    let count = |name| job.header(name).unwrap_or("none");
    let [acked, dead, left] = ["dq-set-acked", "dq-set-dead", "dq-set-left"].map(count);
    log.record(format_args!("imported {}: {acked} {dead} {left}", job.import));
    Ok(channel.ack())
}

/// Acks; a job `adds` has two rows as members of its set before.
fn adds_rows() -> Script {
    Script::new(|job, channel| async move {
        if job.id.as_str() != "adds" {
            return Ok(channel.ack());
        }
        Ok(channel.ack().then(|next| {
            next.add(row("late-1")).after("10s").member_of::<Imported>("s");
            next.add(row("dead-2")).member_of::<Imported>("s").on_dead(OnDead::Wait);
        })?)
    })
}

fn row(row: &str) -> Row {
    Row { row: row.to_owned() }
}

async fn node(log: &Log) -> Harness {
    let log = log.clone();
    start(move |factory| {
        let factory = adds_rows().on(factory, default_settings);
        factory.provide(log).listener::<rows>().listener::<imported>()
    })
    .await
}

/// What the last job of a set said, without its time; nothing if there was none.
fn ends(log: &Log) -> Vec<String> {
    log.take_without_times().into_iter().filter(|line| line.starts_with("imported")).collect()
}

stores!(a_job_comes_once_when_all_members_of_its_set_have_ended: memory, file, redis);
async fn a_job_comes_once_when_all_members_of_its_set_have_ended() {
    let log = Log::new();
    let dq = node(&log).await;
    let set = dq.provider().job_set::<Imported>("s");
    for _ in 0..2 {
        set.add_many(["a", "dead-b", "late"].map(row)).after(MINUTE).await.unwrap();
        set.add(test_job("c")).await.unwrap();
    }
    let seen = set.then(Imported { import: 7 }).await.unwrap();
    assert_eq!((seen.state, seen.counts.members), (SetState::Closed, 4));
    dq.provider().delete::<Row>("late").await.unwrap();
    dq.settle().await;
    assert_eq!(ends(&log), [""; 0]);
    dq.advance(HOUR).await;
    assert_eq!(ends(&log), ["imported 7: 2 1 1"]);
    let seen = set.seen().await.unwrap().unwrap();
    assert_eq!((seen.state, seen.counts), (SetState::Ended, SetCounts { members: 4, acked: 2, dead: 1, left: 1 }));
    set.then(Imported { import: 7 }).await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(ends(&log), [""; 0]);
}

stores!(a_handler_adds_members_to_its_set_before_its_own_end: memory, file, redis);
async fn a_handler_adds_members_to_its_set_before_its_own_end() {
    let log = Log::new();
    let dq = node(&log).await;
    let set = dq.provider().job_set::<Imported>("s");
    set.add(test_job("adds")).await.unwrap();
    set.then(Imported { import: 8 }).await.unwrap();
    dq.settle().await;
    let seen = set.seen().await.unwrap().unwrap();
    assert_eq!((seen.counts.members, seen.counts.acked, ends(&log).len()), (3, 1, 0));
    dq.advance(MINUTE).await;
    let seen = set.seen().await.unwrap().unwrap();
    let waits_for: Vec<_> = seen.waits_for.iter().map(|(topic, id)| (topic.as_str(), id.as_str())).collect();
    assert_eq!((seen.counts.acked, waits_for), (2, vec![("row", "dead-2")]), "it waits for the DEAD one");
    dq.provider().delete::<Row>("dead-2").await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(ends(&log), ["imported 8: 2 0 1"]);
}

stores!(a_set_may_wait_for_its_dead_members_or_cancel_the_rest: memory, file, redis);
async fn a_set_may_wait_for_its_dead_members_or_cancel_the_rest() {
    let log = Log::new();
    let dq = node(&log).await;
    let set = dq.provider().job_set::<Imported>("s").on_dead(OnDead::CancelRest);
    set.add_many((0..500).map(|n| row(&n.to_string()))).after(HOUR).await.unwrap();
    set.add(row("dead")).await.unwrap();
    set.then(Imported { import: 9 }).await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(ends(&log), ["imported 9: 0 1 500"]);
    assert_eq!(dq.counts::<Row>().await.delayed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_set_refuses_names_the_set() {
    let log = Log::new();
    let dq = node(&log).await;
    let set = dq.provider().job_set::<Imported>("s");
    set.add(row("a")).after(HOUR).await.unwrap();
    set.then(Imported { import: 1 }).await.unwrap();
    let error = set.add(row("b")).await.unwrap_err();
    let refusal = Refusal::JobSet { set: dq::job::JobId::new("s").unwrap(), refusal: SetRefusal::Closed };
    assert!(matches!(&error, CallError::Refused { refusal: known, .. } if *known == refusal), "{error:?}");
    assert_eq!(
        error.to_string(),
        "job set `s` of topic `imported`: the set is closed: add its members before `then`, or from handlers of its members"
    );
    let error = set.add(News { number: 1 }).await.unwrap_err();
    assert!(error.to_string().contains("the jobs of topic `news` are broadcasts"), "{error}");
    let error = dq.provider().job_set::<Imported>("").add(row("a")).await.unwrap_err();
    assert!(matches!(error, CallError::Invalid(_)), "{error}");
    assert!(dq.provider().topic("imported").unwrap().job_set("unknown").await.unwrap().is_none());
    assert_eq!(dq.counts::<TestJob>().await.delayed, 0);
}

stores!(a_member_that_expires_counts_as_dead: memory, file, redis);
async fn a_member_that_expires_counts_as_dead() {
    let log = Log::new();
    let dq = node(&log).await;
    let set = dq.provider().job_set::<Imported>("s");
    let rows = dq.provider().topic("row").unwrap();
    rows.pause().reason("the disk is slow").await.unwrap();
    set.add(row("late")).expires_after("1m").await.unwrap();
    set.then(Imported { import: 2 }).await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(ends(&log), [""; 0]);
    rows.resume().await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(ends(&log), ["imported 2: 0 1 0"]);
}

#[tokio::test(start_paused = true)]
async fn names_and_calls_of_sets_are_bounded() {
    let log = Log::new();
    let dq = node(&log).await;
    let named = |length: usize| dq.provider().job_set::<Imported>("n".repeat(length));
    let error = named(257).add(row("a")).await.unwrap_err();
    assert!(matches!(&error, CallError::Invalid(Invalid::InvalidName(_))), "{error:?}");
    let error = named(257).then(Imported { import: 1 }).await.unwrap_err();
    assert!(matches!(&error, CallError::Invalid(Invalid::InvalidName(_))), "{error:?}");
    let set = named(256);
    let error = set.add_many((0..1_001).map(|n| row(&n.to_string()))).await.unwrap_err();
    let too_many = matches!(error, CallError::Invalid(Invalid::BatchTooLarge { size: 1_001, limit: 1_000, .. }));
    assert!(too_many, "{error:?}");
    assert!(set.seen().await.unwrap().is_none());
    let seen = set.add_many((0..1_000).map(|n| row(&n.to_string()))).after(HOUR).await.unwrap();
    assert_eq!(seen.counts.members, 1_000, "in several requests");
}

/// As tools do it, which know no payload types.
#[tokio::test(start_paused = true)]
async fn a_job_without_a_type_becomes_a_member_or_the_last_job() {
    let log = Log::new();
    let dq = node(&log).await;
    let topic = |name: &str| dq.provider().topic(name).unwrap();
    let member = |id: &str| topic("row").add_json(format!("{{\"row\":\"{id}\"}}")).id(id).after(MINUTE);
    member("exists").await.unwrap();
    let home = topic("imported");
    member("a").member_of(&home, "s").await.unwrap();
    member("exists").replace_existing().member_of(&home, "s").await.unwrap();
    member("dead-b").member_of(&home, "s").on_dead(OnDead::Wait).await.unwrap();
    home.add_json("{\"import\":3}").last_of("s").await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(ends(&log), [""; 0], "it waits for the DEAD one");
    topic("row").delete("dead-b").await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(ends(&log), ["imported 3: 2 0 1"]);
    let error = member("late").member_of(&home, "").await.unwrap_err();
    assert!(matches!(&error, CallError::Invalid(Invalid::InvalidName(_))), "{error:?}");
}
