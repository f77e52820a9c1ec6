//! What a topic in memory does beside the behaviours that every store shows (`dq-testing`, `conformance`): what it forgets by its own
//! clock, what it refuses, and what is left of a process that died.

use super::super::changes::Replay;
use super::*;
use crate::store::{HistorySetting, MAX_ENDED_HISTORIES, Transition};

#[test]
fn a_producer_that_is_silent_for_an_hour_is_forgotten() {
    let mut bench = Bench::new();
    bench.add_numbered(18, vec![job("a")]);
    assert_eq!(bench.add_numbered(17, vec![job("b")]), BatchAnswer::Late);
    bench.advance(Duration::from_secs(3_600));
    assert_eq!(bench.add_numbered(17, vec![job("b")]), BatchAnswer::Done(vec![AddOutcome::Added]));
}

#[test]
fn a_number_used_for_a_batch_of_the_other_kind_is_an_error() {
    let mut bench = Bench::new();
    bench.add_numbered(1, vec![job("a")]);
    let batch = Numbered { number: 1, items: vec![] };
    assert!(bench.execute("p", Batch::Command { batch }).is_err());
}

#[test]
fn an_unused_sequence_number_is_forgotten_after_a_day() {
    let mut bench = Bench::new();
    bench.reconcile("n");
    bench.advance(Duration::from_secs(24 * 3_600));
    bench.reconcile("other");
    assert_eq!(bench.sequence("n"), Sequence(0));
}

#[test]
fn a_record_that_does_not_decode_is_moved_and_never_lost() {
    let mut bench = Bench::new();
    let mangled = Record::from_bytes(bytes::Bytes::from_static(b"what?"));
    let token = bench.run("n", NewJob { record: mangled, ..job("a") });
    bench.settle("n", "a", token, Change::Park);
    assert_eq!(bench.payload("a"), "what?");
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

#[test]
fn a_topic_keeps_a_bounded_number_of_histories_of_jobs_that_are_gone() {
    let mut bench = Bench::new();
    let after = Duration::from_secs(60);
    bench.topic.keep_history(HistorySetting { moves: 1, after }).unwrap();
    let deleted = |n: usize| (id(&format!("{n}")), Transition::Deleted { by: String::new() });
    let all: Vec<_> = (0..MAX_ENDED_HISTORIES).map(deleted).collect();
    bench.topic.histories.keep(bench.now.floor(), &all[..1], |_| true);
    bench.advance(Duration::from_millis(1));
    bench.topic.histories.keep(bench.now.floor(), &all[1..], |_| true);
    assert!(bench.topic.history(&id("0")).is_some());
    bench.topic.histories.keep(bench.now.floor(), &[deleted(MAX_ENDED_HISTORIES)], |_| true);
    assert_eq!(bench.topic.history(&id("0")), None, "the one whose time is over first is forgotten");
    assert!(bench.topic.history(&id("1")).is_some());
    assert_eq!(bench.topic.histories.kept.after(None).count(), MAX_ENDED_HISTORIES);
}
