//! Which jobs of a group run, and in which order (rule 4).

use std::time::Duration;

use super::changes::update;
use super::copies::{copy_with, import_of};
use super::producer::{changed, delayed};
use super::setting::{drain, limit_to};
use super::ticks::{new, tick};
use super::topic::{Topic, ids, ms, secs};
use dq::job::{GroupName, Metadata, Priority, State};
use dq::store::step::{Change, RejoinDue, TickJob, Verdict};
use dq::store::{AddOutcome, ChangeKind, Due, Limit, LimitKind, LinkOptions, NewJob, OnDuplicate, Signal, TopicChange};

const HOUR: Duration = Duration::from_secs(3_600);

/// A job with the group that its name begins with, due after `delay`.
pub(super) fn member(name: &str, delay: Duration) -> NewJob {
    let group = GroupName::new(name.split('-').next().unwrap_or_default()).expect("it names a group");
    changed(delayed(name, delay), |metadata| metadata.group = Some(group))
}

/// A due job of this priority, with the group that its name begins with.
pub(super) fn ranked(name: &str, priority: Priority) -> NewJob {
    changed(member(name, Duration::ZERO), |metadata| metadata.priority = priority)
}

/// The options of a node with this setting.
pub(super) fn group_on_blocked(text: &str) -> LinkOptions {
    LinkOptions { group_on_blocked: text.parse().expect("it is a setting"), ..LinkOptions::default() }
}

/// Adds jobs that are due, one by one, each with the group that its name begins with.
pub(super) async fn add(t: &Topic, names: &[&str]) {
    for name in names {
        assert_eq!(t.add_job(member(name, Duration::ZERO)).await, AddOutcome::Added, "{name}");
    }
}

pub(super) async fn limit(t: &Topic, jobs: usize) {
    t.set(limit_to(Limit::GroupConcurrency(jobs), "")).await;
}

/// Runs the job, which must be the only one that may be claimed, to its ack.
async fn run(t: &Topic, name: &str) {
    t.run("n", name, Change::Ack).await;
}

/// Of each group one job runs at a time, on whatever node; jobs without a group and of other groups run beside it (rule 4).
pub async fn one_job_of_a_group_runs_at_a_time(t: &Topic) {
    limit(t, 1).await;
    t.add_all(["a-1", "a-2", "b-1", "a-3"].map(|name| member(name, Duration::ZERO)).to_vec()).await;
    t.add("plain").await;
    let first = t.claims("n").await;
    assert_eq!(ids(&first), ["a-1", "b-1", "plain"]);
    let none = t.transfer("m", 10).await;
    assert_eq!((none.claims.len(), none.more), (0, false));
    t.end("n", &first[0], Change::Ack).await;
    let second = t.claim("m", "a-2").await;
    t.end("n", &first[1], Change::Ack).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.end("m", &second, Change::Ack).await;
    run(t, "a-3").await;
}

/// A schedule is in no group, even if an import brings one with a group: its ticks pass all limits (rules 4, 30).
pub async fn schedule_with_a_group_waits_for_no_seat(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-1", "a-2"]).await;
    let first = t.claim("n", "a-1").await;
    let group = member("a-0", Duration::ZERO).record.metadata().expect("it decodes").group;
    let schedule = copy_with("dq:schedule:s", State::Delayed, t.now(), &Metadata { group, ..Metadata::default() });
    t.import(import_of(vec![schedule], OnDuplicate::Reject)).await;
    let claimed = t.claims("n").await;
    assert_eq!(ids(&claimed), ["dq:schedule:s"], "the group is full");
    t.end("n", &claimed[0], Change::Rollback).await;
    assert_eq!(t.claimed_ids("m").await, ["dq:schedule:s"]);
    t.end("n", &first, Change::Ack).await;
    run(t, "a-2").await;
}

/// The jobs of a group start in the order of their due times, then of the adds (rule 4).
pub async fn jobs_of_a_group_start_in_the_order_of_due_times_then_of_adds(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-z", "a-y"]).await;
    t.add_all(["a-x", "a-c", "a-d"].map(|name| member(name, Duration::ZERO)).to_vec()).await;
    t.add_job(member("a-later", ms(5))).await;
    t.add_job(member("a-sooner", ms(2))).await;
    t.advance(ms(10)).await;
    add(t, &["a-b"]).await;
    for name in ["a-z", "a-y", "a-x", "a-c", "a-d", "a-sooner", "a-later", "a-b"] {
        run(t, name).await;
    }
    assert_eq!(t.counts().await.delayed, 0);
}

/// However a run ends, the next job of the group comes (rule 4).
pub async fn every_end_of_a_run_lets_the_next_job_of_its_group_come(t: &Topic) {
    limit(t, 1).await;
    t.linked("n", group_on_blocked("retry: pass"));
    let later = Change::Rejoin(RejoinDue::After(HOUR));
    for change in [Change::Ack, Change::Retry(HOUR), later, Change::Park, Change::Dead, Change::Drop] {
        let text = format!("{change:?}");
        add(t, &["a-1", "a-2"]).await;
        let claim = t.claim("n", "a-1").await;
        assert_eq!(t.claimed_ids("m").await, [""; 0], "{text}");
        t.end("n", &claim, change).await;
        run(t, "a-2").await;
        t.delete("a-1").await;
    }
    for command in ["delete", "cancel", "ack", "replace"] {
        add(t, &["a-1", "a-2"]).await;
        let claim = t.claim("n", "a-1").await;
        match command {
            "delete" => drop(t.delete("a-1").await),
            "cancel" => drop(t.cancel("a-1").await),
            "ack" => drop(t.ack_outside("a-1").await),
            _ => {
                let new = NewJob { on_duplicate: OnDuplicate::Replace, ..member("a-1", HOUR) };
                assert_eq!(t.add_job(new).await, AddOutcome::ReplacementWaits);
            }
        }
        assert_eq!(t.claimed_ids("m").await, [""; 0], "{command}");
        t.end("n", &claim, Change::Rollback).await;
        run(t, "a-2").await;
        t.delete("a-1").await;
    }
}

/// A job that goes back keeps its seat: no other job of its group runs before it does (rule 4).
pub async fn job_that_goes_back_keeps_its_seat(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-2", "a-1"]).await;
    let claim = t.claim("n", "a-2").await;
    add(t, &["a-0"]).await;
    t.end("n", &claim, Change::Rollback).await;
    t.claim("n", "a-2").await;
    t.crash("n").await;
    let claim = t.claim("m", "a-2").await;
    t.release("m").await;
    t.reclaim("o", "m", dq::time::Timestamp::EPOCH, 10).await;
    assert_eq!(t.settle("m", &claim, Change::Ack).await, Verdict::Stale);
    for name in ["a-2", "a-1", "a-0"] {
        run(t, name).await;
    }
}

/// The group of a failed job waits for its retry, unless its node lets it pass (rule 4).
pub async fn group_waits_for_a_retry_unless_the_node_lets_it_pass(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-1", "a-2"]).await;
    t.run("n", "a-1", Change::Retry(secs(1))).await;
    assert_eq!(t.claimed_ids("m").await, [""; 0]);
    t.advance(secs(1)).await;
    run(t, "a-1").await;
    run(t, "a-2").await;
    t.linked("p", group_on_blocked("retry: pass"));
    add(t, &["a-1", "a-2", "a-3"]).await;
    let claim = t.claim("p", "a-1").await;
    t.end("p", &claim, Change::Retry(secs(1))).await;
    let second = t.claim("p", "a-2").await;
    t.advance(secs(1)).await;
    assert_eq!(t.claimed_ids("m").await, [""; 0], "it has no seat any more");
    t.end("p", &second, Change::Ack).await;
    run(t, "a-3").await;
    run(t, "a-1").await;
}

/// A DEAD job stops its group if its node says so, until it was requeued and has run, or is gone (rule 4).
pub async fn dead_job_stops_its_group_if_its_node_says_so(t: &Topic) {
    limit(t, 1).await;
    t.linked("n", group_on_blocked("dead: wait"));
    for leave in ["requeue", "delete", "prune", "undecodable"] {
        add(t, &["a-1", "a-2"]).await;
        t.run("n", "a-1", Change::Dead).await;
        assert_eq!(t.claimed_ids("m").await, [""; 0], "{leave}");
        match leave {
            "requeue" => {
                t.requeue("a-1").await;
                run(t, "a-1").await;
            }
            "delete" => drop(t.delete("a-1").await),
            "prune" => {
                t.advance(HOUR).await;
                t.enter("m").await;
                let sweep = dq::store::step::Sweep { dead_retention: HOUR, ..t.sweep_of("m", 10) };
                assert_eq!(t.sweep("m", sweep).await.pruned_dead, 1);
            }
            _ => {
                let found = t.find("a-1").await.expect("it is DEAD");
                assert!(t.give_up("a-1", found.record).await);
            }
        }
        run(t, "a-2").await;
        t.delete("a-1").await;
    }
}

/// What waits in a group may be deleted, replaced, extended, updated and rescheduled, wherever it stands in its group (rules 2, 28).
pub async fn waiting_jobs_of_a_group_change_like_others(t: &Topic) {
    limit(t, 1).await;
    let names = ["a-1", "a-2", "a-3", "a-4", "a-5"];
    add(t, &names).await;
    assert!(t.delete("a-1").await.changed && t.cancel("a-3").await.changed && t.ack_outside("a-5").await.changed);
    run(t, "a-2").await;
    run(t, "a-4").await;
    add(t, &names).await;
    t.change("a-1", ChangeKind::Reschedule(Due::After(secs(2)))).await;
    t.change("a-2", update("new")).await;
    t.change("a-3", ChangeKind::ExtendBy(secs(1))).await;
    let extending =
        |name, delay| NewJob { on_duplicate: OnDuplicate::Extend { at_most: None }, ..delayed(name, delay) };
    assert!(matches!(t.add_job(extending("a-4", secs(3))).await, AddOutcome::Extended { .. }));
    let other = NewJob { on_duplicate: OnDuplicate::Replace, ..member("b-5", Duration::ZERO) };
    let other = NewJob { id: super::topic::id("a-5"), ..other };
    assert_eq!(t.add_job(other).await, AddOutcome::Replaced(State::Delayed));
    assert_eq!(t.claimed_ids("n").await, ["a-2", "a-5"], "the replacement has another group");
    t.advance(secs(9)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.crash("n").await;
    assert_eq!(t.claimed_ids("m").await, ["a-2", "a-5"]);
    assert_eq!(
        t.pages(State::Delayed, 10).await.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(),
        ["a-3", "a-1", "a-4"]
    );
}

/// A far job joins its group when it comes near (rule 4).
pub async fn far_job_joins_its_group_when_it_comes_near(t: &Topic) {
    limit(t, 1).await;
    t.add_job(member("a-far", HOUR)).await;
    t.add_job(member("a-farther", HOUR + ms(1))).await;
    add(t, &["a-1"]).await;
    let claim = t.claim("n", "a-1").await;
    t.advance(HOUR + secs(1)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.end("n", &claim, Change::Ack).await;
    add(t, &["a-2"]).await;
    for name in ["a-far", "a-farther", "a-2"] {
        run(t, name).await;
    }
}

/// The limit of a group may be more than one, and another while jobs run; what has a seat keeps it (rule 29).
pub async fn limit_of_a_group_changes_while_its_jobs_run(t: &Topic) {
    add(t, &["a-1", "a-2", "a-3", "a-4", "a-5", "a-6"]).await;
    t.linked("n", LinkOptions { group_concurrency: Some(2), ..LinkOptions::default() });
    let first = t.claim("n", "a-1").await;
    let second = t.claim("n", "a-2").await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    limit(t, 3).await;
    let third = t.claim("n", "a-3").await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    limit(t, 1).await;
    t.end("n", &first, Change::Ack).await;
    t.end("n", &second, Change::Ack).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0], "one has a seat");
    t.end("n", &third, Change::Ack).await;
    let fourth = t.claim("n", "a-4").await;
    t.set(TopicChange::ClearLimit(LimitKind::GroupConcurrency)).await;
    t.claim("n", "a-5").await;
    t.end("n", &fourth, Change::Ack).await;
    t.claim("n", "a-6").await;
}

/// Pages, counts and the timeline have the jobs of a group, blocked or not; so has a drain (queries, rule 29).
pub async fn blocked_jobs_are_in_pages_counts_and_drains(t: &Topic) {
    limit(t, 1).await;
    let names = ["a-1", "a-2", "a-3", "b-1", "b-2"];
    add(t, &names).await;
    t.add_job(member("a-4", secs(5))).await;
    for limit in [1, 2, 10] {
        let page: Vec<_> = t.pages(State::Delayed, limit).await.iter().map(|job| job.id.to_string()).collect();
        assert_eq!(page, ["a-1", "a-2", "a-3", "b-1", "b-2", "a-4"], "pages of {limit}");
    }
    let counts = t.counts().await;
    assert_eq!((counts.delayed, counts.ready, counts.head), (6, 5, Some(t.now())));
    let times = [0, 1, 9_000].map(|ms| t.in_ms(ms));
    let due = t.store.due_counts(&t.key, &times).await.expect("it is answered");
    assert_eq!(due.iter().map(|count| count.jobs).collect::<Vec<_>>(), [5, 1]);
    let seen = t.store.overview(&t.key, 0).await.expect("it is answered");
    assert_eq!((seen.due.iter().sum::<usize>(), seen.blocked), (5, 3));
    t.set(drain("why")).await;
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims.len(), answer.left, t.scan().await.left), (2, 3, 3));
}

/// A free seat is signalled like an earlier head, with the turn; a blocked job is not (rule 23).
pub async fn free_seat_wakes_the_watcher(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-1"]).await;
    let mut watcher = t.subscribe("n").await;
    let claim = t.claim("n", "a-1").await;
    add(t, &["a-2"]).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    watcher.received(t).await;
    add(t, &["a-3"]).await;
    assert_eq!(watcher.received(t).await, [], "it is blocked");
    t.advance(ms(1)).await;
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(watcher.received(t).await, [Signal::Due(Some(t.now()))]);
    t.claim("n", "a-2").await;
}

/// Export and import keep the group and the order in it (rule 27).
pub async fn group_survives_export_and_import(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-2", "a-1", "b-1"]).await;
    t.add_job(member("a-far", HOUR)).await;
    let copies = t.export().await;
    let other = t.beside("conformance", "imported").await;
    limit(&other, 1).await;
    other.import(import_of(copies.clone(), OnDuplicate::Reject)).await;
    assert_eq!(other.export().await, copies);
    let claims = other.claims("n").await;
    assert_eq!(ids(&claims), ["a-2", "b-1"]);
    other.import(import_of(copies, OnDuplicate::Replace)).await;
    other.end("n", &claims[0], Change::Ack).await;
    other.claim("n", "a-1").await;
}

/// The jobs of a tick join their groups (rule 30).
pub async fn jobs_of_a_tick_join_their_groups(t: &Topic) {
    limit(t, 1).await;
    let claim = t.running("n", "s").await;
    let of_tick = |name: &str| TickJob { record: member(name, Duration::ZERO).record, ..new(name) };
    let jobs = ["a-1", "a-2", "b-1"].map(of_tick).to_vec();
    assert_eq!(t.settle("n", &claim, Change::Tick(Box::new(tick(t, jobs)))).await, Verdict::Done);
    assert_eq!(t.claimed_ids("n").await, ["a-1", "b-1"]);
}

/// The first job of a group competes by its own priority; within the group only due times and adds count (rule 4).
pub async fn priority_does_not_reorder_a_group(t: &Topic) {
    limit(t, 1).await;
    t.add_job(ranked("a-low", Priority::Low)).await;
    t.add_job(ranked("a-high", Priority::High)).await;
    t.add_job(ranked("b-normal", Priority::Normal)).await;
    let claims = t.transfer("n", 10).await.claims;
    assert_eq!(ids(&claims), ["b-normal", "a-low"]);
    t.end("n", &claims[1], Change::Ack).await;
    t.claim("n", "a-high").await;
}
