//! What people see of a topic: overviews, counts of what falls due, and the reasons why a job has not run.

use std::sync::Arc;
use std::time::Duration;

use super::events::add_in_state;
use super::producer::{delayed, job};
use super::setting::drain;
use super::topic::{FALLBACK, LEASE, Topic, id, ms, secs};
use dq::config::NodeSettings;
use dq::environment::{Environment, Seeded};
use dq::inspect::{BulkAction, Inspector, JobFilter, MOST_LOOKED_AT, Reason};
use dq::job::{Cause, Metadata, State};
use dq::store::step::Change;
use dq::store::{DueCount, HolderSeen, MOST_BUCKETS, MOST_NODES, NewJob, StoreError, TopicOverview};
use dq::time::Timestamp;

const HOUR: Duration = Duration::from_secs(3_600);

pub(super) fn inspector(t: &Topic) -> Inspector {
    let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
    dq::Provider::root(t.key.app.clone(), Arc::clone(&t.store), environment, NodeSettings::default()).inspect()
}

impl Topic {
    async fn overview(&self, nodes: usize) -> TopicOverview {
        self.store.overview(&self.key, nodes).await.expect("overview is answered")
    }

    async fn due_counts(&self, times: &[Timestamp]) -> Vec<usize> {
        let counts = self.store.due_counts(&self.key, times).await.expect("due_counts is answered");
        assert!(counts.iter().all(|count| count.is_exact), "{counts:?}");
        counts.into_iter().map(|count| count.jobs).collect()
    }

    async fn why(&self, name: &str) -> Vec<Reason> {
        let why = inspector(self).why(self.key.topic.as_str(), name).await.expect("why is answered");
        assert!(!why.reasons.is_empty() && !why.to_string().is_empty());
        why.reasons
    }
}

/// An overview has the counts, the state, the nodes that hold jobs in order of their leases, and the watchers (query `overview`).
pub async fn overview_shows_a_topic_as_a_whole(t: &Topic) {
    assert_eq!(t.overview(MOST_NODES).await, TopicOverview { counts: t.counts().await, ..TopicOverview::default() });
    t.add_all(vec![job("a"), job("b"), job("c")]).await;
    assert_eq!(t.transfer("late", 2).await.claims.len(), 2);
    let late = t.now().after(LEASE);
    t.advance(ms(5)).await;
    assert_eq!(t.transfer("n", 1).await.claims.len(), 1);
    t.transfer("idle", 1).await;
    t.pause().await;
    let seen = t.overview(MOST_NODES).await;
    assert_eq!((seen.counts, &seen.state), (t.counts().await, &t.topic_state().await));
    let holder = |node: &str, lease, jobs| HolderSeen { node: t.node(node), lease, jobs };
    assert_eq!(seen.nodes, [holder("late", late, 2), holder("n", t.now().after(LEASE), 1)]);
    let watcher = seen.watcher.expect("a node watches");
    assert!(watcher.1 > t.now(), "{watcher:?}");
    let one = t.overview(1).await;
    assert_eq!((one.nodes.len(), one.holders), (1, 2));
    assert!(t.overview(0).await.nodes.is_empty());
    assert!(matches!(t.store.overview(&t.key, MOST_NODES + 1).await, Err(StoreError::OverLimit { .. })));
}

/// Due counts are from each time on and before the next, however far away the jobs are due (query `due_counts`).
pub async fn due_counts_have_each_job_in_one_span(t: &Topic) {
    let now = t.now();
    let delays: Vec<u64> = (0..600).map(|n| n * 7_919 % 86_400).collect();
    t.add_all(delays.iter().enumerate().map(|(n, delay)| delayed(&format!("j{n}"), secs(*delay))).collect()).await;
    let times: Vec<_> = (0..=24).map(|hour| now.after(HOUR * hour)).collect();
    let expected = |from: u64, to: u64| delays.iter().filter(|delay| (from..to).contains(*delay)).count();
    let hours: Vec<_> = (0..24).map(|hour| expected(hour * 3_600, (hour + 1) * 3_600)).collect();
    assert_eq!(t.due_counts(&times).await, hours);
    let (from, to) = (now.after(secs(40_000)), now.after(secs(40_500)));
    assert_eq!(t.due_counts(&[from, to]).await, [expected(40_000, 40_500)]);
    let first = t.due("j1").await;
    assert_eq!(t.due_counts(&[first, first.after(ms(1))]).await, [1], "from the first time on");
    assert_eq!(t.due_counts(&[now, first]).await, [expected(0, 7_919)], "before the second");
    assert_eq!(t.due_counts(&[]).await, [0; 0]);
    let many = vec![now; MOST_BUCKETS + 2];
    assert!(matches!(t.store.due_counts(&t.key, &many).await, Err(StoreError::OverLimit { .. })));
    assert_eq!(t.store.due_counts(&t.key, &many[1..]).await.expect("answered").len(), MOST_BUCKETS);
    assert_eq!(DueCount::default().jobs, 0);
}

/// Why a job that waits has not run: its time, a retry, a pause, a drain, no node, other jobs.
pub async fn why_names_what_a_waiting_job_waits_for(t: &Topic) {
    assert_eq!(t.why("nobody").await, [Reason::Unknown]);
    t.add_job(delayed("later", secs(60))).await;
    let (due, now) = (t.due("later").await, t.now());
    let nobody = Reason::NoListener { last: None, until: None };
    assert_eq!(t.why("later").await, [Reason::NotDueYet { due, now }, nobody.clone()]);
    t.add("a").await;
    assert_eq!(t.why("a").await, [nobody]);
    let claim = t.claim("n", "a").await;
    let failed =
        Metadata { attempts: 1, cause: Some(Cause::Timeout), error: Some("slow".into()), ..Metadata::default() };
    t.end_with("n", &claim, Change::Retry(secs(9)), failed).await;
    t.transfer("n", 1).await;
    let (due, error) = (t.due("a").await, Some("slow".into()));
    assert_eq!(t.why("a").await, [Reason::RetryWaits { due, attempts: 1, cause: Some(Cause::Timeout), error }]);
    t.advance(secs(10)).await;
    t.pause().await;
    t.transfer("n", 1).await;
    let paused = t.why("a").await;
    assert!(matches!(&paused[..], [Reason::Paused { by, .. }] if by == "anna"), "{paused:?}");
    t.resume().await;
    t.delete("a").await;
    t.set(drain("moving")).await;
    t.advance(secs(60)).await;
    t.transfer("n", 1).await;
    let drained = t.why("later").await;
    assert!(matches!(&drained[..], [Reason::Draining { because, .. }] if because == "moving"), "{drained:?}");
}

/// Why a due job has not run: the node that listened is gone, others come first, and nodes are busy.
pub async fn why_names_what_keeps_a_due_job(t: &Topic) {
    t.transfer("gone", 1).await;
    t.advance(FALLBACK * 3).await;
    t.add_all(vec![job("a"), job("b")]).await;
    let reasons = t.why("a").await;
    assert!(
        matches!(&reasons[..], [Reason::NoListener { last: Some(node), .. }] if *node == t.node("gone")),
        "{reasons:?}"
    );
    t.advance(ms(5)).await;
    t.add("c").await;
    assert_eq!(t.transfer("n", 1).await.claims.len(), 1);
    let reasons = t.why("c").await;
    assert_eq!(reasons[0], Reason::Behind { earlier: 1, is_exact: true });
    assert!(
        matches!(&reasons[1], Reason::Busy { nodes } if nodes[0].node == t.node("n") && nodes[0].jobs == 1),
        "{reasons:?}"
    );
}

/// Why a job that is not waiting does not run: it runs, its node died, it was parked, it is DEAD, it is done.
pub async fn why_names_what_became_of_a_job(t: &Topic) {
    for state in [State::Unacked, State::Dead, State::Done, State::Running] {
        add_in_state(t, &state.to_string(), state).await;
    }
    let since = t.now();
    assert_eq!(t.why(&State::Unacked.to_string()).await, [Reason::Unacked { since }]);
    assert!(matches!(&t.why(&State::Dead.to_string()).await[..], [Reason::Dead { since: at, .. }] if *at == since));
    assert!(matches!(&t.why(&State::Done.to_string()).await[..], [Reason::Done { until }] if *until > since));
    let running = t.why(&State::Running.to_string()).await;
    let Some(Reason::Running { node: Some(node), lease: Some(lease) }) = running.first() else { panic!("{running:?}") };
    assert_eq!(*lease, t.overview(1).await.nodes[0].lease);
    t.advance(LEASE * 2).await;
    let lost = t.why(&State::Running.to_string()).await;
    assert_eq!(lost, [Reason::LeaseRanOut { node: node.clone(), at: *lease }]);
}

/// Why a due job has not run although a node listens: a node is about to take it, or it expired.
pub async fn why_names_a_job_that_comes_next_and_one_that_expired(t: &Topic) {
    t.add_job(delayed("next", ms(50))).await;
    t.transfer("n", 1).await;
    t.advance(ms(60)).await;
    assert_eq!(t.why("next").await, [Reason::Next { due: t.due("next").await }]);
    t.claim("n", "next").await;
    t.add_job(NewJob { expires_after: Some(ms(100)), ..job("old") }).await;
    let at = t.metadata("old").await.expires_at.expect("it expires");
    t.advance(secs(1)).await;
    assert_eq!(t.why("old").await, [Reason::Expired { at }]);
}

/// A job of a process that died says so while it waits and while it runs; a page does not.
pub async fn why_names_the_crashes_of_a_job(t: &Topic) {
    t.running("n", "a").await;
    assert_eq!(t.stored("a").await.crashes, 0);
    t.crash("n").await;
    let waits = t.why("a").await;
    assert_eq!(waits.last(), Some(&Reason::Crashed { crashes: 1 }), "{waits:?}");
    t.claim("m", "a").await;
    let runs = t.why("a").await;
    assert!(matches!(&runs[..], [Reason::Running { .. }, Reason::Crashed { crashes: 1 }]), "{runs:?}");
    assert!(t.pages(State::Running, 10).await.iter().all(|job| job.crashes == 0));
}

/// Filters let the right jobs through, their pages meet each job once, and say how far they looked.
pub async fn filters_give_pages_that_lead_on(t: &Topic) {
    let now = t.now();
    t.add_all((0..250).map(|n| delayed(&format!("{}-{n}", n % 2), secs(n))).collect()).await;
    let (look, topic) = (inspector(t), t.key.topic.as_str());
    for (filter, expected) in [
        (JobFilter::default(), 250),
        (JobFilter { id_prefix: Some("1-".into()), ..JobFilter::default() }, 125),
        (JobFilter { from: Some(now.after(secs(10))), until: Some(now.after(secs(30))), ..JobFilter::default() }, 20),
        (JobFilter { attempts: Some(1), ..JobFilter::default() }, 0),
    ] {
        let (mut after, mut seen, mut looked_at) = (None, Vec::new(), 0);
        loop {
            let page = look.jobs(topic, State::Delayed, &filter, after).await.expect("a page is answered");
            assert!(page.looked_at <= MOST_LOOKED_AT && page.jobs.len() <= 100);
            seen.extend(page.jobs.into_iter().map(|job| job.id));
            looked_at += page.looked_at;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!((seen.len(), count), (expected, expected), "{filter:?}");
        assert!(looked_at <= 250, "{looked_at} for {filter:?}");
    }
}

/// A bulk change does what it should to the jobs that its filter lets through, in steps that go on where another one stopped.
pub async fn bulk_change_goes_on_where_it_stopped(t: &Topic) {
    t.add_all((0..150).map(|n| delayed(&format!("{}-{n}", n % 3), secs(60 + n))).collect()).await;
    let (look, topic) = (inspector(t), t.key.topic.as_str());
    let due = t.now().after(HOUR);
    let all = JobFilter::default();
    let mut first = look.bulk(topic, State::Delayed, all.clone(), BulkAction::Reschedule(due)).expect("a topic");
    let progress = first.step().await.expect("a step").expect("jobs");
    assert_eq!((progress.changed, progress.untouched), (100, 0));
    let cursor = first.cursor().expect("a cursor").clone();
    let rest = look.bulk(topic, State::Delayed, all.clone(), BulkAction::Reschedule(due)).expect("a topic");
    let mut rest = rest.starting_after(cursor);
    while rest.step().await.expect("a step").is_some() {}
    assert_eq!(rest.progress().changed, 50, "a job that is there already is left alone");
    assert_eq!(t.due_counts(&[due, due.after(ms(1))]).await, [150]);
    let filter = JobFilter { id_prefix: Some("2-".into()), ..JobFilter::default() };
    let mut delete = look.bulk(topic, State::Delayed, filter, BulkAction::Delete).expect("a topic");
    while delete.step().await.expect("a step").is_some() {}
    assert_eq!((delete.progress().changed, t.counts().await.delayed), (50, 100));
    let mut run = look.bulk(topic, State::Delayed, all, BulkAction::RunNow).expect("a topic");
    while run.step().await.expect("a step").is_some() {}
    assert_eq!(t.counts().await.ready, 100);
    assert!(t.find(id("2-2").as_str()).await.is_none());
}
