//! What people see of a topic: overviews, counts of what falls due, and the reasons why a job has not run.

use std::sync::Arc;
use std::time::Duration;

use super::events::add_in_state;
use super::priorities::ranked;
use super::producer::{delayed, job};
use super::setting::drain;
use super::topic::{FALLBACK, LEASE, Topic, id, ms, secs};
use dq::config::NodeSettings;
use dq::environment::{Environment, Seeded};
use dq::inspect::{BulkAction, Inspector, JobFilter, MAX_LOOKED_AT, NotRunReason};
use dq::job::{Cause, JobId, Metadata, NodeId, Priority, State};
use dq::store::step::{Change, DEFAULT_BYTES};
use dq::store::{
    DueCount, HolderPage, HolderSeen, MAX_BUCKETS, MAX_NODES, NewJob, NodesRequest, StoreError, TopicOverview,
};
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

    async fn why(&self, name: &str) -> Vec<NotRunReason> {
        let why = inspector(self).why(self.key.topic.as_str(), name).await.expect("why is answered");
        assert!(!why.reasons.is_empty() && !why.to_string().is_empty());
        why.reasons
    }
}

/// An overview has the counts, the state, the nodes that hold jobs in order of their leases, and the watchers (query `overview`).
pub async fn overview_shows_a_topic_as_a_whole(t: &Topic) {
    assert_eq!(t.overview(MAX_NODES).await, TopicOverview { counts: t.counts().await, ..TopicOverview::default() });
    t.add_all(vec![job("a"), job("b"), job("c")]).await;
    assert_eq!(t.transfer("late", 2).await.claims.len(), 2);
    let late = t.now().after(LEASE);
    t.advance(ms(5)).await;
    assert_eq!(t.transfer("n", 1).await.claims.len(), 1);
    t.transfer("idle", 1).await;
    t.pause().await;
    let seen = t.overview(MAX_NODES).await;
    assert_eq!((seen.counts, &seen.state), (t.counts().await, &t.topic_state().await));
    let holder = |node: &str, lease, jobs| HolderSeen { node: t.node(node), lease, jobs };
    assert_eq!(seen.nodes, [holder("late", late, 2), holder("n", t.now().after(LEASE), 1)]);
    let watcher = seen.watcher.expect("a node watches");
    assert!(watcher.1 > t.now(), "{watcher:?}");
    let one = t.overview(1).await;
    assert_eq!((one.nodes.len(), one.holders), (1, 2));
    assert!(t.overview(0).await.nodes.is_empty());
    assert!(matches!(t.store.overview(&t.key, MAX_NODES + 1).await, Err(StoreError::OverLimit { .. })));
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
    let many = vec![now; MAX_BUCKETS + 2];
    assert!(matches!(t.store.due_counts(&t.key, &many).await, Err(StoreError::OverLimit { .. })));
    assert_eq!(t.store.due_counts(&t.key, &many[1..]).await.expect("answered").len(), MAX_BUCKETS);
    assert_eq!(DueCount::default().jobs, 0);
}

/// Why a job that waits has not run: its time, a retry, a pause, a drain, no node, other jobs.
pub async fn why_names_what_a_waiting_job_waits_for(t: &Topic) {
    assert_eq!(t.why("nobody").await, [NotRunReason::Unknown]);
    t.add_job(delayed("later", secs(60))).await;
    let (due, now) = (t.due("later").await, t.now());
    let nobody = NotRunReason::NoListener { last: None, until: None };
    assert_eq!(t.why("later").await, [NotRunReason::NotDueYet { due, now }, nobody.clone()]);
    t.add("a").await;
    assert_eq!(t.why("a").await, [nobody]);
    let claim = t.claim("n", "a").await;
    let failed =
        Metadata { attempts: 1, cause: Some(Cause::Timeout), error: Some("slow".into()), ..Metadata::default() };
    t.end_with("n", &claim, Change::Retry(secs(9)), failed).await;
    t.transfer("n", 1).await;
    let (due, error) = (t.due("a").await, Some("slow".into()));
    assert_eq!(t.why("a").await, [NotRunReason::RetryWaits { due, attempts: 1, cause: Some(Cause::Timeout), error }]);
    t.advance(secs(10)).await;
    t.pause().await;
    t.transfer("n", 1).await;
    let paused = t.why("a").await;
    assert!(matches!(&paused[..], [NotRunReason::Paused { by, .. }] if by == "anna"), "{paused:?}");
    t.resume().await;
    t.delete("a").await;
    t.set(drain("moving")).await;
    t.advance(secs(60)).await;
    t.transfer("n", 1).await;
    let drained = t.why("later").await;
    assert!(matches!(&drained[..], [NotRunReason::Draining { because, .. }] if because == "moving"), "{drained:?}");
}

/// Why a due job has not run: the node that listened is gone, others come first, and nodes are busy.
pub async fn why_names_what_keeps_a_due_job(t: &Topic) {
    t.transfer("gone", 1).await;
    t.advance(FALLBACK * 3).await;
    t.add_all(vec![job("a"), job("b")]).await;
    let reasons = t.why("a").await;
    assert!(
        matches!(&reasons[..], [NotRunReason::NoListener { last: Some(node), .. }] if *node == t.node("gone")),
        "{reasons:?}"
    );
    t.advance(ms(5)).await;
    t.add("c").await;
    assert_eq!(t.transfer("n", 1).await.claims.len(), 1);
    let reasons = t.why("c").await;
    assert_eq!(reasons[0], NotRunReason::Behind { earlier: 1, is_exact: true });
    assert!(
        matches!(&reasons[1], NotRunReason::Busy { nodes } if nodes[0].node == t.node("n") && nodes[0].jobs == 1),
        "{reasons:?}"
    );
}

/// Why a due job waits for others of a higher priority, and how many jobs are due by priority (rule 4).
pub async fn why_names_the_jobs_of_a_higher_priority(t: &Topic) {
    let due = [("low", ms(50)), ("low-later", secs(1)), ("normal", ms(50)), ("high", ms(51))];
    t.add_all(due.map(|(name, delay)| ranked(name, delay)).to_vec()).await;
    t.transfer("n", 1).await;
    t.advance(ms(60)).await;
    assert_eq!(t.overview(1).await.due, [1, 1, 1]);
    let overtaken = |priority, higher| NotRunReason::Overtaken { priority, higher };
    assert_eq!(t.why("low").await, [overtaken(Priority::Low, 2)]);
    assert_eq!(t.why("normal").await, [overtaken(Priority::Normal, 1)]);
    assert_eq!(t.why("high").await, [NotRunReason::Next { due: t.due("high").await }]);
    let seen = inspector(t).job(t.key.topic.as_str(), "low").await.expect("it is answered").expect("it is there");
    assert_eq!(seen.priority, Priority::Low);
}

/// Why a job that is not waiting does not run: it runs, its node died, it was parked, it is DEAD, it is done.
pub async fn why_names_what_became_of_a_job(t: &Topic) {
    for state in [State::Unacked, State::Dead, State::Done, State::Running] {
        add_in_state(t, &state.to_string(), state).await;
    }
    let since = t.now();
    assert_eq!(t.why(&State::Unacked.to_string()).await, [NotRunReason::Unacked { since }]);
    assert!(
        matches!(&t.why(&State::Dead.to_string()).await[..], [NotRunReason::Dead { since: at, .. }] if *at == since)
    );
    assert!(matches!(&t.why(&State::Done.to_string()).await[..], [NotRunReason::Done { until }] if *until > since));
    let running = t.why(&State::Running.to_string()).await;
    let Some(NotRunReason::Running { node: Some(node), lease: Some(lease) }) = running.first() else {
        panic!("{running:?}")
    };
    assert_eq!(*lease, t.overview(1).await.nodes[0].lease);
    t.advance(LEASE * 2).await;
    let lost = t.why(&State::Running.to_string()).await;
    assert_eq!(lost, [NotRunReason::LeaseRanOut { node: node.clone(), at: *lease }]);
}

/// Why a due job has not run although a node listens: a node is about to take it, or it expired.
pub async fn why_names_a_job_that_comes_next_and_one_that_expired(t: &Topic) {
    t.add_job(delayed("next", ms(50))).await;
    t.transfer("n", 1).await;
    t.advance(ms(60)).await;
    assert_eq!(t.why("next").await, [NotRunReason::Next { due: t.due("next").await }]);
    t.claim("n", "next").await;
    t.add_job(NewJob { expires_after: Some(ms(100)), ..job("old") }).await;
    let at = t.metadata("old").await.expires_at.expect("it expires");
    t.advance(secs(1)).await;
    assert_eq!(t.why("old").await, [NotRunReason::Expired { at }]);
}

/// A job of a process that died says so while it waits and while it runs; a page does not.
pub async fn why_names_the_crashes_of_a_job(t: &Topic) {
    t.running("n", "a").await;
    assert_eq!(t.stored("a").await.crashes, 0);
    t.crash("n").await;
    let waits = t.why("a").await;
    assert_eq!(waits.last(), Some(&NotRunReason::Crashed { crashes: 1 }), "{waits:?}");
    t.claim("m", "a").await;
    let runs = t.why("a").await;
    assert!(matches!(&runs[..], [NotRunReason::Running { .. }, NotRunReason::Crashed { crashes: 1 }]), "{runs:?}");
    let crashes: Vec<_> = t.pages(State::Running, 10).await.iter().map(|job| job.crashes).collect();
    assert_eq!(crashes, [0]);
}

/// The jobs of a state that a filter lets through, in order of their ids, and at how many jobs their pages have looked.
async fn looked(t: &Topic, state: State, filter: &JobFilter) -> (Vec<JobId>, usize) {
    let (look, topic) = (inspector(t), t.key.topic.as_str());
    let (mut after, mut seen, mut looked_at) = (None, Vec::new(), 0);
    for _ in 1..20 {
        let page = look.jobs(topic, state, filter, after).await.expect("a page is answered");
        assert!(page.looked_at <= MAX_LOOKED_AT && page.jobs.len() <= 100);
        assert!(state != State::Running || page.jobs.iter().all(|job| job.node.is_some()));
        seen.extend(page.jobs.into_iter().map(|job| job.id));
        looked_at += page.looked_at;
        after = page.next;
        if after.is_none() {
            seen.sort();
            return (seen, looked_at);
        }
    }
    panic!("the pages of {filter:?} do not end");
}

/// Filters let the right jobs through, their pages meet each job once, and say how far they looked.
pub async fn filters_give_pages_that_lead_on(t: &Topic) {
    let now = t.now();
    t.add_all((0..250).map(|n| delayed(&format!("{}-{n}", n % 2), secs(n))).collect()).await;
    let within =
        JobFilter { from: Some(now.after(secs(10))), until: Some(now.after(secs(30))), ..JobFilter::default() };
    for (filter, expected, fewest) in [
        (JobFilter::default(), 250, 250),
        (JobFilter { id_prefix: Some("1-".into()), ..JobFilter::default() }, 125, 250),
        (within, 20, 20),
        (JobFilter { attempts: Some(1), ..JobFilter::default() }, 0, 250),
    ] {
        let (mut seen, looked_at) = looked(t, State::Delayed, &filter).await;
        let count = seen.len();
        seen.dedup();
        assert_eq!((seen.len(), count), (expected, expected), "{filter:?}");
        assert!((fewest..=250).contains(&looked_at), "{looked_at} for {filter:?}");
    }
}

/// Nodes come in the order of their names, page after page, and the node that holds a job is found (query `nodes`).
pub async fn nodes_come_page_after_page(t: &Topic) {
    let nodes = async |after: Option<&str>, limit, job: Option<&str>| {
        let request = NodesRequest { after: after.map(NodeId::new), limit, job: job.map(id) };
        t.store.nodes(&t.key, request).await
    };
    assert_eq!(nodes(None, MAX_NODES, None).await.expect("answered"), HolderPage::default());
    t.add_all((0..6).map(|n| job(&format!("j{n}"))).collect()).await;
    for (count, node) in [(2, "b"), (1, "c"), (3, "a")] {
        assert_eq!(t.transfer(node, count).await.claims.len(), count);
        t.advance(ms(5)).await;
    }
    let lease = async |node: &str| t.lease(node).await.expect("it holds jobs");
    let mut expected = Vec::new();
    for (node, jobs) in [("a", 3), ("b", 2), ("c", 1)] {
        expected.push(HolderSeen { node: t.node(node), lease: lease(node).await, jobs });
    }
    let all = nodes(None, 3, None).await.expect("answered");
    assert_eq!(all, HolderPage { nodes: expected.clone(), next: None });
    let first = nodes(None, 2, None).await.expect("answered");
    assert_eq!(first, HolderPage { nodes: expected[..2].to_vec(), next: Some(t.node("b")) });
    let second = nodes(Some("b"), 2, None).await.expect("answered");
    assert_eq!(second, HolderPage { nodes: expected[2..].to_vec(), next: None });
    assert_eq!(
        nodes(Some("aa"), 2, None).await.expect("answered").nodes,
        expected[1..],
        "behind a node that is not there"
    );
    let claimed_by_c = t.rows("c").await.remove(0);
    let holder = nodes(None, 3, Some(claimed_by_c.as_str())).await.expect("answered");
    assert_eq!(holder, HolderPage { nodes: expected[2..].to_vec(), next: None });
    let not_yet = nodes(None, 1, Some(claimed_by_c.as_str())).await.expect("answered");
    assert_eq!(not_yet, HolderPage { nodes: Vec::new(), next: Some(t.node("a")) }, "it looked at one node");
    assert!(nodes(None, 3, Some("nobody")).await.expect("answered").nodes.is_empty());
    assert!(matches!(nodes(None, MAX_NODES + 1, None).await, Err(StoreError::OverLimit { .. })));
    let seen = inspector(t).nodes(t.key.topic.as_str(), Some("a")).await.expect("answered");
    let named: Vec<_> = seen.nodes.iter().map(|node| (&node.node, node.until, node.jobs)).collect();
    assert_eq!(named, expected[1..].iter().map(|node| (&node.node, node.lease, node.jobs)).collect::<Vec<_>>());
    assert_eq!((seen.nodes_holding, seen.store_time, seen.next), (3, t.now(), None));
}

/// Pages of RUNNING jobs lead on through many nodes and through many jobs of one node, with a filter and without.
pub async fn pages_of_running_jobs_lead_on(t: &Topic) {
    t.add_all((0..330).map(|n| job(&format!("{}-{n}", n % 3))).collect()).await;
    for node in 0..40 {
        assert_eq!(t.transfer(&format!("n{node:02}"), 2).await.claims.len(), 2);
    }
    assert_eq!(t.transfer("n05-busy", 250).await.claims.len(), 250);
    let prefix = |prefix: &str| JobFilter { id_prefix: Some(prefix.into()), ..JobFilter::default() };
    for (filter, expected) in [(JobFilter::default(), 330), (prefix("1-"), 110), (prefix(""), 330), (prefix("x"), 0)] {
        let (mut seen, looked_at) = looked(t, State::Running, &filter).await;
        seen.dedup();
        assert_eq!((seen.len(), looked_at), (expected, 330), "{filter:?}");
    }
    for (limit, bytes) in [(7, DEFAULT_BYTES), (1_000, 1), (1_000, 40 * 30)] {
        let jobs = t.pages_of(State::Running, limit, bytes).await.into_iter();
        let mut seen: Vec<_> = jobs.map(|job| job.id).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 330, "{limit} jobs and {bytes} bytes a page");
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
