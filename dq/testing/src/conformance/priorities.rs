//! Which of the due jobs of a topic a claim takes first (rule 4).

use std::time::Duration;

use super::changes::update;
use super::copies::import_of;
use super::events::add_in_state;
use super::producer::{changed, delayed, job, replacing, with_metadata};
use super::setting::drain;
use super::ticks::{new, tick};
use super::topic::{FALLBACK, Topic, id, ids, ms, secs};
use dq::job::{Metadata, Priority, Record, State};
use dq::store::step::{Change, RejoinDue, TickJob, Verdict};
use dq::store::{AddOutcome, ChangeKind, Due, LinkOptions, NewJob, OnDuplicate, PageRequest, Signal};

const AGEING: Duration = Duration::from_secs(600);
const HOUR: Duration = Duration::from_secs(3_600);

/// A job with the priority that its name begins with, due after `delay`.
pub(super) fn ranked(name: &str, delay: Duration) -> NewJob {
    let word = name.split('-').next().unwrap_or_default();
    let priority = word.parse().expect("the name begins with a priority");
    changed(delayed(name, delay), |metadata| metadata.priority = priority)
}

async fn add(t: &Topic, names: &[&str]) {
    let jobs = names.iter().map(|name| ranked(name, Duration::ZERO)).collect();
    assert!(t.add_all(jobs).await.iter().all(|outcome| *outcome == AddOutcome::Added), "{names:?}");
}

/// The ids of up to `limit` claims of a node, in their order.
async fn claimed(t: &Topic, node: &str, limit: usize) -> Vec<String> {
    ids(&t.transfer(node, limit).await.claims).into_iter().map(str::to_owned).collect()
}

/// Of jobs that are due together, the high ones go first, and the low ones last (rule 4).
pub async fn due_jobs_are_claimed_by_their_priorities(t: &Topic) {
    add(t, &["low-a", "normal-a", "high-a", "normal-b", "low-b", "high-b"]).await;
    let first = t.transfer("n", 3).await;
    assert_eq!((ids(&first.claims), first.more), (vec!["high-a", "high-b", "normal-a"], true));
    let rest = t.transfer("n", 10).await;
    assert_eq!((ids(&rest.claims), rest.more), (vec!["normal-b", "low-a", "low-b"], false));
}

/// A job overtakes those of the next lower priority that have been due for less than the ageing longer, and no others (rule 4).
pub async fn job_that_is_due_for_the_ageing_longer_goes_first(t: &Topic) {
    add(t, &["low-a"]).await;
    t.advance(AGEING).await;
    add(t, &["normal-b"]).await;
    t.advance(ms(1)).await;
    add(t, &["normal-c"]).await;
    t.advance(AGEING - ms(1)).await;
    add(t, &["high-d"]).await;
    t.advance(ms(1)).await;
    add(t, &["high-e"]).await;
    assert_eq!(claimed(t, "n", 1).await, ["high-d"], "of equal ranks the highest priority goes first");
    assert_eq!(claimed(t, "n", 10).await, ["normal-b", "low-a", "high-e", "normal-c"]);
}

/// Under a flood of high jobs that never ends, a low one runs once it has been due for twice the ageing (rule 4).
pub async fn low_job_starts_under_a_flood_of_high_ones(t: &Topic) {
    add(t, &["low"]).await;
    let step = AGEING / 4;
    for n in 0..=8 {
        let name = format!("high-{n}");
        add(t, &[&name]).await;
        let answer = t.transfer("n", 1).await;
        assert_eq!(ids(&answer.claims), [name.as_str()], "the low one has been due for {:?}", step * n);
        t.end("n", &answer.claims[0], Change::Ack).await;
        t.advance(if n < 8 { step } else { ms(1) }).await;
    }
    add(t, &["high-last"]).await;
    assert_eq!(claimed(t, "n", 1).await, ["low"]);
}

/// A high job that is not due is not claimed, and hides no other that is (rule 4).
pub async fn job_that_is_not_due_competes_with_none(t: &Topic) {
    t.add_all(vec![ranked("high-later", secs(60)), ranked("high-far", HOUR)]).await;
    add(t, &["low", "normal"]).await;
    assert_eq!(claimed(t, "n", 1).await, ["normal"]);
    let answer = t.transfer("n", 10).await;
    assert_eq!((ids(&answer.claims), answer.more), (vec!["low"], false));
    t.advance(secs(60) - ms(1)).await;
    assert_eq!(claimed(t, "n", 10).await, [""; 0]);
    t.advance(ms(1)).await;
    assert_eq!(claimed(t, "n", 10).await, ["high-later"]);
    t.advance(HOUR).await;
    assert_eq!(claimed(t, "n", 10).await, ["high-far"]);
}

/// The head is the earliest due time of all jobs, whatever their priorities: for sleep, counts, the timeline and signals (rule 23).
pub async fn head_is_the_earliest_of_all_priorities(t: &Topic) {
    for (priority, sooner) in [("low", 5), ("normal", 4), ("high", 3)] {
        let mut watcher = t.subscribe("w").await;
        t.transfer("w", 1).await;
        t.add_job(ranked(&format!("{priority}-last"), secs(9))).await;
        watcher.received(t).await;
        t.add_job(ranked(priority, secs(sooner))).await;
        assert_eq!(watcher.received(t).await, [Signal::Due(Some(t.due(priority).await))], "an earlier {priority} head");
        assert_eq!(t.counts().await.head, Some(t.due(priority).await));
        assert_eq!(t.transfer("w", 1).await.sleep, secs(sooner));
    }
    let mut watcher = t.subscribe("w").await;
    for name in ["normal-x", "low-x", "high-x"] {
        t.add_job(ranked(name, secs(4))).await;
    }
    t.add_job(delayed("plain", secs(4))).await;
    assert_eq!(watcher.received(t).await, [], "none of them is before the head");
    let times = [0, 4_000, 5_000, 10_000].map(|ms| t.in_ms(ms));
    let counts = t.store.due_counts(&t.key, &times).await.expect("it is answered");
    assert_eq!(counts.iter().map(|count| count.jobs).collect::<Vec<_>>(), [1, 5, 4]);
    t.advance(secs(4)).await;
    assert_eq!(t.counts().await.ready, 6);
    let answer = t.transfer("w", 6).await;
    assert_eq!((answer.claims.len(), answer.more, answer.sleep), (6, false, secs(1)));
}

/// However a job comes back to DELAYED, it has its priority (rule 4).
pub async fn priority_survives_every_way_back(t: &Topic) {
    add(t, &["normal"]).await;
    let normal = t.claim("other", "normal").await;
    let back = [
        Change::Rollback,
        Change::Retry(Duration::ZERO),
        Change::Rejoin(RejoinDue::AsAdded),
        Change::Rejoin(RejoinDue::After(Duration::ZERO)),
        Change::Park,
        Change::Dead,
    ];
    for name in ["high", "low"] {
        add(t, &[name]).await;
        for change in back.clone() {
            let text = format!("{name} after {change:?}");
            let claim = t.claim("n", name).await;
            let metadata = Metadata { attempts: 1, ..t.metadata(name).await };
            match &change {
                Change::Retry(_) => t.end_with("n", &claim, change.clone(), metadata).await,
                _ => t.end("n", &claim, change.clone()).await,
            }
            if matches!(change, Change::Park | Change::Dead) {
                t.requeue(name).await;
            }
            assert_eq!(t.metadata(name).await.priority.as_str(), name, "{text}");
        }
        t.claim("n", name).await;
        t.crash("n").await;
        t.advance(ms(1)).await;
        add(t, &["normal-beside", "low-beside", "high-beside"]).await;
        let claims = claimed(t, "m", 10).await;
        let place = claims.iter().position(|claimed| claimed == name);
        assert_eq!(place, Some(if name == "high" { 0 } else { 2 }), "{claims:?}");
        for claimed in claims {
            t.delete(&claimed).await;
        }
        t.release("m").await;
        t.reclaim("n", "m", dq::time::Timestamp::EPOCH, 10).await;
    }
    t.settle("other", &normal, Change::Ack).await;
}

/// A replacement has the priority of the new job; a change of the payload or of the due time, and an extension, keep it (rules 4, 28).
pub async fn only_a_replacement_changes_the_priority(t: &Topic) {
    let priority = async |name: &str| t.metadata(name).await.priority;
    t.add_job(ranked("low", HOUR)).await;
    t.change("low", update("new")).await;
    t.change("low", ChangeKind::ExtendBy(secs(1))).await;
    let extending = NewJob { on_duplicate: OnDuplicate::Extend { at_most: None }, ..delayed("low", HOUR) };
    assert!(matches!(t.add_job(extending).await, AddOutcome::Extended { .. }));
    t.change("low", ChangeKind::Reschedule(Due::After(Duration::ZERO))).await;
    assert_eq!(priority("low").await, Priority::Low);
    t.add("beside").await;
    assert_eq!(claimed(t, "n", 1).await, ["beside"]);
    let run = t.claim("n", "low").await;
    let high = Metadata { priority: Priority::High, ..Metadata::default() };
    let replacement = NewJob { on_duplicate: OnDuplicate::Replace, ..with_metadata("low", &high) };
    assert_eq!(t.add_job(replacement).await, AddOutcome::ReplacementWaits);
    t.end("n", &run, Change::Ack).await;
    t.add("normal").await;
    assert_eq!((priority("low").await, claimed(t, "n", 1).await), (Priority::High, vec!["low".to_owned()]));
    t.end("n", &t.claim("n", "normal").await, Change::Rollback).await;
    t.add_job(replacing("normal", "as it was")).await;
    assert_eq!(
        t.add_job(NewJob { on_duplicate: OnDuplicate::Replace, ..with_metadata("normal", &high) }).await,
        AddOutcome::Replaced(State::Delayed)
    );
    add(t, &["normal-other"]).await;
    assert_eq!(claimed(t, "n", 10).await, ["normal", "normal-other"]);
}

/// Pages have the jobs of all priorities in order of time, then id (queries).
pub async fn pages_have_all_priorities_in_order_of_time(t: &Topic) {
    let mut expected = Vec::new();
    let delays = (1..=4).map(secs).chain([HOUR, HOUR + ms(1)]);
    for (n, delay) in delays.enumerate() {
        for name in ["high", "low", "normal"] {
            let name = format!("{name}-{n}");
            t.add_job(ranked(&name, delay)).await;
            expected.push(name);
        }
    }
    for limit in [1, 2, 3, 7, 100] {
        let paged: Vec<_> = t.pages(State::Delayed, limit).await.iter().map(|job| job.id.to_string()).collect();
        assert_eq!(paged, expected, "pages of {limit}");
        let copies = t.export_part((false, State::Delayed), limit, 1_000_000).await;
        assert_eq!(copies.iter().map(|copy| copy.id.as_str()).collect::<Vec<_>>(), expected, "exports of {limit}");
    }
    let request = PageRequest { state: State::Delayed, after: None, limit: 4, bytes: 1_000_000 };
    let page = t.store.page(&t.key, request).await.expect("it is answered");
    for name in ["low-0", "high-1", "normal-1"] {
        t.delete(name).await;
    }
    let request = PageRequest { state: State::Delayed, after: page.next, limit: 2, bytes: 1_000_000 };
    let rest = t.store.page(&t.key, request).await.expect("it is answered").jobs;
    assert_eq!(rest.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["low-1", "high-2"]);
}

/// Delete, cancel, ack and replace find a job of any priority, near or far (rule 2).
pub async fn job_of_any_priority_leaves_its_place(t: &Topic) {
    for delay in [Duration::ZERO, HOUR] {
        for name in ["high", "low"] {
            for end in ["delete", "cancel", "ack", "replace"] {
                assert_eq!(t.add_job(ranked(name, delay)).await, AddOutcome::Added);
                let done = match end {
                    "delete" => t.delete(name).await.changed,
                    "cancel" => t.cancel(name).await.changed,
                    "ack" => t.ack_outside(name).await.changed,
                    _ => t.add_job(replacing(name, "new")).await == AddOutcome::Replaced(State::Delayed),
                };
                assert!(done, "{end} of {name}");
                if end == "replace" {
                    t.claim("n", name).await;
                    t.delete(name).await;
                    t.release("n").await;
                    t.reclaim("m", "n", dq::time::Timestamp::EPOCH, 10).await;
                }
                assert_eq!((t.state(name).await, t.counts().await.delayed), (None, 0), "{end} of {name}");
            }
        }
    }
}

/// An export and an import keep the priority (rule 27).
pub async fn priority_survives_export_and_import(t: &Topic) {
    add_in_state(t, "dead", State::Dead).await;
    add(t, &["low-a", "normal-a", "high-a"]).await;
    t.add_job(ranked("high-far", HOUR)).await;
    let copies = t.export().await;
    let other = t.beside("conformance", "imported").await;
    other.import(import_of(copies.clone(), OnDuplicate::Reject)).await;
    assert_eq!(other.export().await, copies);
    assert_eq!(claimed(&other, "n", 10).await, ["high-a", "normal-a", "low-a"]);
    other.advance(HOUR).await;
    assert_eq!(claimed(&other, "n", 10).await, ["high-far"]);
}

/// The jobs of a tick have the priorities of their records (rule 30).
pub async fn jobs_of_a_tick_have_their_priorities(t: &Topic) {
    let claim = t.running("n", "s").await;
    let of_tick = |name: &str| TickJob { record: ranked(name, Duration::ZERO).record, ..new(name) };
    let jobs = ["low", "normal", "high"].map(of_tick).to_vec();
    assert_eq!(t.settle("n", &claim, Change::Tick(Box::new(tick(t, jobs)))).await, Verdict::Done);
    assert_eq!(claimed(t, "n", 10).await, ["high", "normal", "low"]);
}

/// What a draining topic still runs is counted over all priorities, and nothing else is claimed (rule 29).
pub async fn draining_topic_counts_all_priorities(t: &Topic) {
    add(t, &["low", "normal", "high", "low-a"]).await;
    t.add_job(ranked("high-later", secs(1))).await;
    t.set(drain("why")).await;
    t.advance(secs(1)).await;
    let answer = t.transfer("n", 1).await;
    assert_eq!((ids(&answer.claims), answer.left, t.scan().await.left), (vec!["high"], 3, 3));
    let rest = t.transfer("n", 10).await;
    assert_eq!((ids(&rest.claims), rest.left, rest.sleep), (vec!["normal", "low", "low-a"], 0, FALLBACK));
}

/// A node says in its requests how long the ageing is; zero: priorities have no effect (rule 4).
pub async fn ageing_is_what_the_node_says(t: &Topic) {
    for (node, ageing) in [("none", Duration::ZERO), ("second", secs(1))] {
        t.linked(node, LinkOptions { ageing, ..LinkOptions::default() });
    }
    add(t, &["low-1", "low-2", "low-3"]).await;
    t.advance(secs(2)).await;
    add(t, &["high-1", "high-2"]).await;
    assert_eq!(claimed(t, "none", 1).await, ["low-1"]);
    assert_eq!(claimed(t, "second", 1).await, ["high-1"]);
    t.advance(ms(1)).await;
    add(t, &["high-3"]).await;
    assert_eq!(claimed(t, "second", 2).await, ["high-2", "low-2"]);
    assert_eq!(claimed(t, "n", 2).await, ["high-3", "low-3"]);
}

/// A claim takes no more than its limits of jobs and bytes, whatever the priorities (rule 5).
pub async fn claim_by_priority_is_bounded(t: &Topic) {
    let large = |name: &str| {
        let small = ranked(name, Duration::ZERO);
        let metadata = small.record.metadata().expect("it is a record");
        NewJob { record: Record::new(&metadata, dq::job::Codec::Json, &[b'1'; 1_000]), ..small }
    };
    t.add_all(["low", "normal", "high"].map(large).to_vec()).await;
    t.enter("n").await;
    let answer = t.transfer_with("n", dq::store::step::Transfer { bytes: 2_500, ..t.transfer_of("n", 10) }).await;
    assert_eq!((ids(&answer.claims), answer.more), (vec!["high", "normal"], true));
    assert_eq!(claimed(t, "n", 10).await, ["low"]);
    assert!(t.find("low").await.is_some_and(|found| found.id == id("low") && found.place.state() == State::Running));
    t.add_all(vec![job("a")]).await;
    assert_eq!(claimed(t, "n", 10).await, ["a"]);
}
