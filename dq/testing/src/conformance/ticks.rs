//! The outcome of a schedule: one step adds the jobs of its tick, and the schedule waits for the next (rule 30).

use super::broadcasts::{publish, published_ids};
use super::copies::copy;
use super::events::{NODE, add_in_state};
use super::producer::{job, replacing, retained};
use super::topic::{Topic, id, ms, secs};
use dq::job::{Codec, Delivery, JobState, Metadata, Record, State};
use dq::store::step::{Change, Claim, MAX_JOBS, Tick, TickJob, Verdict};
use dq::store::{ChangeKind, ChangeVerdict, JobChange, NewJob, StoreError};
use dq::time::Timestamp;

/// A job of a tick whose payload is its id, due long ago.
pub(super) fn new(name: &str) -> TickJob {
    TickJob { id: id(name), due: Timestamp::EPOCH, deliver: Delivery::Queue, record: job(name).record }
}

/// The record of the schedule after its tick.
fn schedule(text: &str) -> Record {
    Record::new(&Metadata::default(), Codec::Json, text.as_bytes())
}

/// A tick that adds these jobs; the next one is in ten seconds.
pub(super) fn tick(t: &Topic, jobs: Vec<TickJob>) -> Tick {
    Tick { next: Some(t.in_ms(10_000)), schedule: schedule("after"), unless: None, jobs }
}

async fn settle(t: &Topic, claim: &Claim, tick: Tick) -> Verdict {
    t.settle("n", claim, Change::Tick(Box::new(tick))).await
}

/// A tick adds its jobs, and the schedule waits for the next tick with its new record (rule 30).
pub async fn tick_adds_its_jobs_and_waits_for_the_next(t: &Topic) {
    let claim = t.running("n", "s").await;
    let later = TickJob { due: t.in_ms(500), ..new("b") };
    assert_eq!(settle(t, &claim, tick(t, vec![new("a"), later])).await, Verdict::Done);
    assert_eq!(t.due("s").await, t.in_ms(10_000));
    assert_eq!(t.payload("s").await, "after");
    assert_eq!((t.due("a").await, t.payload("a").await), (Timestamp::EPOCH, "a".into()), "a past time stays");
    assert_eq!(t.due("b").await, t.in_ms(500));
    assert_eq!(t.claimed_ids("n").await, ["a"]);
    t.advance(secs(10)).await;
    assert_eq!(t.claimed_ids("n").await, ["b", "s"]);
}

/// Only the run that holds the schedule can tick, and only once, whoever repeats it (rules 10, 30).
pub async fn tick_of_another_run_adds_nothing(t: &Topic) {
    let claim = t.running("n", "s").await;
    t.end("n", &claim, Change::Rollback).await;
    let second = t.claim("n", "s").await;
    assert_eq!(settle(t, &claim, tick(t, vec![new("stale")])).await, Verdict::Stale);
    assert_eq!(t.state("stale").await, None);
    assert_eq!(settle(t, &second, tick(t, vec![new("a")])).await, Verdict::Done);
    t.run("n", "a", Change::Ack).await;
    assert_eq!(settle(t, &second, tick(t, vec![new("a")])).await, Verdict::Stale);
    assert_eq!((t.state("a").await, t.state("s").await), (None, Some(State::Delayed)));
}

/// A tick that a dead node did not settle is the tick of the next node (rule 30).
pub async fn tick_of_a_dead_node_is_claimed_again(t: &Topic) {
    let claim = t.running("n", "s").await;
    t.crash("n").await;
    let again = t.claim("m", "s").await;
    assert_eq!(again.token.due, claim.token.due);
    let change = Change::Tick(Box::new(tick(t, vec![new("a")])));
    assert_eq!(t.settle("m", &again, change).await, Verdict::Done);
    t.advance(secs(10)).await;
    let claims = t.claims("n").await;
    assert_eq!(claims.iter().map(|claim| claim.crashes).collect::<Vec<_>>(), [0, 0], "the tick cleared the crash");
}

/// A job whose id is known is left out, and the others are added; a DONE one does not count (rules 2, 30).
pub async fn tick_leaves_known_jobs(t: &Topic) {
    t.add_later("known", secs(3_600)).await;
    t.add_later("near", secs(60)).await;
    t.add_job(retained("done")).await;
    let done = t.claim("n", "done").await;
    t.end("n", &done, Change::Ack).await;
    let claim = t.running("n", "s").await;
    let jobs = ["known", "near", "done", "a"].map(|name| TickJob { record: schedule("new"), ..new(name) });
    assert_eq!(settle(t, &claim, tick(t, jobs.into())).await, Verdict::Done);
    assert_eq!((t.payload("known").await, t.payload("near").await), ("known".into(), "near".into()));
    assert_eq!((t.due("known").await, t.due("near").await), (t.in_ms(3_600_000), t.in_ms(60_000)));
    assert_eq!(t.claimed_ids("n").await, ["a", "done"]);
    assert_eq!(t.payload("done").await, "new");
}

/// While the last job waits, runs or is UNACKED, a tick that asks for it adds none; the schedule goes on (rule 30).
pub async fn tick_adds_nothing_until_the_last_job_has_ended(t: &Topic) {
    for state in State::ALL {
        let last = add_in_state(t, "last", state).await;
        let claim = t.running("n", "s").await;
        let request = Tick { unless: Some((id("last"), schedule("skipped"))), ..tick(t, vec![new("a")]) };
        assert_eq!(settle(t, &claim, request).await, Verdict::Done);
        assert_eq!(t.state("a").await.is_some(), matches!(state, State::Dead | State::Done), "the last job is {state}");
        assert_eq!(t.payload("s").await, if matches!(state, State::Dead | State::Done) { "after" } else { "skipped" });
        assert_eq!(t.due("s").await, t.in_ms(10_000));
        if let Some(last) = last {
            t.end(NODE, &last, Change::Ack).await;
        }
        for name in ["a", "s", "last"] {
            t.delete(name).await;
        }
    }
    let claim = t.running("n", "s").await;
    let request = Tick { unless: Some((id("unknown"), schedule("skipped"))), ..tick(t, vec![new("a")]) };
    assert_eq!(settle(t, &claim, request).await, Verdict::Done);
    assert_eq!(t.state("a").await, Some(State::Delayed));
}

/// A last job that is DEAD or DONE has not ended while its broadcast waits, and neither has one whose broadcast alone is left (rule 30).
pub async fn tick_waits_for_the_broadcast_of_the_last_job(t: &Topic) {
    for change in [Change::Dead, Change::Ack, Change::Drop] {
        t.add_job(NewJob { deliver: Delivery::Both, ..retained("last") }).await;
        let last = t.claim("n", "last").await;
        t.end("n", &last, change.clone()).await;
        for (name, is_added) in [("early", false), ("a", true)] {
            let claim = t.running("n", "s").await;
            let request = Tick { unless: Some((id("last"), schedule("skipped"))), ..tick(t, vec![new(name)]) };
            assert_eq!(settle(t, &claim, request).await, Verdict::Done);
            assert_eq!(t.state(name).await.is_some(), is_added, "{change:?}");
            assert_eq!(t.payload("s").await, if is_added { "after" } else { "skipped" }, "{change:?}");
            t.delete("s").await;
            assert_eq!(publish(t, "n", 10).await.published, usize::from(!is_added));
        }
        t.delete("a").await;
        t.delete("last").await;
    }
}

/// A tick takes effect behind the other outcomes of its request, wherever it stands among them (rule 30).
pub async fn tick_sees_what_its_request_has_ended(t: &Topic) {
    t.add_job(retained("last")).await;
    for name in ["a", "s"] {
        t.add(name).await;
    }
    let claims = t.claims("n").await;
    let [a, last, s] = &claims[..] else { panic!("{claims:?}") };
    let request = Tick {
        unless: Some((id("last"), schedule("skipped"))),
        ..tick(t, vec![TickJob { record: schedule("new"), ..new("a") }])
    };
    let ticked = s.outcome(Change::Tick(Box::new(request)));
    let settled = t.settle_all("n", vec![ticked, a.outcome(Change::Ack), last.outcome(Change::Ack)]).await;
    assert_eq!(settled.verdicts, [Verdict::Done, Verdict::Done, Verdict::Done]);
    assert_eq!((t.payload("a").await, t.state("last").await), ("new".into(), Some(State::Done)));
}

/// The jobs of ticks count among those that a request may touch (rule 5).
pub async fn tick_over_the_limit_changes_nothing(t: &Topic) {
    let claim = t.running("n", "s").await;
    let jobs = (0..MAX_JOBS).map(|n| new(&format!("{n:04}"))).collect();
    let request = t.settle_of("n", &claim, Change::Tick(Box::new(tick(t, jobs))));
    assert!(matches!(t.link("n").step(request).await, Err(StoreError::OverLimit { .. })));
    assert_eq!((t.state("0000").await, t.state("s").await), (None, Some(State::Running)));
    let jobs = (1..MAX_JOBS).map(|n| new(&format!("{n:04}"))).collect();
    assert_eq!(settle(t, &claim, tick(t, jobs)).await, Verdict::Done);
    assert_eq!(t.counts().await.delayed, MAX_JOBS);
}

/// The last tick adds its jobs and removes the schedule (rule 30).
pub async fn last_tick_removes_the_schedule(t: &Topic) {
    let claim = t.running("n", "s").await;
    assert_eq!(settle(t, &claim, Tick { next: None, ..tick(t, vec![new("a")]) }).await, Verdict::Done);
    assert_eq!((t.state("s").await, t.state("a").await), (None, Some(State::Delayed)));
}

/// The next tick is later than this one, whatever the node has computed (rule 30).
pub async fn next_tick_is_later_than_this_one(t: &Topic) {
    let claim = t.running("n", "s").await;
    let due = claim.token.due;
    for next in [Timestamp::EPOCH, due] {
        let claim = if next == due { t.claim("n", "s").await } else { claim.clone() };
        settle(t, &claim, Tick { next: Some(next), ..tick(t, vec![]) }).await;
        assert_eq!(t.due("s").await, Timestamp::from_millis(claim.token.due.as_millis() + 1));
        t.advance(ms(5)).await;
    }
}

/// A schedule that was deleted while it ran adds nothing more. One that was replaced adds the jobs of this tick, and then waits as the
/// new one says (rules 13, 30).
pub async fn tick_obeys_a_pending_command(t: &Topic) {
    let claim = t.running("n", "s").await;
    assert!(t.delete("s").await.changed);
    assert_eq!(settle(t, &claim, tick(t, vec![new("a")])).await, Verdict::Done);
    assert_eq!((t.state("s").await, t.state("a").await), (None, None));
    let claim = t.running("n", "s").await;
    t.add_job(replacing("s", "replacement")).await;
    assert_eq!(settle(t, &claim, tick(t, vec![new("a")])).await, Verdict::Done);
    assert_eq!((t.payload("s").await, t.payload("a").await), ("replacement".into(), "a".into()));
}

/// The jobs of a tick go to the queue, to the broadcasts, or to both (rules 24, 30).
pub async fn jobs_of_a_tick_go_where_they_should(t: &Topic) {
    let claim = t.running("n", "s").await;
    let mut subscriber = t.subscribe("n").await;
    let to = |name: &str, deliver| TickJob { deliver, due: t.in_ms(0), ..new(name) };
    let jobs = vec![to("queue", Delivery::Queue), to("broadcast", Delivery::Broadcast), to("both", Delivery::Both)];
    assert_eq!(settle(t, &claim, tick(t, jobs)).await, Verdict::Done);
    assert_eq!(t.claimed_ids("n").await, ["both", "queue"]);
    publish(t, "n", 10).await;
    assert_eq!(published_ids(&subscriber.received(t).await), ["both", "broadcast"]);
}

/// Large schedules and jobs keep what they have, and so does a retention (rules 5, 30).
pub async fn tick_keeps_large_records_and_retentions(t: &Topic) {
    let large = "x".repeat(9_000);
    let metadata = Metadata { retain: secs(60), headers: vec![("a".into(), "b".into())], ..Metadata::default() };
    for round in 0..2 {
        let claim = t.running("n", &format!("s{round}")).await;
        let record = Record::new(&metadata, Codec::Json, large.as_bytes());
        let kept = TickJob { record, ..new(&format!("kept{round}")) };
        let text = if round == 0 { &large } else { "small" };
        let request = Tick { schedule: schedule(text), ..tick(t, vec![kept]) };
        assert_eq!(settle(t, &claim, request).await, Verdict::Done);
        assert_eq!(t.payload(&format!("s{round}")).await, text);
        let ran = t.claim("n", &format!("kept{round}")).await;
        assert_eq!(ran.record.metadata(), Ok(metadata.clone()));
        t.end("n", &ran, Change::Ack).await;
        assert_eq!(t.place(&format!("kept{round}")).await, JobState::Done { until: t.in_ms(60_000) });
    }
}

async fn schedules(t: &Topic, after: Option<&str>, limit: usize) -> Vec<String> {
    let after = after.map(id);
    let ids = t.store.schedules(&t.key, after.as_ref(), limit).await.expect("the schedules are listed");
    ids.iter().map(ToString::to_string).collect()
}

/// The schedules of a topic are listed in order, page by page, and other jobs are not among them (rule 30).
pub async fn schedules_are_listed_in_order(t: &Topic) {
    assert_eq!(schedules(t, None, 9).await, [""; 0]);
    for name in ["dq:schedule:c", "a", "dq:schedule:a", "dq:tick:a@1", "z"] {
        t.add(name).await;
    }
    t.add_later("dq:schedule:b", secs(3_600)).await;
    assert_eq!(t.add_all(vec![job("dq:schedule:a"), job("dq:schedule:d")]).await.len(), 2);
    assert_eq!(schedules(t, None, 9).await, ["a", "b", "c", "d"].map(|name| format!("dq:schedule:{name}")));
    assert_eq!(schedules(t, None, 2).await, ["dq:schedule:a", "dq:schedule:b"]);
    assert_eq!(schedules(t, Some("dq:schedule:b"), 2).await, ["dq:schedule:c", "dq:schedule:d"]);
    assert_eq!(schedules(t, Some("dq:schedule:d"), 2).await, [""; 0]);
    assert!(t.store.schedules(&t.key, None, MAX_JOBS + 1).await.is_err());
}

/// A schedule is listed from its add or import until its last tick, or until a command removes it (rule 30).
pub async fn schedule_is_listed_as_long_as_it_exists(t: &Topic) {
    let claim = t.running("n", "dq:schedule:s").await;
    assert_eq!(settle(t, &claim, tick(t, vec![new("a")])).await, Verdict::Done);
    assert_eq!(schedules(t, None, 9).await, ["dq:schedule:s"]);
    t.advance(secs(10)).await;
    let claim = t.claims("n").await.into_iter().find(|claim| claim.id == id("dq:schedule:s")).expect("it is due");
    assert_eq!(settle(t, &claim, Tick { next: None, ..tick(t, vec![]) }).await, Verdict::Done);
    assert_eq!(schedules(t, None, 9).await, [""; 0]);
    t.import_new(copy("dq:schedule:i", State::Delayed, t.in_ms(60_000))).await;
    assert_eq!(schedules(t, None, 9).await, ["dq:schedule:i"]);
    t.delete("dq:schedule:i").await;
    assert_eq!(schedules(t, None, 9).await, [""; 0]);
    let claim = t.running("n", "dq:schedule:s").await;
    t.delete("dq:schedule:s").await;
    assert_eq!(settle(t, &claim, tick(t, vec![])).await, Verdict::Done);
    assert_eq!((t.state("dq:schedule:s").await, schedules(t, None, 9).await), (None, vec![]));
}

/// The record of a tick has a version, and a change that names an earlier one does nothing (rules 28, 30).
pub async fn tick_is_a_change(t: &Topic) {
    let claim = t.running("n", "dq:schedule:s").await;
    let version = Metadata { version: 1, ..Metadata::default() };
    let after = Tick { schedule: Record::new(&version, Codec::Json, b"after"), ..tick(t, vec![]) };
    assert_eq!(settle(t, &claim, after).await, Verdict::Done);
    let update = |if_version| JobChange {
        id: id("dq:schedule:s"),
        what: ChangeKind::Update(schedule("mine")),
        if_version: Some(if_version),
        by: None,
    };
    let late = t.change_all(vec![update(0)]).await.remove(0);
    assert_eq!((late.verdict, late.version), (ChangeVerdict::OtherVersion, 1));
    assert_eq!(t.payload("dq:schedule:s").await, "after");
    let changed = t.change_all(vec![update(1)]).await.remove(0);
    assert_eq!((changed.verdict, changed.version), (ChangeVerdict::Changed, 2));
    assert_eq!((t.payload("dq:schedule:s").await, t.due("dq:schedule:s").await), ("mine".into(), t.in_ms(10_000)));
}
