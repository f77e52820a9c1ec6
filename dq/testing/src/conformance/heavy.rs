//! An add that is heavier than all that a rate allows in a period (rule 29).

use std::time::Duration;

use super::copies::{copy_of, import_of};
use super::groups::member;
use super::producer::{job, weighing};
use super::rates::rate;
use super::setting::limit_to;
use super::ticks::{new, tick};
use super::topic::{Topic, id, ms};
use dq::job::{Delivery, GroupName, State, Weight};
use dq::store::step::{Change, TickJob};
use dq::store::{
    AddOutcome, ImportOutcome, Limit, LimitKind, LinkOptions, NewJob, OnDuplicate, StoreError, TooHeavy, TopicChange,
};

/// A due job without a group.
fn heavy(name: &str, weight: u16) -> NewJob {
    weighing(weight, job(name))
}

/// The refusal of a job of this weight, under the rate of its topic or of its group.
pub(super) fn refused(weight: u16, text: &str, group: Option<&str>) -> AddOutcome {
    let group = group.map(|group| group.parse().expect("it is a name"));
    AddOutcome::TooHeavy(TooHeavy { weight: Weight::new(weight).expect("it is a weight"), rate: rate(text), group })
}

async fn set(t: &Topic, text: &str) {
    t.set(limit_to(Limit::Rate(rate(text)), "")).await;
}

/// Of a batch only the jobs are refused for which no period of the rate has room: the number of the rate and its burst (rule 29).
pub async fn job_heavier_than_a_period_of_the_rate_is_refused(t: &Topic) {
    set(t, "10/s, burst 4").await;
    let generated = NewJob { generated: true, ..heavy("g", 15) };
    let batch = vec![heavy("a", 14), heavy("b", 15), job("c"), generated, heavy("d", 10_000)];
    let (added, no) = (AddOutcome::Added, |weight| refused(weight, "10/s, burst 4", None));
    assert_eq!(t.add_all(batch).await, [added.clone(), no(15), added.clone(), no(15), no(10_000)]);
    assert_eq!((t.counts().await.delayed, t.state("b").await, t.state("g").await), (2, None, None));
    let generated = |name: &str, weight| NewJob { generated: true, ..heavy(name, weight) };
    assert_eq!(t.add_all(vec![generated("e", 14), generated("f", 2)]).await, [added.clone(), added.clone()]);
    set(t, "15/s").await;
    assert_eq!(t.add_all(vec![heavy("b", 15), heavy("d", 16)]).await, [added, refused(16, "15/s", None)]);
    t.set(TopicChange::ClearLimit(LimitKind::Rate)).await;
    assert_eq!(t.add_job(heavy("d", 10_000)).await, AddOutcome::Added, "no node has named a rate");
    t.audit().await;
}

/// Without a rate in the store the code of the node counts that wanted jobs last; while none has, every job is added (rule 29).
pub async fn rate_in_the_code_of_a_node_refuses_heavy_jobs(t: &Topic) {
    let says = |name: &str, of_topic: Option<&str>, of_groups: Option<&str>| {
        let (rate, group_rate) = (of_topic.map(rate), of_groups.map(rate));
        t.linked(name, LinkOptions { rate, group_rate, ..LinkOptions::default() });
    };
    assert_eq!(t.add_job(heavy("a", 9)).await, AddOutcome::Added);
    says("n", Some("5/s, burst 1"), Some("2/m"));
    says("m", None, Some("3/s"));
    says("o", None, None);
    assert_eq!(t.add_job(heavy("b", 9)).await, AddOutcome::Added, "the node has asked nothing yet");
    t.transfer("n", 1).await;
    assert_eq!(t.add_job(heavy("c", 7)).await, refused(7, "5/s, burst 1", None));
    let of_group = |weight| weighing(weight, member("g-1", ms(0)));
    assert_eq!(t.add_job(of_group(6)).await, refused(6, "2/m", Some("g")));
    assert_eq!(t.add_job(heavy("d", 6)).await, AddOutcome::Added, "it has no group");
    set(t, "8/s").await;
    assert_eq!(t.add_all(vec![heavy("e", 8), heavy("f", 9)]).await, [AddOutcome::Added, refused(9, "8/s", None)]);
    t.set(TopicChange::ClearLimit(LimitKind::Rate)).await;
    assert_eq!(t.add_job(heavy("f", 7)).await, refused(7, "5/s, burst 1", None), "the code says it again");
    t.transfer("m", 1).await;
    assert_eq!(t.add_job(heavy("f", 7)).await, AddOutcome::Added);
    assert_eq!(t.add_job(of_group(4)).await, refused(4, "3/s", Some("g")));
    t.set(limit_to(Limit::GroupRate(rate("4/s")), "")).await;
    assert_eq!(t.add_job(of_group(4)).await, AddOutcome::Added);
    assert_eq!(
        t.add_job(weighing(5, member("g-2", ms(0)))).await,
        refused(5, "4/s", Some("g")),
        "what is set overrides the code"
    );
    t.set(TopicChange::ClearLimit(LimitKind::GroupRate)).await;
    t.transfer("o", 1).await;
    assert_eq!(t.add_job(weighing(5, member("g-2", ms(0)))).await, AddOutcome::Added);
}

/// A known id keeps its answer. A job that would take the place of another one is refused, a broadcast and a schedule never (rule 29).
pub async fn only_what_comes_into_the_queue_is_too_heavy(t: &Topic) {
    t.add_later("a", Duration::from_secs(60)).await;
    let claim = t.running("n", "r").await;
    set(t, "3/s").await;
    let no = refused(4, "3/s", None);
    let on = |name: &str, on_duplicate| NewJob { on_duplicate, ..heavy(name, 4) };
    let extends = OnDuplicate::Extend { at_most: None };
    assert_eq!(t.add_job(on("a", OnDuplicate::Keep)).await, AddOutcome::Exists(State::Delayed));
    assert_eq!(t.add_job(on("a", OnDuplicate::Replace)).await, no);
    let extended = t.add_job(on("a", extends)).await;
    assert!(matches!(extended, AddOutcome::Extended { .. }), "{extended:?}");
    assert_eq!(t.add_job(on("b", extends)).await, no);
    assert_eq!(t.add_job(on("r", OnDuplicate::Keep)).await, AddOutcome::Exists(State::Running));
    for on_duplicate in [OnDuplicate::Replace, extends] {
        assert_eq!(t.add_job(on("r", on_duplicate)).await, no);
    }
    let news = NewJob { deliver: Delivery::Broadcast, ..heavy("news", 4) };
    let both = NewJob { deliver: Delivery::Both, ..heavy("both", 4) };
    let schedule = NewJob { id: id("dq:schedule:nightly"), ..heavy("s", 4) };
    assert_eq!(t.add_all(vec![news, both, schedule]).await, [AddOutcome::Added, no, AddOutcome::Added]);
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.state("r").await, None, "nothing took its place");
    t.audit().await;
}

/// What comes back, and the jobs of ticks, wait for the rate, however heavy they are (rule 29).
pub async fn heavy_job_that_comes_back_waits(t: &Topic) {
    t.add_job(heavy("a", 9)).await;
    let (claim, schedule) = (t.claim("n", "a").await, t.running("n", "s").await);
    set(t, "3/s").await;
    t.end("n", &claim, Change::Retry(ms(0))).await;
    let ticked = TickJob { record: heavy("b", 9).record, ..new("b") };
    t.end("n", &schedule, Change::Tick(Box::new(tick(t, vec![ticked])))).await;
    assert_eq!((t.state("a").await, t.state("b").await), (Some(State::Delayed), Some(State::Delayed)));
}

/// An import of a waiting job that is too heavy is refused as a whole, and names the job (rules 27 and 29).
pub async fn import_of_a_heavy_job_is_refused(t: &Topic) {
    set(t, "3/s").await;
    let at = t.in_ms(60_000);
    let waits = |job| copy_of(&job, State::Delayed, at);
    let import = async |weight| {
        let copies = vec![copy_of(&heavy("dead", 9), State::Dead, at), waits(heavy("a", weight))];
        t.try_import(import_of(copies, OnDuplicate::Keep)).await
    };
    let error = import(4).await.expect_err("no period has room for it");
    let StoreError::TooHeavy { id, heavy } = &error else { panic!("{error}") };
    assert_eq!((id.as_str(), AddOutcome::TooHeavy(heavy.clone())), ("a", refused(4, "3/s", None)));
    assert!(error.nothing_done() && !error.is_outage());
    assert_eq!((t.state("dead").await, t.state("a").await), (None, None), "nothing was done");
    assert_eq!(import(3).await.expect("it has room"), [ImportOutcome::Added; 2]);
    t.set(limit_to(Limit::GroupRate(rate("2/s")), "")).await;
    let copies = vec![waits(weighing(3, member("g-1", ms(0))))];
    let error = t.try_import(import_of(copies, OnDuplicate::Keep)).await.expect_err("it is too heavy");
    let StoreError::TooHeavy { heavy, .. } = &error else { panic!("{error}") };
    assert_eq!(heavy.group.as_ref().map(GroupName::as_str), Some("g"));
    assert!(
        error.to_string().contains("its weight is 3, and the rate 2/s of its group g allows 2 in a period"),
        "{error}"
    );
}
