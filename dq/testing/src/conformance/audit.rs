//! The audit finds jobs that have lost their place, and leaves all others alone (rule 2). A store keeps no such job by itself,
//! so the tests of each store that other programs can change show what becomes of one.

use super::events::{NODE, add_in_state};
use super::topic::{Topic, id};
use dq::job::State;
use dq::store::step::{Audit, Change, DEFAULT_BYTES, Recover, Recovered};

const fn first(limit: usize) -> Audit {
    Audit { after: None, limit, bytes: DEFAULT_BYTES }
}

/// The audit finds no job that waits, is parked, is kept, or runs on any node; and it ends (rule 2).
pub async fn audit_finds_no_job_that_has_a_place(t: &Topic) {
    for state in State::ALL {
        add_in_state(t, state.as_str(), state).await;
    }
    t.running("n", "a").await;
    t.running("m", "b").await;
    let mut request = first(2);
    for _ in 0..20 {
        let page = t.link("auditor").step(request.clone()).await.expect("audit is answered");
        assert_eq!(page.lost, []);
        if page.next.is_none() {
            return;
        }
        request.after = page.next;
    }
    panic!("7 jobs have more than 20 pages");
}

/// A recover touches no job that has a place or a row, and none that does not exist (rule 2).
pub async fn recover_touches_no_job_that_has_a_place(t: &Topic) {
    let driven = {
        for state in [State::Delayed, State::Unacked, State::Dead, State::Done] {
            add_in_state(t, state.as_str(), state).await;
        }
        add_in_state(t, State::Running.as_str(), State::Running).await.expect("it runs")
    };
    let claim = t.running("n", "a").await;
    let names = ["delayed", "unacked", "dead", "done", "running", "a", "unknown"];
    let mut before = Vec::new();
    for name in names {
        before.push(t.find(name).await);
    }
    let request = Recover { ids: names.map(id).to_vec(), bytes: DEFAULT_BYTES };
    let recovered = t.link("auditor").step(request).await.expect("recover is answered");
    assert_eq!(recovered, Recovered { recovered: Vec::new(), examined: names.len() });
    for (name, before) in names.iter().zip(before) {
        assert_eq!(t.find(name).await, before);
    }
    t.end(NODE, &driven, Change::Ack).await;
    t.end("n", &claim, Change::Ack).await;
}
