//! A topic that is full: as many of its jobs wait as may (rule 29).

use super::copies::{copy, copy_of_broadcast, import_of};
use super::events::add_in_state;
use super::groups::member;
use super::producer::{answered, delayed, job, replacing, retained, weighing};
use super::rates::rate;
use super::setting::limit_to;
use super::ticks::{new, tick};
use super::topic::{Topic, id, ms, secs};
use super::{full_groups, heavy};
use dq::job::{Delivery, JobId, State};
use dq::store::step::{Change, RejoinDue};
use dq::store::{
    AddOutcome, ChangeKind, Due, ImportOutcome, Limit, LimitKind, MaxWaiting, NewJob, Numbered, OnDuplicate,
    StoreError, TopicChange, TopicFull,
};

async fn limit(t: &Topic, jobs: usize) {
    t.set(limit_to(Limit::MaxWaiting(jobs), "why")).await;
}

const fn full(waiting: usize, limit: usize) -> AddOutcome {
    AddOutcome::TopicFull(TopicFull { waiting, limit })
}

fn generated(count: u64, due: Due) -> NewJob {
    NewJob { id: JobId::generated(count, 7), generated: true, due, ..job("x") }
}

async fn waiting(t: &Topic) -> usize {
    t.store.counts(&t.key).await.expect("counts is answered").delayed
}

/// Of a batch the jobs for which there is room are added, and each of the others is refused with the numbers (rule 29).
pub async fn jobs_beyond_what_may_wait_are_refused_one_by_one(t: &Topic) {
    limit(t, 3).await;
    let chosen = ["a", "b", "c", "d", "e"].map(job).to_vec();
    let added = AddOutcome::Added;
    assert_eq!(t.add_all(chosen).await, [added.clone(), added.clone(), added.clone(), full(3, 3), full(3, 3)]);
    assert_eq!(t.add_job(job("d")).await, full(3, 3));
    let claim = t.transfer("n", 1).await.claims.remove(0);
    let expiring = |name: &str| NewJob { expires_after: Some(secs(60)), ..job(name) };
    assert_eq!(t.add_all(vec![expiring("d"), expiring("e")]).await, [added.clone(), full(3, 3)]);
    t.end("n", &claim, Change::Ack).await;
    assert_eq!((waiting(t).await, t.add_job(job("e")).await), (3, full(3, 3)), "a job that ran has left no room");
    limit(t, 5).await;
    let (soon, later) = (Due::After(secs(1)), Due::After(secs(2)));
    let three = vec![generated(1, soon), generated(2, later), generated(3, later)];
    assert_eq!(t.add_all(three).await, [added.clone(), added.clone(), full(5, 5)]);
    assert_eq!(t.add_all(vec![generated(4, soon), generated(5, later)]).await, [full(5, 5), full(5, 5)]);
    t.set(TopicChange::ClearLimit(LimitKind::MaxWaiting)).await;
    assert_eq!((t.add_job(job("e")).await, waiting(t).await), (added, 6));
}

/// Without a limit of the topic the code of the caller says how many may wait; each job is refused by its own limit (rule 29).
pub async fn limit_of_the_code_counts_unless_the_topic_has_one(t: &Topic) {
    let most = |topic| Some(MaxWaiting { topic: Some(topic), group: None });
    let code = |name: &str, jobs| NewJob { max_waiting: most(jobs), ..job(name) };
    let added = AddOutcome::Added;
    let outcomes = t.add_all(vec![code("a", 1), code("b", 1), code("c", 2), job("d")]).await;
    assert_eq!(outcomes, [added.clone(), full(1, 1), added.clone(), added.clone()]);
    let plain = |count, jobs| NewJob { max_waiting: most(jobs), ..generated(count, Due::Usual(secs(5))) };
    assert_eq!(t.add_all(vec![plain(1, 3), plain(2, 4)]).await, [full(3, 3), added.clone()]);
    limit(t, 5).await;
    assert_eq!(t.add_all(vec![code("e", 1), code("f", 100)]).await, [added, full(5, 5)]);
}

/// Jobs that are due much later wait like any other (rule 29).
pub async fn jobs_that_are_due_much_later_count_as_waiting(t: &Topic) {
    limit(t, 4).await;
    let later = |name: &str| delayed(name, secs(7_200));
    let added = AddOutcome::Added;
    assert_eq!(t.add_all(vec![later("a"), job("b")]).await, [added.clone(), added.clone()]);
    let far = Due::After(secs(7_200));
    let of_each = vec![generated(1, far), generated(2, Due::After(secs(1))), generated(3, far), generated(4, far)];
    assert_eq!(t.add_all(of_each).await, [added.clone(), added.clone(), full(4, 4), full(4, 4)]);
    assert_eq!(t.add_all(vec![later("c"), job("d")]).await, [full(4, 4), full(4, 4)]);
    assert_eq!(
        t.add_job(NewJob { on_duplicate: OnDuplicate::Replace, ..later("a") }).await,
        AddOutcome::Replaced(State::Delayed)
    );
    t.delete("a").await;
    assert_eq!((t.add_job(later("c")).await, waiting(t).await), (added, 4));
}

/// A job whose id is known keeps its answer: it exists, is replaced or is extended. A DONE job does not count (rules 2 and 29).
pub async fn known_job_of_a_full_topic_keeps_its_answer(t: &Topic) {
    add_in_state(t, "dead", State::Dead).await;
    add_in_state(t, "done", State::Done).await;
    t.add_later("a", secs(60)).await;
    limit(t, 1).await;
    let extends = OnDuplicate::Extend { at_most: None };
    for (on_duplicate, outcome) in [
        (OnDuplicate::Reject, AddOutcome::Exists(State::Delayed)),
        (OnDuplicate::Keep, AddOutcome::Exists(State::Delayed)),
    ] {
        assert_eq!(t.add_job(NewJob { on_duplicate, ..job("a") }).await, outcome);
    }
    let extended = t.add_job(NewJob { on_duplicate: extends, ..delayed("a", secs(30)) }).await;
    assert!(matches!(extended, AddOutcome::Extended { .. }), "{extended:?}");
    assert_eq!(t.add_job(NewJob { on_duplicate: extends, ..delayed("new", secs(30)) }).await, full(1, 1));
    assert_eq!(t.add_job(job("done")).await, full(1, 1));
    assert_eq!(t.add_job(replacing("dead", "new")).await, AddOutcome::Replaced(State::Dead));
    assert_eq!(t.add_job(job("b")).await, full(2, 1), "the replacement counts");
    t.delete("a").await;
    t.claim("n", "dead").await;
    assert_eq!(t.add_job(replacing("dead", "newer")).await, AddOutcome::ReplacementWaits);
}

/// What comes back waits, however many do: outcomes, requeues, changes and the jobs of ticks (rule 29).
pub async fn what_comes_back_to_a_full_topic_waits(t: &Topic) {
    let hour = secs(3_600);
    let ends = [Change::Retry(hour), Change::Rejoin(RejoinDue::After(hour)), Change::Rollback];
    let mut claims = Vec::new();
    for n in 0..ends.len() {
        claims.push(t.running("n", &format!("{n}")).await);
    }
    add_in_state(t, "dead", State::Dead).await;
    add_in_state(t, "parked", State::Unacked).await;
    let schedule = t.running("n", "s").await;
    t.add_later("a", hour).await;
    limit(t, 1).await;
    for (claim, change) in claims.iter().zip(ends) {
        t.end("n", claim, change).await;
    }
    assert!(t.requeue("dead").await.changed && t.requeue("parked").await.changed);
    t.changed("a", ChangeKind::RunNow).await;
    t.end("n", &schedule, Change::Tick(Box::new(tick(t, vec![new("ticked")])))).await;
    assert_eq!((waiting(t).await, t.state("ticked").await), (8, Some(State::Delayed)));
    assert_eq!(t.add_job(job("b")).await, full(8, 1));
}

/// Broadcasts and schedules pass. A job that goes to both is refused in both (rule 29).
pub async fn broadcasts_and_schedules_of_a_full_topic_pass(t: &Topic) {
    t.add_later("a", secs(60)).await;
    limit(t, 1).await;
    let deliver = |name: &str, deliver| NewJob { deliver, due: Due::After(secs(60)), ..job(name) };
    let schedule = NewJob { id: id("dq:schedule:nightly"), ..delayed("x", secs(60)) };
    let batch = vec![deliver("news", Delivery::Broadcast), deliver("both", Delivery::Both), schedule];
    assert_eq!(t.add_all(batch).await, [AddOutcome::Added, full(1, 1), AddOutcome::Added]);
    let counts = t.store.counts(&t.key).await.expect("counts is answered");
    assert_eq!((counts.delayed, counts.broadcasts), (2, 1));
}

/// A repeat answers what the batch was answered, although there is room now: in the topic, in the group, or in the rate (rules 18 and 29).
pub async fn refusal_of_an_add_is_the_answer_of_a_repeat(t: &Topic) {
    let (p, at_once, added) = (t.producer_named("p"), Due::After(ms(0)), AddOutcome::Added);
    let two = |first| [generated(first, at_once), generated(first + 1, at_once)];
    let members = ["a-1", "a-2"].map(|name| member(name, ms(0)));
    let weighed = [weighing(2, job("a")), weighing(4, job("b"))];
    let cases = [
        (Limit::MaxWaiting(1), Limit::MaxWaiting(9), two(1), [added.clone(), full(1, 1)]),
        (Limit::MaxWaiting(1), Limit::MaxWaiting(9), two(3), [full(1, 1), full(1, 1)]),
        (Limit::GroupMaxWaiting(1), Limit::GroupMaxWaiting(9), members, [added.clone(), full_groups::full("a", 1, 1)]),
        (Limit::Rate(rate("3/s")), Limit::Rate(rate("4/s")), weighed, [added, heavy::refused(4, "3/s", None)]),
    ];
    for (number, (narrow, wide, batch, outcomes)) in (1..).zip(cases) {
        let add =
            async || p.add(Numbered { number, items: batch.to_vec() }).await.map(answered).expect("add is answered");
        t.set(limit_to(narrow, "why")).await;
        assert_eq!(add().await, outcomes);
        let before = waiting(t).await;
        t.set(limit_to(wide, "why")).await;
        assert_eq!((add().await, waiting(t).await), (outcomes.to_vec(), before));
    }
}

/// An import that would let more jobs wait than may is refused as a whole. Known ids, other places and broadcasts need no room
/// (rules 27 and 29).
pub async fn import_into_a_full_topic_is_refused(t: &Topic) {
    t.add_later("a", secs(60)).await;
    t.add_job(retained("b")).await;
    limit(t, 3).await;
    let at = t.in_ms(60_000);
    let import = async |names: &[&str]| {
        let waiting = names.iter().map(|name| copy(name, State::Delayed, at));
        let others = [copy("dead", State::Dead, t.now()), copy_of_broadcast("news", at)];
        t.try_import(import_of(waiting.chain(others).collect(), OnDuplicate::Keep)).await
    };
    let error = import(&["a", "c", "d"]).await.expect_err("there is room for one");
    assert!(matches!(error, StoreError::TopicFull(TopicFull { waiting: 2, limit: 3 })), "{error}");
    assert!(error.nothing_done() && !error.is_outage());
    assert_eq!((waiting(t).await, t.state("dead").await), (2, None), "nothing was done");
    let outcomes = import(&["a", "c"]).await.expect("there is room");
    let exists = ImportOutcome::Exists(State::Delayed);
    assert_eq!(outcomes, [exists, ImportOutcome::Added, ImportOutcome::Added, ImportOutcome::Added]);
    let again = import(&["a", "c"]).await.expect("there is nothing new");
    assert_eq!(again, [exists, exists, ImportOutcome::Exists(State::Dead), exists]);
    t.audit().await;
}
