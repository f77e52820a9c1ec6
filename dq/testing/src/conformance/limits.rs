//! Requests, batches and queries over their limits (rule 5).

use super::copies::{copy, import_of};
use super::producer::{answered, command, job};
use super::topic::{FALLBACK, LEASE, MAX_CRASHES, Topic, id, isolate_of, ms, secs};
use dq::job::{Delivery, Isolation, State};
use dq::store::step::{Audit, Change, DEFAULT_BYTES, MAX_JOBS, Publish, Reclaim, Reconcile, Recover};
use dq::store::{
    AddOutcome, ChangeKind, CommandKind, JobChange, MAX_MINUTES, NewJob, Numbered, OnDuplicate, PageRequest, Request,
    StoreError,
};

/// The store refuses a request over its limit as a whole, and it takes no sequence number (rule 5).
pub async fn request_over_its_limit_changes_nothing(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.add_all(vec![job("b"), NewJob { deliver: Delivery::Broadcast, ..job("c") }]).await;
    let seen = t.lease("n").await.expect("n holds a");
    t.advance(LEASE + ms(1)).await;
    let (last_seen, bytes, limit) = (t.last_seen("n"), DEFAULT_BYTES, 1_001);
    let mut settle = t.settle_of("n", &claim, Change::Ack);
    settle.outcomes = vec![settle.outcomes[0].clone(); limit];
    let ids = (0..limit).map(|n| id(&format!("j{n}"))).collect();
    let requests: [(&str, Request); 9] = [
        ("n", t.transfer_of("n", limit).into()),
        ("n", settle.into()),
        ("n", Reconcile { last_seen, after: None, limit }.into()),
        ("n", isolate_of(last_seen, Isolation::Alone, &vec![&claim; limit]).into()),
        ("n", t.sweep_of("n", limit).into()),
        ("n", Publish { limit, bytes, fallback: FALLBACK, expires_after: secs(3_600) }.into()),
        ("m", Reclaim { node: t.node("n"), seen, limit, bytes, max_crashes: MAX_CRASHES }.into()),
        ("m", Audit { after: None, limit, bytes }.into()),
        ("m", Recover { ids, bytes }.into()),
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

/// The store refuses a batch over the limit as a whole, and its number counts as unused; one at the limit is done (rule 5).
pub async fn batch_over_its_limit_changes_nothing(t: &Topic) {
    let names: Vec<_> = (0..=MAX_JOBS).map(|n| format!("j{n}")).collect();
    let add = |count: usize| names[..count].iter().map(|name| job(name)).collect();
    let producer = t.producer();
    let added = producer.add(Numbered { number: 1, items: add(MAX_JOBS + 1) }).await.map(drop);
    assert!(
        answered(producer.add(Numbered { number: 1, items: add(MAX_JOBS) }).await.expect("1,000 are not too many"))
            .iter()
            .all(|outcome| *outcome == AddOutcome::Added)
    );
    let items = names.iter().map(|name| command(CommandKind::Delete, name, None)).collect();
    let deleted = producer.command(Numbered { number: 2, items }).await.map(drop);
    let items = vec![JobChange::new(id("j0"), ChangeKind::ExtendBy(secs(60))); MAX_JOBS + 1];
    let changed = producer.change(Numbered { number: 2, items }).await.map(drop);
    let copies = names.iter().map(|name| copy(name, State::Dead, t.now())).collect();
    let imported = producer.import(2, import_of(copies, OnDuplicate::Replace)).await.map(drop);
    for answer in [added, deleted, changed, imported] {
        let error = answer.expect_err("1,001 are too many");
        assert!(matches!(error, StoreError::OverLimit { size: 1_001, limit: 1_000, .. }), "{error}");
    }
    let counts = t.counts().await;
    assert_eq!((counts.ready, counts.dead, t.metadata("j0").await.version), (MAX_JOBS, 0, 0));
}

/// The store refuses a query over its limit (rule 5).
pub async fn query_over_its_limit_is_refused(t: &Topic) {
    let ids: Vec<_> = (0..1_001).map(|n| id(&format!("j{n}"))).collect();
    assert_eq!(t.store.get(&t.key, &ids[..1_000]).await.expect("1,000 are not too many").len(), 1_000);
    let mut answers = vec![t.store.get(&t.key, &ids).await.map(drop)];
    for state in State::ALL {
        let request = PageRequest { state, after: None, limit: 1_001, bytes: DEFAULT_BYTES };
        answers.push(t.store.page(&t.key, request).await.map(drop));
    }
    let to = t.now().as_millis() / 60_000;
    answers.push(t.store.statistics(&t.key, to - MAX_MINUTES, to).await.map(drop));
    for answer in answers {
        assert!(matches!(answer, Err(StoreError::OverLimit { .. })), "{answer:?}");
    }
}
