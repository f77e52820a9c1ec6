//! Requests of nodes over their limits (rule 5).

use super::producer::job;
use super::topic::{FALLBACK, LEASE, MAX_CRASHES, Topic, isolate_of, ms, secs};
use dq::job::{Deliver, Isolation, State};
use dq::store::step::{Change, Publish, Reclaim, Reconcile, USUAL_BYTES};
use dq::store::{NewJob, Request, StoreError};

/// The store refuses a request over its limit as a whole, and it takes no sequence number (rule 5).
pub async fn request_over_its_limit_changes_nothing(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.add_all(vec![job("b"), NewJob { deliver: Deliver::Broadcast, ..job("c") }]).await;
    let seen = t.lease("n").await.expect("n holds a");
    t.advance(LEASE + ms(1)).await;
    let (last_seen, bytes, limit) = (t.last_seen("n"), USUAL_BYTES, 1_001);
    let mut settle = t.settle_of("n", &claim, Change::Ack);
    settle.outcomes = vec![settle.outcomes[0].clone(); limit];
    let requests: [(&str, Request); 7] = [
        ("n", t.transfer_of("n", limit).into()),
        ("n", settle.into()),
        ("n", Reconcile { last_seen, after: None, limit }.into()),
        ("n", isolate_of(last_seen, Isolation::Alone, &vec![&claim; limit]).into()),
        ("n", t.sweep_of("n", limit).into()),
        ("n", Publish { limit, bytes, fallback: FALLBACK, expires_after: secs(3_600) }.into()),
        ("m", Reclaim { node: t.node("n"), seen, limit, bytes, max_crashes: MAX_CRASHES }.into()),
    ];
    for (node, request) in requests {
        let name = request.kind().name();
        let error = t.link(node).ask(request).await.expect_err("1,001 are too many");
        assert!(matches!(error, StoreError::OverLimit { size: 1_001, limit: 1_000, .. }), "{name}: {error}");
    }
    assert_eq!((t.state("a").await, t.state("b").await), (Some(State::Running), Some(State::Delayed)));
    assert_eq!((t.counts().await.broadcasts, t.lease("n").await), (1, Some(seen)));
    assert_eq!(t.transfer("n", 1_000).await.claims.len(), 1);
    t.crash("n").await;
    assert!(!t.metadata("a").await.exhausted, "it was not noted as alone");
}
