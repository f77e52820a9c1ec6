use super::super::changes::Replay;
use super::*;

#[test]
fn a_lease_exists_exactly_while_its_node_has_rows() {
    let mut bench = Bench::new();
    let token = bench.run("n", job("a"));
    assert_eq!(bench.lease("n"), Some(Timestamp::from_millis(START_MS + 15_000)));
    bench.settle("n", "a", token, Change::Ack);
    assert_eq!(bench.lease("n"), None);
    bench.topic.renew(bench.now, &node("n"), Renew { last_seen: bench.sequence("n"), lease: LEASE });
    assert_eq!(bench.lease("n"), None);
}

#[test]
fn only_a_request_that_names_the_sequence_number_renews() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    let old = bench.lease("n");
    bench.advance(Duration::from_secs(5));
    bench.topic.renew(bench.now, &node("n"), Renew { last_seen: Sequence(1), lease: LEASE });
    assert_eq!(bench.lease("n"), old);
    bench.reconcile("n");
    assert_eq!(bench.lease("n"), old);
    bench.topic.renew(bench.now, &node("n"), Renew { last_seen: bench.sequence("n"), lease: LEASE });
    assert!(bench.lease("n") > old);
}

#[test]
fn a_lease_is_never_longer_than_five_minutes() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    let renew = Renew { last_seen: bench.sequence("n"), lease: Duration::from_secs(3_600) };
    bench.topic.renew(bench.now, &node("n"), renew);
    assert_eq!(bench.lease("n"), Some(Timestamp::from_millis(START_MS + 300_000)));
    bench.now = Now::from_micros(1_000_000);
    let scanned = bench.topic.scan(bench.now);
    assert_eq!(scanned.leases, [(node("n"), Timestamp::from_millis(1_000 + 300_000))]);
    assert_eq!((scanned.records, scanned.places), (1, 1));
}

#[test]
fn the_jobs_of_a_live_or_renewed_lease_are_not_reclaimed() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    let seen = bench.lease("n").unwrap();
    assert_eq!(bench.reclaim("n", seen), Reclaimed::default());
    bench.advance(Duration::from_secs(5));
    bench.topic.renew(bench.now, &node("n"), Renew { last_seen: bench.sequence("n"), lease: LEASE });
    bench.advance(Duration::from_secs(60));
    assert_eq!(bench.reclaim("n", seen), Reclaimed::default());
    assert_eq!(bench.state("a"), Some(State::Running));
}

#[test]
fn a_released_node_leaves_its_rows_free_and_charges_no_crash() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    let last_seen = bench.sequence("n");
    assert_eq!(bench.topic.release(bench.now, &node("n"), Release { last_seen }).rows, 1);
    assert_eq!(bench.reclaim("n", Timestamp::EPOCH), Reclaimed { moved: 1, left: 0 });
    assert_eq!(bench.transfer("m", 1).claims[0].crashes, 0);
}

#[test]
fn a_job_that_kills_its_node_comes_back_exhausted_and_then_is_dead() {
    let mut bench = Bench::new();
    bench.add(job("a"));
    for crashes in 0..2 {
        let claim = bench.transfer("n", 1).claims.remove(0);
        assert_eq!(claim.crashes, crashes);
        bench.crash("n");
    }
    let token = bench.claim("n", "a");
    bench.crash("n");
    assert_eq!(bench.transfer("n", 1).claims[0].crashes, 2, "a quarantined job that had not started is not charged");
    assert_eq!(bench.isolate("n", "a", token), NoteVerdict::Stale);
    let token = bench.reconcile("n").rows[0].1;
    assert_eq!(bench.isolate("n", "a", token), NoteVerdict::Done);
    bench.crash("n");
    assert!(bench.metadata("a").exhausted);
    let token = bench.claim("n", "a");
    bench.crash("n");
    assert_eq!(bench.state("a"), Some(State::Delayed), "its final_retry was not isolated");
    assert_ne!(bench.claim("n", "a"), token);
    let token = bench.reconcile("n").rows[0].1;
    bench.isolate("n", "a", token);
    bench.crash("n");
    assert_eq!(bench.state("a"), Some(State::Dead));
    assert_eq!(bench.metadata("a").cause, Some(crate::job::Cause::Crashes));
}

#[test]
fn a_settled_outcome_clears_the_crashes_and_a_rollback_keeps_them() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    bench.crash("n");
    let token = bench.claim("n", "a");
    bench.settle("n", "a", token, Change::Rollback);
    let claim = bench.transfer("n", 1).claims.remove(0);
    assert_eq!(claim.crashes, 1);
    bench.settle("n", "a", claim.token, Change::Retry(Duration::ZERO));
    assert_eq!(bench.transfer("n", 1).claims[0].crashes, 0);
}

#[test]
fn every_settle_renews_and_every_transfer_cuts_leases_that_are_too_long() {
    let mut bench = Bench::new();
    let token = bench.run("n", job("a"));
    bench.run("m", job("b"));
    bench.run("n", job("c"));
    bench.advance(Duration::from_secs(5));
    bench.settle("n", "a", token, Change::Ack);
    assert_eq!(bench.lease("n"), Some(Timestamp::from_millis(START_MS + 20_000)));
    bench.now = Now::from_micros(1_000_000);
    bench.transfer("m", 1);
    assert_eq!(bench.lease("n"), Some(Timestamp::from_millis(1_000 + 300_000)));
}

#[test]
fn a_sequence_number_that_the_store_lost_is_never_given_out_again() {
    let mut bench = Bench::new();
    let request = Reconcile { last_seen: Sequence(41), after: None, limit: 1 };
    let Ok(Sequenced::Done(answer)) = bench.topic.reconcile(bench.now, &node("n"), &request) else {
        panic!("the first page takes a sequence number")
    };
    assert_eq!(answer.lease_status.sequence, Sequence(42));
    assert_eq!(bench.topic.release(bench.now, &node("n"), Release { last_seen: Sequence(0) }).sequence, Sequence(43));
}

#[test]
fn a_requeue_clears_the_crash_count() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    bench.crash("n");
    let parking = bench.claim("n", "a");
    bench.settle("n", "a", parking, Change::Park);
    bench.advance(LEASE);
    bench.sweep("n", LEASE);
    bench.crash("n");
    bench.command(CommandKind::Requeue, "a", None);
    assert_eq!(bench.transfer("n", 1).claims[0].crashes, 0);
}

#[test]
fn the_jobs_of_a_dead_process_are_reclaimed_at_once_and_charged_unless_it_had_released_them() {
    let mut bench = Bench::new();
    bench.topic.log_changes();
    bench.run("dead", job("a"));
    bench.run("stopped", job("b"));
    let last_seen = bench.sequence("stopped");
    bench.topic.release(bench.now, &node("stopped"), Release { last_seen });
    let mut changes = Vec::new();
    bench.topic.take_changes(&mut changes);
    bench.topic = Topic::default();
    bench.topic.apply(&changes, Replay::Strict).unwrap();
    assert_eq!((bench.lease("dead"), bench.lease("stopped")), (Some(DEAD_LEASE), Some(Timestamp::EPOCH)));
    assert!(is_free_lease(DEAD_LEASE) && is_free_lease(Timestamp::EPOCH));
    let foreign = bench.transfer("new", 1).foreign_lease;
    assert_eq!(foreign, Some((node("stopped"), Timestamp::EPOCH)), "the next node learns of it by its first transfer");
    for (holder, seen) in [("dead", DEAD_LEASE), ("stopped", Timestamp::EPOCH)] {
        assert_eq!(bench.reclaim(holder, seen), Reclaimed { moved: 1, left: 0 });
    }
    let claims = bench.transfer("new", 2).claims;
    let crashes: Vec<_> = claims.iter().map(|claim| (claim.id.as_str(), claim.crashes)).collect();
    assert_eq!(crashes, [("a", 1), ("b", 0)]);
}
