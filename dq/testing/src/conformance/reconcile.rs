//! The step `reconcile`: which rows a node has in the store (rules 6, 7).

use super::producer::job;
use super::topic::{LEASE, Topic, done, id, refused, secs};
use dq::job::Sequence;
use dq::store::step::{Change, Reconcile, RowCursor, Verdict};

fn first(last_seen: Sequence, limit: usize) -> Reconcile {
    Reconcile { last_seen, after: None, limit }
}

/// The first page takes a sequence number beyond the stored and the last seen one (rule 6).
pub async fn reconcile_takes_a_sequence_number_beyond_both(t: &Topic) {
    let link = t.link("n");
    for (last_seen, sequence) in [(0, 1), (1, 2), (9, 10), (3, 11), (0, 12), (12, 13)] {
        let answer = done(link.step(first(Sequence(last_seen), 10)).await.expect("reconcile is answered"));
        assert_eq!(answer.lease_status.sequence, Sequence(sequence), "after last seen {last_seen}");
        assert_eq!((answer.rows, answer.next), (vec![], None));
    }
}

/// A reconcile returns every row with its token, in the order of the ids (rule 7).
pub async fn reconcile_returns_every_row(t: &Topic) {
    t.add_all(vec![job("c"), job("a"), job("b")]).await;
    let claims = t.claims("n").await;
    t.running("m", "other").await;
    let answer = t.reconcile("n").await;
    let mut held: Vec<_> = claims.into_iter().map(|claim| (claim.id, claim.token)).collect();
    held.sort();
    assert_eq!(answer.rows, held);
    assert_eq!(answer.next, None);
}

/// Rows come in pages; only the first page takes a sequence number, and the later ones name it (rules 5, 6).
pub async fn reconcile_pages_through_the_rows(t: &Topic) {
    t.add_all((0..5).map(|n| job(&format!("j{n}"))).collect()).await;
    t.claims("n").await;
    let link = t.link("n");
    let page = done(link.step(first(t.last_seen("n"), 2)).await.expect("reconcile is answered"));
    let sequence = page.lease_status.sequence;
    let (mut rows, mut next) = (page.rows, page.next);
    while let Some(after) = next {
        let request = Reconcile { last_seen: sequence, after: Some(after), limit: 2 };
        let page = done(link.step(request).await.expect("reconcile is answered"));
        assert_eq!((page.lease_status.sequence, page.lease_status.rows), (sequence, 5));
        assert!(page.rows.len() <= 2);
        rows.extend(page.rows);
        next = page.next;
    }
    let ids: Vec<_> = rows.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["j0", "j1", "j2", "j3", "j4"]);
    t.reconcile("n").await;
}

/// A later page that names another sequence number is refused and takes none (rule 6).
pub async fn later_page_must_name_the_sequence_number(t: &Topic) {
    t.running("n", "a").await;
    let sequence = t.last_seen("n");
    for last_seen in [Sequence(sequence.0 - 1), sequence.next()] {
        let request = Reconcile { last_seen, after: Some(RowCursor::behind(&id("0"))), limit: 2 };
        let lease_status = refused(t.link("n").step(request).await.expect("reconcile is answered"));
        assert_eq!((lease_status.sequence, lease_status.rows), (sequence, 1));
    }
    t.transfer("n", 10).await;
}

/// A page continues with the next row if the row that ended the last page is gone (rule 7).
pub async fn page_continues_after_a_row_that_is_gone(t: &Topic) {
    t.add_all(vec![job("a"), job("b"), job("c")]).await;
    let claims = t.claims("n").await;
    let page = done(t.link("n").step(first(t.last_seen("n"), 1)).await.expect("reconcile is answered"));
    assert_eq!(page.rows, [(id("a"), claims[0].token)]);
    t.end("n", &claims[0], Change::Ack).await;
    let request = Reconcile { last_seen: page.lease_status.sequence, after: page.next, limit: 10 };
    let page = done(t.link("n").step(request).await.expect("reconcile is answered"));
    assert_eq!(page.rows.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["b", "c"]);
}

/// A reconcile renews nothing, whatever number it names; the next request that names its number does (rule 6).
pub async fn reconcile_renews_nothing(t: &Topic) {
    t.running("n", "a").await;
    let lease = t.lease("n").await;
    t.advance(secs(4)).await;
    let sequence = t.reconcile("n").await.lease_status.sequence;
    assert_eq!(t.lease("n").await, lease);
    let later = Reconcile { last_seen: sequence, after: Some(RowCursor::behind(&id("0"))), limit: 10 };
    t.link("n").step(later).await.expect("reconcile is answered");
    assert_eq!(t.lease("n").await, lease);
    t.renew("n").await;
    assert_eq!(t.lease("n").await, Some(t.now().after(LEASE)));
}

/// A reconcile finds the jobs that a lost answer claimed, and the node gives them back by their tokens (rules 6, 7).
pub async fn jobs_of_a_lost_answer_are_found_and_given_back(t: &Topic) {
    t.add("a").await;
    t.enter("n").await;
    drop(t.link("n").step(t.transfer_of("n", 10)));
    let lease_status = refused(t.link("n").step(t.transfer_of("n", 10)).await.expect("transfer is answered"));
    assert_eq!(lease_status.rows, 1);
    let rows = t.reconcile("n").await.rows;
    let (id, token) = rows[0].clone();
    let back = dq::store::step::Outcome { id, token, change: Change::Rollback, metadata: None };
    assert_eq!(t.settle_all("n", vec![back]).await.verdicts, [Verdict::Done]);
    assert_eq!(t.claim("n", "a").await.crashes, 0);
}

/// A transfer that was sent before a reconcile and arrives after it claims nothing (rule 6).
pub async fn transfer_from_before_a_reconcile_claims_nothing(t: &Topic) {
    t.add("a").await;
    t.enter("n").await;
    let late = t.transfer_of("n", 10);
    t.reconcile("n").await;
    refused(t.link("n").step(late).await.expect("transfer is answered"));
    t.claim("n", "a").await;
}
