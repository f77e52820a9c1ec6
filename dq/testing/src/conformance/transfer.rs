//! The step `transfer`, DELAYED → RUNNING: which jobs it claims, when, and under which sequence number (rules 4 to 9).

use super::producer::{delayed, job};
use super::topic::{LEASE, START, Topic, ids, ms, refused, secs};
use dq::job::{JobState, Sequence, State};
use dq::store::step::{Change, Transfer};
use dq::store::{Due, NewJob};

/// A claim has the job's record, its due time and no crashes, and the job belongs to the node (step `transfer`).
pub async fn claim_has_what_a_run_needs(t: &Topic) {
    t.add_job(delayed("a", secs(1))).await;
    let due = t.due("a").await;
    t.advance(secs(3)).await;
    let claim = t.claim("n", "a").await;
    assert_eq!((claim.id.as_str(), claim.crashes, claim.token.due), ("a", 0, due));
    assert_eq!(claim.record, delayed("a", secs(1)).record);
    let place = t.pages(State::Running, 10).await.remove(0).place;
    assert_eq!(place, JobState::Running { holder: Some((t.node("n"), claim.token.fence)) });
}

/// Due jobs are claimed in the order of their due times, in whatever order they were added (step `transfer`).
pub async fn jobs_are_claimed_in_the_order_they_are_due(t: &Topic) {
    for (name, delay) in [("d", 4), ("a", 1), ("e", 5), ("c", 3), ("b", 2)] {
        t.add_later(name, ms(delay)).await;
    }
    t.advance(ms(4)).await;
    assert_eq!(t.claimed_ids("n").await, ["a", "b", "c", "d"]);
    t.advance(ms(1)).await;
    assert_eq!(t.claimed_ids("n").await, ["e"]);
}

/// A job that was given back competes with the others by its due time (step `transfer`).
pub async fn returned_job_competes_by_its_due_time(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.advance(ms(2)).await;
    t.add("b").await;
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!(t.claimed_ids("n").await, ["a", "b"]);
}

/// A transfer claims at most its limit, earliest first, and reports whether more jobs are due: none after exactly the last one (rule 5).
pub async fn transfer_is_bounded_and_reports_more(t: &Topic) {
    for n in 0..6 {
        t.add_later(&format!("j{n}"), ms(n)).await;
    }
    t.add_later("later", secs(60)).await;
    t.advance(secs(1)).await;
    let pages: [(&[&str], bool); 4] =
        [(&["j0", "j1"], true), (&["j2", "j3"], true), (&["j4", "j5"], false), (&[], false)];
    for (claimed, more) in pages {
        let answer = t.transfer("n", 2).await;
        assert_eq!(ids(&answer.claims), claimed);
        assert_eq!((answer.more, answer.dropped), (more, vec![]));
    }
}

/// No other node can claim a job that a node holds, even if the lease has expired (rule 2).
pub async fn claimed_job_is_not_claimed_again(t: &Topic) {
    t.running("n", "a").await;
    assert_eq!(t.claimed_ids("m").await, [""; 0]);
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.advance(LEASE * 10).await;
    assert_eq!(t.claimed_ids("m").await, [""; 0], "an expired lease alone gives nothing away");
}

/// All jobs of a transfer share one fence: the store's clock in µs (rule 9).
pub async fn fence_is_the_clock_of_the_transfer(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    t.set_clock(START + 123_456).await;
    let fences: Vec<_> = t.claims("n").await.iter().map(|claim| claim.token.fence.0).collect();
    assert_eq!(fences, [START + 123_456; 2]);
}

/// Two transfers never share a fence, not even within one microsecond or from two nodes (rule 9).
pub async fn fences_of_two_transfers_differ(t: &Topic) {
    t.add_all(vec![job("a"), job("b"), job("c")]).await;
    let mut fences = Vec::new();
    for node in ["n", "m", "n"] {
        fences.push(t.transfer(node, 1).await.claims[0].token.fence.0);
    }
    assert_eq!(fences, [START, START + 1, START + 2]);
}

/// Fences grow even if the clock jumps back (rule 9).
pub async fn fence_grows_when_the_clock_jumps_back(t: &Topic) {
    let first = t.running("n", "a").await;
    t.set_clock(START - 3_600_000_000).await;
    t.end("n", &first, Change::Ack).await;
    let second = t.running("n", "a").await;
    assert_eq!(second.token.fence.0, first.token.fence.0 + 1);
    t.end("n", &second, Change::Ack).await;
    let third = t.running("m", "b").await;
    assert_eq!(third.token.fence.0, first.token.fence.0 + 2);
}

/// A transfer that names another sequence number, lower or higher, claims nothing, renews nothing and takes no number
/// (rule 6).
pub async fn wrong_sequence_number_claims_and_renews_nothing(t: &Topic) {
    t.running("n", "a").await;
    let (sequence, lease) = (t.last_seen("n"), t.lease("n").await);
    t.add("b").await;
    t.advance(secs(3)).await;
    for wrong in [Sequence(0), Sequence(sequence.0 - 1), sequence.next(), Sequence(sequence.0 + 100)] {
        let request = Transfer { last_seen: wrong, ..t.transfer_of("n", 10) };
        let lease_status = refused(t.link("n").step(request).await.expect("transfer is answered"));
        assert_eq!((lease_status.sequence, lease_status.rows), (sequence, 1));
        assert_eq!(t.state("b").await, Some(State::Delayed));
        assert_eq!(t.lease("n").await, lease);
    }
    t.claim("n", "b").await;
}

/// No sequence number of an unknown node is right, not even zero: its first request must be a reconcile (rule 6).
pub async fn unknown_node_must_reconcile_first(t: &Topic) {
    t.add("a").await;
    for last_seen in [Sequence(0), Sequence(1), Sequence(7)] {
        let request = Transfer { last_seen, ..t.transfer_of("n", 10) };
        let lease_status = refused(t.link("n").step(request).await.expect("transfer is answered"));
        assert_eq!(lease_status.rows, 0);
        assert_eq!((t.state("a").await, t.lease("n").await), (Some(State::Delayed), None));
    }
    t.claim("n", "a").await;
}

/// Every transfer takes a sequence number, even if it claims nothing (rule 6).
pub async fn empty_transfer_takes_a_sequence_number(t: &Topic) {
    t.enter("n").await;
    let before = t.last_seen("n");
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.lease_status.sequence, answer.lease_status.rows), (before.next(), 0));
    assert_eq!(t.transfer("n", 10).await.lease_status.sequence, before.next().next());
}

/// A transfer that arrives twice claims once: the second copy names a sequence number that is no longer current (rule
/// 6).
pub async fn transfer_that_arrives_twice_claims_once(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    t.enter("n").await;
    let request = t.transfer_of("n", 1);
    let (first, second) = (t.link("n").step(request.clone()), t.link("n").step(request));
    assert_eq!(super::topic::done(first.await.expect("transfer is answered")).claims.len(), 1);
    assert_eq!(refused(second.await.expect("transfer is answered")).rows, 1);
    assert_eq!(t.state("b").await, Some(State::Delayed));
}

/// Each node has sequence numbers of its own, which no other node changes (rule 6).
pub async fn sequence_numbers_belong_to_one_node(t: &Topic) {
    t.enter("n").await;
    for _ in 0..3 {
        t.transfer("m", 10).await;
    }
    t.add("a").await;
    t.claim("n", "a").await;
}

/// The store keeps the sequence number of a node that is silent for most of a day (section 2).
pub async fn sequence_number_is_kept_for_a_day(t: &Topic) {
    t.enter("n").await;
    t.advance(secs(23 * 3_600)).await;
    t.transfer("n", 10).await;
    t.advance(secs(23 * 3_600)).await;
    t.transfer("n", 10).await;
}

/// A transfer claims DELAYED jobs only (step `transfer`).
pub async fn transfer_takes_delayed_jobs_only(t: &Topic) {
    for state in [State::Unacked, State::Dead, State::Done] {
        super::events::add_in_state(t, state.as_str(), state).await;
    }
    t.advance(secs(365 * 24 * 3_600)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
}

/// A transfer returns the earliest lease end of the other nodes, never the node's own (rule 20).
pub async fn transfer_returns_the_earliest_foreign_lease(t: &Topic) {
    t.running("a", "x").await;
    assert_eq!(t.transfer("a", 10).await.foreign_lease, None);
    let first = t.lease("a").await.expect("a holds x");
    t.advance(secs(2)).await;
    t.running("b", "y").await;
    let second = t.lease("b").await.expect("b holds y");
    assert_eq!(t.transfer("c", 10).await.foreign_lease, Some((t.node("a"), first)));
    assert_eq!(t.transfer("a", 10).await.foreign_lease, Some((t.node("b"), second)));
}

/// A job that is due in years is kept like any other and does not delay an earlier one (step `transfer`).
pub async fn due_times_may_be_years_away(t: &Topic) {
    let years = secs(10 * 365 * 24 * 3_600);
    t.add_later("far", years).await;
    t.add_later("near", secs(5)).await;
    t.add_job(NewJob { due: Due::At(t.in_ms(7_000)), ..job("at") }).await;
    t.advance(secs(5)).await;
    assert_eq!(t.claimed_ids("n").await, ["near"]);
    t.advance(secs(2)).await;
    assert_eq!(t.claimed_ids("n").await, ["at"]);
    t.set_clock(START + years.as_micros() as u64 - 1).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.set_clock(START + years.as_micros() as u64).await;
    assert_eq!(t.claimed_ids("n").await, ["far"]);
}

/// After the clock jumps back, no job is early by the new clock, and none is lost (rules 4, 9).
pub async fn clock_that_jumps_back_makes_nothing_early(t: &Topic) {
    t.advance(secs(100)).await;
    t.add_later("a", secs(10)).await;
    let due = t.due("a").await;
    t.set_clock(START).await;
    t.add("b").await;
    assert_eq!(t.claimed_ids("n").await, ["b"]);
    t.set_clock(due.as_millis() * 1_000 - 1).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.set_clock(due.as_millis() * 1_000).await;
    assert_eq!(t.claimed_ids("n").await, ["a"]);
}
