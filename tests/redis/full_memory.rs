//! Full memory: adds are refused before they write anything, and every other step still works (rule 1).

use std::time::Duration;

use dq::job::{Isolation, Metadata};
use dq::store::step::{
    Change, DEFAULT_BYTES, Exhaust, Isolate, NoteVerdict, Publish, RejoinDue, Release, Renew, Scan, Verdict, Wake,
};
use dq::store::{CommandKind, Store};

use super::topic::{LEASE, Topic, job};

#[tokio::test]
async fn every_step_except_add_works_when_memory_is_full() {
    let (server, topic) = Topic::entered().await;
    topic.add("abcdefghi".chars().map(|name| job(&name.to_string())).collect()).await;
    let claims = topic.claims().await;
    assert_eq!(claims.len(), 9);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);

    let error = topic.try_add(vec![job("late")]).await.unwrap_err();
    assert!(error.nothing_done() && error.to_string().contains("OOM"), "{error:?}");
    let again = Change::Rejoin(RejoinDue::After(Duration::from_secs(60)));
    let changes =
        [Change::Ack, again, Change::Retry(Duration::from_secs(60)), Change::Rollback, Change::Park, Change::Dead];
    for (claim, change) in claims.iter().zip(changes) {
        let settled = topic.try_settle(std::slice::from_ref(claim), change.clone()).await;
        assert_eq!(settled.unwrap().verdicts, [Verdict::Done], "{change:?}");
    }
    let (last_seen, lease, claim) = (topic.last_seen(), LEASE, &claims[6]);
    let (id, token) = (claim.id.clone(), claim.token);
    topic.link.step(Renew { last_seen, lease }).await.unwrap();
    let (isolation, runs) = (Some(Isolation::Alone), vec![(id.clone(), token)]);
    let isolate = Isolate { last_seen, lease, isolation, runs };
    assert_eq!(topic.link.step(isolate).await.unwrap().notes, Some(vec![NoteVerdict::Done]));
    let exhaust =
        Exhaust { last_seen, lease, id, token, metadata: Metadata { exhausted: true, ..Metadata::default() } };
    assert_eq!(topic.link.step(exhaust).await.unwrap().note, NoteVerdict::Done);
    assert!(topic.command(CommandKind::Delete, "h").await.changed);
    assert!(topic.command(CommandKind::Requeue, "f").await.changed);
    assert_eq!(topic.reconcile().await, 3);
    while topic.store.counts(&topic.key).await.unwrap().ready < 2 {}
    assert_eq!(
        topic.try_transfer(10).await.unwrap().claims.len(),
        2,
        "the job that was rolled back and the requeued one"
    );
    let request = Publish { limit: 10, bytes: DEFAULT_BYTES, fallback: LEASE, expires_after: LEASE };
    topic.link.step(request).await.unwrap();
    topic.link.step(Wake).await.unwrap();
    let scanned = topic.link.step(Scan).await.unwrap();
    assert_eq!(scanned.records, scanned.places);
    topic.link.step(Release { last_seen: topic.last_seen() }).await.unwrap();

    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    topic.add(vec![job("late")]).await;
    assert_eq!(topic.store.counts(&topic.key).await.unwrap().running, 5);
}

#[tokio::test]
async fn sweeps_work_when_memory_is_full() {
    let (server, topic) = Topic::entered().await;
    topic.add(vec![job("parked"), job("dead"), job("dead too")]).await;
    let claims = topic.claims().await;
    topic.try_settle(&claims[..1], Change::Dead).await.unwrap();
    topic.try_settle(&claims[1..2], Change::Dead).await.unwrap();
    topic.try_settle(&claims[2..], Change::Park).await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    while topic.store.counts(&topic.key).await.unwrap().clock <= claims[0].token.due {}
    let swept = topic.swept(topic.sweep(Duration::ZERO, LEASE, 1)).await;
    assert_eq!((swept.pruned_dead, swept.claims.len(), swept.lease_status.rows), (1, 1, 1));
    assert_eq!(swept.claims[0].id, claims[2].id);
}
