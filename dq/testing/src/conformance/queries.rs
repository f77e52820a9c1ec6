//! Queries (by id, pages, counts) and the audit (rule 2).

use super::events::add_in_state;
use super::producer::{delayed, job};
use super::topic::{LEASE, Topic, id, ms, secs};
use dq::job::{JobState, State};
use dq::store::TopicCounts;
use dq::store::step::Change;

/// Counts give the number of jobs in each place, the number of DELAYED jobs that are due, each from the millisecond of its due time on
/// (rule 4), and the head (query `counts`).
pub async fn counts_cover_every_place(t: &Topic) {
    assert_eq!(t.counts().await, TopicCounts { clock: t.now(), ..TopicCounts::default() });
    for state in [State::Unacked, State::Dead, State::Dead, State::Done, State::Running] {
        add_in_state(t, &format!("{state}-{}", t.counts().await.dead), state).await;
    }
    t.add_job(delayed("early", ms(5))).await;
    t.add_job(delayed("late", secs(9))).await;
    t.advance(std::time::Duration::from_micros(4_999)).await;
    assert_eq!(t.counts().await.ready, 0);
    t.advance(std::time::Duration::from_micros(1)).await;
    let expected = TopicCounts {
        clock: t.now(),
        delayed: 2,
        ready: 1,
        running: 1,
        unacked: 1,
        dead: 2,
        done: 1,
        broadcasts: 0,
        head: Some(t.due("early").await),
    };
    assert_eq!(t.counts().await, expected);
}

/// Pages come in the order of time, then id; each continues after the last one, and they end (query `page`).
pub async fn pages_come_in_order(t: &Topic) {
    for (name, delay) in [("b", 1), ("a", 1), ("d", 3), ("c", 2), ("e", 3)] {
        t.add_later(name, secs(delay)).await;
    }
    for limit in 1..=6 {
        let names: Vec<_> = t.pages(State::Delayed, limit).await.into_iter().map(|job| job.id.to_string()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e"], "pages of {limit}");
    }
}

/// Pages of RUNNING go node by node, then id by id, and name node and fence (query `page`).
pub async fn pages_of_running_name_the_holder(t: &Topic) {
    for (node, names) in [("n2", ["c", "a"]), ("n1", ["d", "b"])] {
        t.add_all(names.map(job).into()).await;
        t.claims(node).await;
        t.advance(ms(1)).await;
    }
    let mut rows = Vec::new();
    for job in t.pages(State::Running, 1).await {
        match job.place {
            JobState::Running { holder: Some((node, _)) } => rows.push(format!("{node}/{}", job.id)),
            other => panic!("{} is {other:?}", job.id),
        }
    }
    assert_eq!(rows, ["n1/b", "n1/d", "n2/a", "n2/c"]);
    assert_eq!(t.place("a").await, JobState::Running { holder: None }, "a query by id names no holder");
}

/// A query by ids answers for every id in the order of the request, with a gap for an unknown id (query `get`).
pub async fn get_answers_in_the_order_of_the_ids(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    let found = t.store.get(&t.key, &[id("b"), id("x"), id("a"), id("b")]).await.expect("get is answered");
    let names: Vec<_> = found.iter().map(|job| job.as_ref().map(|job| job.id.as_str())).collect();
    assert_eq!(names, [Some("b"), None, Some("a"), Some("b")]);
}

/// A scan returns every lease, which a claim writes, counted from the store's clock, and as many records as there are jobs in places
/// (rules 2, 8).
pub async fn scan_returns_leases_and_the_audit(t: &Topic) {
    for state in State::ALL {
        add_in_state(t, state.as_str(), state).await;
    }
    t.running("n", "a").await;
    let scanned = t.scan().await;
    assert_eq!((scanned.records, scanned.places, scanned.clock), (6, 6, t.now()));
    let mut leases = scanned.leases;
    leases.sort();
    let end = t.now().after(LEASE);
    assert_eq!(leases, [(t.node(super::events::NODE), end), (t.node("n"), end)]);
}

/// Queries renew nothing, claim nothing and take no sequence number (queries).
pub async fn queries_change_nothing(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.add("b").await;
    let (before, counts) = (t.scan().await, t.counts().await);
    t.audit().await;
    assert_eq!((t.scan().await, t.counts().await), (before, counts));
    t.end("n", &claim, Change::Ack).await;
    t.transfer("n", 10).await;
}
