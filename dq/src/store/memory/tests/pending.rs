use super::*;
use crate::store::memory::places::Place;

#[test]
fn a_replacement_takes_the_place_however_the_run_ends() {
    for change in [
        Change::Ack,
        Change::Rejoin(RejoinDue::AsAdded),
        Change::Retry(Duration::ZERO),
        Change::Rollback,
        Change::Park,
        Change::Dead,
        Change::Drop,
    ] {
        let mut bench = Bench::new();
        let token = bench.run("n", job("a"));
        let due = Due::After(Duration::from_secs(7));
        assert_eq!(bench.add(NewJob { due, ..replacing("a", "2") }), AddOutcome::ReplacementWaits);
        bench.pass(Duration::from_secs(1));
        assert_eq!(bench.settle("n", "a", token, change.clone()), Verdict::Done);
        assert_eq!((bench.head(), bench.payload("a").as_str()), (Some(START_MS + 7_000), "2"), "{change:?}");
    }
}

#[test]
fn a_deleted_run_ends_as_deleted_and_its_replacement_goes_too() {
    let mut bench = Bench::new();
    let token = bench.run("n", job("a"));
    bench.add(replacing("a", "2"));
    let deleted = bench.command(CommandKind::Delete, "a", None);
    assert_eq!((deleted.found, deleted.changed, deleted.removed), (Some(State::Running), true, None));
    assert_eq!(bench.isolate("n", "a", token), NoteVerdict::Ended);
    assert_eq!(bench.settle("n", "a", token, Change::Park), Verdict::Done);
    assert!(bench.topic.is_empty());
}

#[test]
fn under_an_unfenced_end_the_id_counts_as_absent_once() {
    let mut bench = Bench::new();
    let token = bench.run("n", job("a"));
    bench.command(CommandKind::Cancel, "a", None);
    assert_eq!(bench.add(job("a")), AddOutcome::ReplacementWaits);
    assert_eq!(bench.add(job("a")), AddOutcome::Exists(State::Running));
    bench.settle("n", "a", token, Change::Rollback);
    assert_eq!(bench.state("a"), Some(State::Delayed));
}

#[test]
fn a_webhook_that_comes_before_the_park_is_not_lost() {
    let mut bench = Bench::new();
    let token = bench.run("n", job("a"));
    assert!(bench.command(CommandKind::Ack, "a", Some(token.fence)).changed);
    assert_eq!(bench.isolate("n", "a", token), NoteVerdict::Done);
    bench.settle("n", "a", token, Change::Park);
    assert_eq!(bench.state("a"), None);
}

#[test]
fn an_ack_of_an_earlier_run_does_nothing_to_a_later_one_and_hides_no_other() {
    let mut bench = Bench::new();
    let first = bench.run("n", job("a"));
    bench.settle("n", "a", first, Change::Retry(Duration::ZERO));
    let second = bench.claim("n", "a");
    bench.command(CommandKind::Ack, "a", Some(first.fence));
    bench.settle("n", "a", second, Change::Retry(Duration::ZERO));
    assert_eq!(bench.state("a"), Some(State::Delayed));
    let third = bench.claim("n", "a");
    bench.command(CommandKind::Ack, "a", Some(second.fence));
    bench.command(CommandKind::Ack, "a", Some(third.fence));
    bench.settle("n", "a", third, Change::Retry(Duration::ZERO));
    assert_eq!(bench.state("a"), None);
}

#[test]
fn a_kept_add_under_a_fenced_end_counts_only_if_that_end_applies() {
    for applies in [true, false] {
        let mut bench = Bench::new();
        let token = bench.run("n", job("a"));
        let fence = if applies { token.fence } else { Fence(1) };
        bench.command(CommandKind::Ack, "a", Some(fence));
        assert_eq!(bench.add(job("a")), AddOutcome::Exists(State::Running));
        let kept = NewJob { on_duplicate: OnDuplicate::Keep, ..replacing("a", "2") };
        assert_eq!(bench.add(kept), AddOutcome::ReplacementIfEnds);
        bench.settle("n", "a", token, Change::Rollback);
        assert_eq!(bench.payload("a"), if applies { "2" } else { "1" });
    }
}

#[test]
fn an_acked_run_of_a_retained_job_is_done() {
    let mut bench = Bench::new();
    let retained = Metadata { retain: Duration::from_secs(60), ..Metadata::default() };
    bench.run("n", NewJob { record: record(&retained, "1"), ..job("a") });
    bench.command(CommandKind::Ack, "a", None);
    bench.crash("n");
    assert_eq!(bench.state("a"), Some(State::Done));
    bench.pass(Duration::from_secs(60));
    assert_eq!(bench.sweep("n", LEASE).pruned_done, 1);
}

#[test]
fn a_done_job_can_be_deleted() {
    let mut bench = Bench::new();
    let retained = Metadata { retain: Duration::from_secs(60), ..Metadata::default() };
    bench.add(NewJob { record: record(&retained, "1"), ..job("a") });
    assert!(bench.command(CommandKind::Ack, "a", None).changed);
    assert_eq!(bench.state("a"), Some(State::Done));
    assert!(!bench.command(CommandKind::Ack, "a", None).changed);
    assert!(bench.command(CommandKind::Delete, "a", None).removed.is_some());
    assert_eq!(bench.state("a"), None);
}

#[test]
fn an_ack_that_names_no_run_makes_a_conditional_replacement_certain() {
    let mut bench = Bench::new();
    let token = bench.run("n", job("a"));
    bench.command(CommandKind::Ack, "a", Some(Fence(1)));
    bench.add(NewJob { on_duplicate: OnDuplicate::Keep, ..replacing("a", "2") });
    assert!(bench.command(CommandKind::Ack, "a", None).changed);
    assert!(!bench.command(CommandKind::Ack, "a", Some(token.fence)).changed);
    let run = bench.topic.jobs.get(&id("a")).unwrap().place.clone();
    let Place::Running(run) = run else { panic!("it runs") };
    assert!(!run.pending.unwrap().replacement.unwrap().conditional);
    bench.settle("n", "a", token, Change::Rollback);
    assert_eq!(bench.payload("a"), "2");
}

#[test]
fn a_second_delete_of_a_run_changes_nothing() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    assert!(bench.command(CommandKind::Delete, "a", None).changed);
    assert!(!bench.command(CommandKind::Delete, "a", None).changed);
}
