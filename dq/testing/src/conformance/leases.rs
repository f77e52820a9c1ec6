//! When a lease is written, renewed, cut and removed, and the release of a node (rules 6, 8, 20, 21).

use super::events::{WAYS_OUT, leave_running};
use super::producer::job;
use super::topic::{LEASE, START, Topic, done, isolate_of, ms, refused, secs};
use dq::job::{Isolation, Sequence};
use dq::store::step::{Change, Exhaust, MAX_JOBS, MAX_LEASE, Reclaimed, Release, Renew, Scan, Settle, Transfer};
use dq::time::Timestamp;

/// A node without jobs has no lease, whatever it requests (rule 8).
pub async fn node_without_jobs_has_no_lease(t: &Topic) {
    t.transfer("n", 10).await;
    assert_eq!(t.lease("n").await, None);
    t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!(t.lease("n").await, None);
    t.reconcile("n").await;
    t.renew("n").await;
    assert_eq!(t.lease("n").await, None);
}

/// The step that removes a node's last row removes its lease, whichever step it is; an earlier one does not (rule 8).
pub async fn lease_goes_with_the_last_row(t: &Topic) {
    for way in 0..WAYS_OUT {
        let claim = t.running("n", "a").await;
        assert!(t.lease("n").await.is_some());
        leave_running(t, "n", &claim, way).await;
        assert_eq!(t.lease("n").await, None, "way {way} out of RUNNING");
        t.delete("a").await;
    }
    t.add_all(vec![job("b"), job("c")]).await;
    let claims = t.claims("n").await;
    t.end("n", &claims[0], Change::Ack).await;
    assert!(t.lease("n").await.is_some());
}

/// Transfer, settle, renew, isolate, exhaust and sweep renew the lease of a node that names its sequence number (rule
/// 6).
pub async fn steps_that_name_the_sequence_number_renew(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    let claims = t.claims("n").await;
    for step in 0..5 {
        t.advance(secs(4)).await;
        match step {
            0 => {
                t.transfer("n", 10).await;
            }
            1 => t.end("n", &claims[0], Change::Ack).await,
            2 => {
                t.renew("n").await;
            }
            3 => {
                t.isolate("n", &claims[1]).await;
            }
            _ => {
                t.exhaust("n", &claims[1], t.metadata("b").await).await;
            }
        }
        assert_eq!(t.lease("n").await, Some(t.now().after(LEASE)), "request {step}");
    }
    t.advance(secs(4)).await;
    t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!(t.lease("n").await, Some(t.now().after(LEASE)), "sweep");
}

/// Settle, renew, isolate and exhaust renew nothing if they name another sequence number (rule 6).
pub async fn steps_that_name_another_sequence_number_renew_nothing(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    let claims = t.claims("n").await;
    let lease = t.lease("n").await;
    t.advance(secs(4)).await;
    let (link, metadata) = (t.link("n"), t.metadata("b").await);
    for last_seen in [Sequence(t.last_seen("n").0 - 1), t.last_seen("n").next(), Sequence(0)] {
        let (id, token) = (claims[1].id.clone(), claims[1].token);
        let settle = Settle { last_seen, ..t.settle_of("n", &claims[0], Change::Ack) };
        link.step(settle).await.expect("settle is answered");
        link.step(Renew { last_seen, lease: LEASE }).await.expect("renew is answered");
        link.step(isolate_of(last_seen, Isolation::Alone, &[&claims[1]])).await.expect("isolate is answered");
        let exhaust = Exhaust { last_seen, lease: LEASE, id, token, metadata: metadata.clone() };
        link.step(exhaust).await.expect("exhaust is answered");
        assert_eq!(t.lease("n").await, lease, "last seen {last_seen}");
    }
}

/// An unresponsive node, whose requests arrive while it receives no answers, cannot keep what it claimed (rule 6).
pub async fn unresponsive_node_cannot_keep_what_it_claimed(t: &Topic) {
    t.add("a").await;
    t.enter("unresponsive").await;
    let link = t.link("unresponsive");
    drop(link.step(t.transfer_of("unresponsive", 10)));
    link.step(Scan).await.expect("scan is answered"); // the transfer went out before it
    let lease = t.lease("unresponsive").await.expect("its transfer was executed");
    for _ in 0..6 {
        t.advance(LEASE / 5).await;
        drop(t.link("unresponsive").step(t.transfer_of("unresponsive", 10)));
        drop(t.link("unresponsive").step(Renew { last_seen: t.last_seen("unresponsive"), lease: LEASE }));
        assert_eq!(t.lease("unresponsive").await, Some(lease));
    }
    let seen = t.transfer("n", 10).await.foreign_lease;
    assert_eq!(seen, Some((t.node("unresponsive"), lease)));
    assert_eq!(t.reclaim("n", "unresponsive", lease, 10).await, Reclaimed { moved: 1, left: 0 });
    t.claim("n", "a").await;
}

/// A renewal never creates a lease; the number of rows in its answer shows the node that the lease is lost (rule 21).
pub async fn renew_never_creates_a_lease(t: &Topic) {
    t.running("n", "a").await;
    t.crash("n").await;
    let lease_status = t.renew("n").await;
    assert_eq!((lease_status.rows, t.lease("n").await), (0, None));
}

/// A renewal may shorten a lease: the last one applies, not the longest (rule 20).
pub async fn renewal_may_shorten_a_lease(t: &Topic) {
    t.running("n", "a").await;
    let renew = Renew { last_seen: t.last_seen("n"), lease: secs(3) };
    t.link("n").step(renew).await.expect("renew is answered");
    assert_eq!(t.lease("n").await, Some(t.now().after(secs(3))));
    t.set_clock(START - 10_000_000).await;
    t.renew("n").await;
    assert_eq!(t.lease("n").await, Some(t.now().after(LEASE)));
}

/// A lease that ends more than five minutes ahead, as after a clock that jumped back, is cut to five minutes (rule 20).
pub async fn lease_far_ahead_is_cut(t: &Topic) {
    t.running("n", "a").await;
    t.set_clock(START - 3_600_000_000).await;
    t.transfer("m", 10).await;
    assert_eq!(t.lease("n").await, Some(t.now().after(MAX_LEASE)));
    t.set_clock(START - 7_200_000_000).await;
    assert_eq!(t.scan().await.leases, [(t.node("n"), t.now().after(MAX_LEASE))]);
}

/// A lease lasts at most five minutes, and the store cuts it when it grants it, not when it is read (rule 20).
pub async fn lease_is_at_most_five_minutes(t: &Topic) {
    t.add("a").await;
    t.enter("n").await;
    let request = Transfer { lease: secs(900), ..t.transfer_of("n", 10) };
    let last_seen = done(t.link("n").step(request).await.expect("transfer is answered")).lease_status.sequence;
    let end = t.now().after(MAX_LEASE);
    t.advance(secs(100)).await;
    assert_eq!(t.lease("n").await, Some(end));
    t.link("n").step(Renew { last_seen, lease: secs(900) }).await.expect("renew is answered");
    let end = t.now().after(MAX_LEASE);
    t.advance(secs(100)).await;
    assert_eq!(t.lease("n").await, Some(end));
}

/// Every answer to a link carries the node's sequence number and its number of rows (rule 7).
pub async fn every_answer_carries_the_lease_status(t: &Topic) {
    t.add_all(vec![job("a"), job("b"), job("c")]).await;
    let claims = t.claims("n").await;
    let status = |lease_status: dq::store::step::LeaseStatus| (lease_status.sequence, lease_status.rows);
    assert_eq!(status(t.renew("n").await), (t.last_seen("n"), 3));
    let settled = t.settle_all("n", t.settle_of("n", &claims[0], Change::Ack).outcomes).await;
    assert_eq!(status(settled.lease_status), (t.last_seen("n"), 2));
    let request = isolate_of(t.last_seen("n"), Isolation::Alone, &[&claims[1]]);
    let isolate = t.link("n").step(request).await.expect("isolate is answered");
    assert_eq!(status(isolate.lease_status), (t.last_seen("n"), 2));
    let sequence = t.last_seen("n");
    assert_eq!(status(t.reconcile("n").await.lease_status), (sequence.next(), 2));
    assert_eq!(status(t.release("n").await), (sequence.next().next(), 2));
}

/// The release of a node without jobs takes a sequence number and leaves no lease (rule 8).
pub async fn release_without_rows_leaves_no_lease(t: &Topic) {
    t.add_and_run("n", "a", Change::Ack).await;
    let sequence = t.last_seen("n");
    let lease_status = t.release("n").await;
    assert_eq!((lease_status.sequence, lease_status.rows), (sequence.next(), 0));
    assert_eq!(t.lease("n").await, None);
}

/// The rows of a released node can be reclaimed at once, without charging a crash (rules 8, 19).
pub async fn rows_of_a_released_node_are_free_at_once(t: &Topic) {
    let claim = t.running("n", "a").await;
    assert_eq!(t.release("n").await.rows, 1);
    assert_eq!(t.lease("n").await, Some(Timestamp::EPOCH));
    assert_eq!(t.transfer("m", 10).await.foreign_lease, Some((t.node("n"), Timestamp::EPOCH)));
    assert_eq!(t.reclaim("m", "n", Timestamp::EPOCH, 10).await, Reclaimed { moved: 1, left: 0 });
    assert_eq!(t.due("a").await, claim.token.due);
    assert_eq!(t.claim("m", "a").await.crashes, 0);
}

/// Requests that a node sent before its release claim and renew nothing after it (rule 6).
pub async fn nothing_is_claimed_for_a_released_node(t: &Topic) {
    t.running("n", "a").await;
    let late = t.transfer_of("n", 10);
    t.add("b").await;
    t.release("n").await;
    refused(t.link("n").step(late.clone()).await.expect("transfer is answered"));
    t.link("n").step(Renew { last_seen: late.last_seen, lease: LEASE }).await.expect("renew is answered");
    assert_eq!(t.lease("n").await, Some(Timestamp::EPOCH));
    t.claim("m", "b").await;
}

/// A release is executed whatever sequence number it names, and takes one beyond both (rule 6).
pub async fn release_accepts_any_sequence_number(t: &Topic) {
    t.running("n", "a").await;
    let last_seen = Sequence(t.last_seen("n").0 + 40);
    let lease_status = t.link("n").step(Release { last_seen }).await.expect("release is answered");
    assert_eq!((lease_status.sequence, lease_status.rows), (last_seen.next(), 1));
    let lease_status = t.link("n").step(Release { last_seen: Sequence(1) }).await.expect("release is answered");
    assert_eq!(lease_status.sequence, last_seen.next().next());
    assert_eq!(t.lease("n").await, Some(Timestamp::EPOCH));
}

/// Lease ends are in milliseconds, and a lease protects the jobs of its node until the millisecond of its end (rule 20).
pub async fn lease_ends_at_its_millisecond(t: &Topic) {
    t.advance(std::time::Duration::from_micros(700)).await;
    t.add("a").await;
    t.advance(ms(1)).await;
    t.claim("n", "a").await;
    let seen = t.lease("n").await.expect("n holds a");
    t.set_clock(seen.as_millis() * 1_000 - 1).await;
    assert_eq!(t.reclaim("m", "n", seen, MAX_JOBS).await.moved, 0);
    t.set_clock(seen.as_millis() * 1_000).await;
    assert_eq!(t.reclaim("m", "n", seen, MAX_JOBS).await.moved, 1);
}
