use super::*;

fn broadcast(text: &str) -> NewJob {
    NewJob { deliver: Deliver::Broadcast, ..job(text) }
}

fn both(text: &str) -> NewJob {
    NewJob { deliver: Deliver::Both, ..job(text) }
}

#[test]
fn a_repeated_call_is_the_same_call() {
    let mut bench = Bench::new();
    let first = bench.add_numbered(1, vec![job("a")]);
    assert_eq!(first, BatchAnswer::Done(vec![AddOutcome::Added]));
    assert_eq!(bench.add_numbered(1, vec![job("a")]), first);
}

#[test]
fn an_unexecuted_batch_below_the_highest_number_is_late() {
    let mut bench = Bench::new();
    bench.add_numbered(18, vec![job("a")]);
    assert_eq!(bench.add_numbered(17, vec![job("b")]), BatchAnswer::Late);
    assert_eq!(bench.add_numbered(2, vec![job("b")]), BatchAnswer::Late);
    assert_eq!(bench.state("b"), None);
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
fn an_id_repeated_in_a_batch_is_added_once() {
    let mut bench = Bench::new();
    let answer = bench.add_numbered(1, vec![job("a"), replacing("a", "2")]);
    assert_eq!(answer, BatchAnswer::Done(vec![AddOutcome::Added, AddOutcome::Repeated]));
    assert_eq!(bench.payload("a"), "1");
}

#[test]
fn the_expiry_counts_from_the_first_due_time() {
    let mut bench = Bench::new();
    let due = Due::After(Duration::from_micros(1_500));
    bench.add(NewJob { due, expires_after: Some(Duration::from_secs(1)), ..job("a") });
    assert_eq!(bench.metadata("a").expires_at, Some(Timestamp::from_millis(START_MS + 2 + 1_000)));
}

#[test]
fn an_add_over_a_done_job_removes_it() {
    let mut bench = Bench::new();
    let retained = Metadata { retain: Duration::from_secs(60), ..Metadata::default() };
    let token = bench.run("n", NewJob { record: record(&retained, "1"), ..job("a") });
    bench.settle("n", "a", token, Change::Ack);
    assert_eq!(bench.state("a"), Some(State::Done));
    assert_eq!(bench.add(NewJob { record: record(&Metadata::default(), "2"), ..job("a") }), AddOutcome::Added);
    assert_eq!((bench.state("a"), bench.payload("a").as_str()), (Some(State::Delayed), "2"));
}

#[test]
fn a_waiting_broadcast_makes_its_id_known() {
    let mut bench = Bench::new();
    bench.add(broadcast("a"));
    assert_eq!(bench.add(job("a")), AddOutcome::Exists(State::Delayed));
    assert_eq!(bench.add(replacing("a", "2")), AddOutcome::Replaced(State::Delayed));
    assert!(!bench.topic.broadcasts.contains(&id("a")));
    assert_eq!(bench.state("a"), Some(State::Delayed));
}

#[test]
fn an_added_job_loses_the_parking_fence_of_its_record() {
    let mut bench = Bench::new();
    let metadata = Metadata { parked_by: Some(Fence(9)), ..Metadata::default() };
    let token = bench.run("n", NewJob { record: record(&metadata, "1"), ..job("a") });
    bench.settle("n", "a", token, Change::Rollback);
    assert_eq!(bench.state("a"), Some(State::Delayed));
}

#[test]
fn a_broadcast_that_outlives_its_done_job_still_waits() {
    let mut bench = Bench::new();
    let retained = Metadata { retain: Duration::from_secs(60), ..Metadata::default() };
    let token = bench.run("n", NewJob { record: record(&retained, "1"), ..both("a") });
    bench.settle("n", "a", token, Change::Ack);
    assert_eq!(bench.state("a"), Some(State::Done));
    assert_eq!(bench.add(job("a")), AddOutcome::Exists(State::Delayed));
    let cancelled = bench.command(CommandKind::Cancel, "a", None);
    assert_eq!((cancelled.found, cancelled.changed), (Some(State::Delayed), true));
    assert!(bench.topic.is_empty());
}

#[test]
fn an_ack_from_outside_ends_both_parts_of_a_waiting_job_and_not_the_broadcast_of_a_running_one() {
    let mut bench = Bench::new();
    bench.add(both("a"));
    assert!(bench.command(CommandKind::Ack, "a", None).removed.is_some());
    assert!(bench.topic.is_empty());
    let token = bench.run("n", both("a"));
    bench.command(CommandKind::Ack, "a", None);
    assert_eq!(bench.add(NewJob { on_duplicate: OnDuplicate::Keep, ..job("a") }), AddOutcome::Exists(State::Delayed));
    bench.settle("n", "a", token, Change::Rollback);
    assert_eq!((bench.topic.broadcasts.len(), bench.state("a")), (1, None));
}

#[test]
fn both_parts_are_replaced_and_deleted_together() {
    let mut bench = Bench::new();
    bench.add(both("a"));
    assert_eq!((bench.topic.broadcasts.len(), bench.topic.jobs.len()), (1, 1));
    bench.add(NewJob { on_duplicate: OnDuplicate::Replace, ..broadcast("a") });
    assert_eq!((bench.topic.broadcasts.len(), bench.topic.jobs.len()), (1, 0));
    bench.add(NewJob { on_duplicate: OnDuplicate::Replace, ..both("a") });
    let deleted = bench.command(CommandKind::Delete, "a", None);
    assert!(deleted.changed && deleted.removed.is_some());
    assert!(bench.topic.is_empty());
}

#[test]
fn a_replacement_of_a_running_job_brings_its_broadcast_when_the_run_ends() {
    let mut bench = Bench::new();
    let token = bench.run("n", job("a"));
    let new = NewJob { on_duplicate: OnDuplicate::Replace, ..both("a") };
    assert_eq!(bench.add(new), AddOutcome::ReplacementWaits);
    assert_eq!(bench.topic.broadcasts.len(), 0);
    bench.settle("n", "a", token, Change::Retry(Duration::from_secs(9)));
    assert_eq!((bench.topic.broadcasts.len(), bench.head()), (1, Some(START_MS)));
}

#[test]
fn a_broadcast_is_published_once_or_dropped_when_it_has_expired() {
    let mut bench = Bench::new();
    bench.add(broadcast("a"));
    let hour = Duration::from_secs(3_600);
    let request = Publish { limit: 10, bytes: USUAL_BYTES, fallback: FALLBACK, expires_after: hour };
    let published = bench.topic.publish(bench.now, &node("n"), request).unwrap();
    bench.finish_step();
    assert_eq!((published.published, published.dropped, published.sleep), (1, 0, FALLBACK));
    assert!(
        matches!(&bench.signals()[..], [(Recipient::Channel, Signal::Broadcast(message))] if message.id == id("a"))
    );
    bench.add(broadcast("a"));
    bench.advance(hour + Duration::from_millis(1));
    let published = bench.topic.publish(bench.now, &node("n"), request).unwrap();
    assert_eq!((published.published, published.dropped), (0, 1));
}
