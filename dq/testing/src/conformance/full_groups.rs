//! A group that is full: as many of its jobs wait as may (rules 4 and 29).

use std::time::Duration;

use super::copies::{copy_of, import_of};
use super::groups::{add, group_on_blocked, limit, member};
use super::producer::job;
use super::setting::limit_to;
use super::stopped::{group, named};
use super::ticks::{new, tick};
use super::topic::{Topic, id, ms};
use dq::job::{Delivery, State};
use dq::store::step::{Change, RejoinDue, TickJob};
use dq::store::{
    AddOutcome, ImportOutcome, Limit, LimitKind, MaxWaiting, NewJob, OnDuplicate, StoreError, TopicChange, TopicFull,
};

const NOW: Duration = Duration::ZERO;
const FAR: Duration = Duration::from_secs(7_200);

async fn bound(t: &Topic, jobs: usize) {
    t.set(limit_to(Limit::GroupMaxWaiting(jobs), "why")).await;
}

/// The refusal of a job of this group.
pub(super) fn full(name: &str, waiting: usize, limit: usize) -> AddOutcome {
    AddOutcome::GroupFull { group: named(name), full: TopicFull { waiting, limit } }
}

async fn waiting(t: &Topic, name: &str) -> usize {
    group(t, name).await.map_or(0, |group| group.waiting)
}

/// Of a batch the jobs of a group for which there is room are added, and the others of it are refused with the numbers; other groups and jobs
/// without one have room (rule 29).
pub async fn jobs_beyond_what_may_wait_of_a_group_are_refused_one_by_one(t: &Topic) {
    let set = t.set(limit_to(Limit::GroupMaxWaiting(2), "why")).await;
    assert_eq!((set.now.limits[0].limit, t.topic_state().await.limits.len()), (Limit::GroupMaxWaiting(2), 1));
    let added = AddOutcome::Added;
    let batch = ["a-1", "a-2", "a-3", "b-1"].map(|name| member(name, NOW)).into_iter().chain([job("plain")]);
    let outcomes = t.add_all(batch.collect()).await;
    assert_eq!(outcomes, [added.clone(), added.clone(), full("a", 2, 2), added.clone(), added.clone()]);
    limit(t, 1).await;
    let claim = t.claims("n").await.remove(0);
    assert_eq!((claim.id.as_str(), t.add_job(member("a-3", NOW)).await), ("a-1", added.clone()), "one runs");
    assert_eq!(t.add_job(member("a-4", NOW)).await, full("a", 2, 2));
    t.set(limit_to(Limit::MaxWaiting(1), "why")).await;
    let of_topic = t.add_job(member("a-4", NOW)).await;
    assert!(matches!(of_topic, AddOutcome::TopicFull(TopicFull { limit: 1, .. })), "{of_topic:?}");
    t.set(TopicChange::ClearLimit(LimitKind::MaxWaiting)).await;
    t.set(TopicChange::ClearLimit(LimitKind::GroupMaxWaiting)).await;
    assert_eq!((t.add_job(member("a-4", NOW)).await, waiting(t, "a").await), (added, 3));
    assert_eq!(t.topic_state().await.limits.len(), 1, "that of the seats");
}

/// Without a limit in the store the code of the caller says how many of a group may wait (rule 29).
pub async fn limit_of_the_code_counts_for_groups(t: &Topic) {
    let code =
        |name: &str, topic, group| NewJob { max_waiting: Some(MaxWaiting { topic, group }), ..member(name, FAR) };
    let added = AddOutcome::Added;
    let batch = vec![
        code("a-1", None, Some(1)),
        code("a-2", None, Some(1)),
        code("a-3", Some(9), Some(2)),
        code("a-4", Some(9), None),
        member("a-5", FAR),
    ];
    let outcomes = t.add_all(batch).await;
    assert_eq!(outcomes, [added.clone(), full("a", 1, 1), added.clone(), added.clone(), added.clone()]);
    bound(t, 1).await;
    assert_eq!(t.add_all(vec![code("b-1", None, Some(7)), code("b-2", None, Some(7))]).await, [added, full("b", 1, 1)]);
}

/// A job that is due much later counts from its add, stays due then, and gives its room back when it goes (rule 29).
pub async fn job_that_is_due_much_later_counts_in_its_group(t: &Topic) {
    bound(t, 2).await;
    let added = AddOutcome::Added;
    let (first, second) = (member("a-1", FAR), member("a-2", FAR + ms(1)));
    assert_eq!(
        t.add_all(vec![first, second, member("a-3", FAR)]).await,
        [added.clone(), added.clone(), full("a", 2, 2)]
    );
    let replaces = NewJob { on_duplicate: OnDuplicate::Replace, ..member("a-2", FAR) };
    assert_eq!(
        t.add_all(vec![replaces, member("a-3", NOW)]).await,
        [AddOutcome::Replaced(State::Delayed), full("a", 2, 2)]
    );
    t.delete("a-2").await;
    assert_eq!(t.add_job(member("a-3", FAR)).await, added);
    assert_eq!((t.counts().await.delayed, t.claimed_ids("n").await), (2, Vec::new()));
    t.advance(FAR).await;
    t.claim("n", "a-1").await;
    t.claim("n", "a-3").await;
    assert_eq!(t.add_job(member("a-4", FAR)).await, added);
}

/// A known id keeps its answer, and what comes back or is no job of a caller waits, however many do (rule 29).
pub async fn what_comes_back_to_a_full_group_waits(t: &Topic) {
    t.linked("n", group_on_blocked("retry: pass"));
    add(t, &["a-1", "a-2", "a-3"]).await;
    let claims = [t.claim("n", "a-1").await, t.claim("n", "a-2").await, t.claim("n", "a-3").await];
    let schedule = t.running("n", "s").await;
    bound(t, 1).await;
    assert_eq!(t.add_job(member("a-4", FAR)).await, AddOutcome::Added);
    let ends = [Change::Retry(FAR), Change::Rejoin(RejoinDue::After(FAR)), Change::Dead];
    for (claim, change) in claims.iter().zip(ends) {
        t.end("n", claim, change).await;
    }
    assert!(t.requeue("a-3").await.changed);
    let ticked = TickJob { record: member("a-5", FAR).record, ..new("a-5") };
    t.end("n", &schedule, Change::Tick(Box::new(tick(t, vec![ticked])))).await;
    assert_eq!((waiting(t, "a").await, t.add_job(member("a-6", FAR)).await), (5, full("a", 5, 1)));
    let extends = |name| NewJob { on_duplicate: OnDuplicate::Extend { at_most: None }, ..member(name, FAR) };
    let kept = |name| NewJob { on_duplicate: OnDuplicate::Keep, ..member(name, FAR) };
    let known = t.add_all(vec![kept("a-1"), extends("a-2")]).await;
    assert_eq!(known[0], AddOutcome::Exists(State::Delayed));
    assert!(matches!(known[1], AddOutcome::Extended { .. }), "{known:?}");
    assert_eq!(t.add_all(vec![extends("a-6")]).await, [full("a", 5, 1)]);
    let news = NewJob { deliver: Delivery::Broadcast, ..member("a-7", FAR) };
    let schedule = NewJob { id: id("dq:schedule:nightly"), ..job("x") };
    assert_eq!(t.add_all(vec![news, schedule]).await, [AddOutcome::Added, AddOutcome::Added]);
}

/// An import that would let more jobs of a group wait than may is refused as a whole, and names the group (rules 27 and 29).
pub async fn import_into_a_full_group_is_refused(t: &Topic) {
    bound(t, 2).await;
    assert_eq!(t.add_job(member("a-1", FAR)).await, AddOutcome::Added);
    let at = t.in_ms(7_200_000);
    let import = async |names: &[&str]| {
        let copies = names.iter().map(|name| copy_of(&member(name, FAR), State::Delayed, at)).collect();
        t.try_import(import_of(copies, OnDuplicate::Keep)).await
    };
    let error = import(&["b-1", "a-2", "a-1", "a-3", "b-2", "b-3"]).await.expect_err("there is room for one");
    let StoreError::GroupFull { group, full } = &error else { panic!("{error}") };
    assert_eq!((group.as_str(), *full), ("a", TopicFull { waiting: 1, limit: 2 }));
    assert!(error.nothing_done() && !error.is_outage());
    assert_eq!(t.counts().await.delayed, 1, "nothing was done");
    let outcomes = import(&["b-1", "a-2", "a-1", "b-2"]).await.expect("there is room");
    let exists = ImportOutcome::Exists(State::Delayed);
    assert_eq!(outcomes, [ImportOutcome::Added, ImportOutcome::Added, exists, ImportOutcome::Added]);
    t.audit().await;
}
