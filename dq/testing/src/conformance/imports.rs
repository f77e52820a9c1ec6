//! An import puts copies into their places, and meets ids that are known (rules 18, 27).

use super::copies::{copy, copy_of_broadcast, copy_with, import_of};
use super::events::add_in_state;
use super::producer::{answered, job, with_payload};
use super::topic::{Topic, id, ids, ms, secs};
use dq::job::{Fence, JobState, Metadata, State, limits};
use dq::store::step::{Change, MAX_JOBS};
use dq::store::{AddOutcome, BatchAnswer, Import, ImportOutcome, JobCopy, Numbered, OnDuplicate, Signal, StoreError};
use dq::time::Timestamp;

/// One copy for each state that an import makes, and a broadcast.
fn one_of_each(t: &Topic) -> Vec<JobCopy> {
    let at = t.in_ms(60_000);
    let jobs = State::TIMED.into_iter().map(|state| copy(&format!("{state:?}"), state, at));
    jobs.chain([copy_of_broadcast("Broadcast", at)]).collect()
}

/// A copy is in its place, with its time, its metadata and its crashes; an import makes every state but RUNNING (rule 27).
pub async fn imported_job_is_in_its_place(t: &Topic) {
    let outcomes = t.import(import_of(one_of_each(t), OnDuplicate::Reject)).await;
    assert_eq!(outcomes, [ImportOutcome::Added; 5]);
    let at = t.in_ms(60_000);
    assert_eq!(t.place("Delayed").await, JobState::Delayed { due: at });
    assert_eq!(t.place("Unacked").await, JobState::Unacked { since: at });
    assert_eq!(t.place("Dead").await, JobState::Dead { since: at });
    assert_eq!(t.place("Done").await, JobState::Done { until: at });
    assert_eq!(t.counts().await.broadcasts, 1);
    for state in State::TIMED {
        assert_eq!(t.pages(state, 9).await.len(), 1, "{state}");
    }
}

/// A past due time stays as it is, so that the order stays, and the job is claimed under it (rule 27).
pub async fn imported_due_time_stays(t: &Topic) {
    let past = Timestamp::from_millis(t.now().as_millis() - 5_000);
    t.add("now").await;
    t.import_new(copy("past", State::Delayed, past)).await;
    assert_eq!(t.due("past").await, past);
    t.import_new(copy("future", State::Delayed, t.in_ms(7))).await;
    let claims = t.claims("n").await;
    assert_eq!(ids(&claims), ["past", "now"]);
    assert_eq!(claims[0].token.due, past);
    t.advance(ms(7)).await;
    assert_eq!(t.claimed_ids("n").await, ["future"]);
}

/// A run of a copy has its crashes and attempts (rule 27).
pub async fn imported_job_is_claimed_as_it_was(t: &Topic) {
    let metadata = Metadata {
        attempts: 3,
        exhausted: true,
        error: Some("no".into()),
        headers: vec![("a".into(), "b".into())],
        ..Metadata::default()
    };
    let copy = JobCopy { crashes: 2, ..copy_with("a", State::Delayed, t.now(), &metadata) };
    t.import_new(copy).await;
    let claim = t.claim("n", "a").await;
    assert_eq!((claim.crashes, claim.record.metadata()), (2, Ok(metadata)));
}

/// A copy of a parked job is acked under its parking fence, and under no other (rules 13, 27).
pub async fn imported_parked_job_keeps_its_fence(t: &Topic) {
    let metadata = Metadata { parked_by: Some(Fence(77)), ..Metadata::default() };
    t.import_new(copy_with("a", State::Unacked, t.now(), &metadata)).await;
    assert!(!t.ack_run("a", Fence(78)).await.changed);
    assert!(t.ack_run("a", Fence(77)).await.changed);
    assert_eq!(t.state("a").await, None);
}

/// What no job of a place has is left out: otherwise a DELAYED job would come back as UNACKED from a run (rule 27).
pub async fn imported_job_has_nothing_of_another_place(t: &Topic) {
    let metadata = Metadata { parked_by: Some(Fence(77)), attempts: 1, ..Metadata::default() };
    t.import_new(copy_with("a", State::Delayed, t.now(), &metadata)).await;
    t.import_new(JobCopy { crashes: 2, ..copy("b", State::Dead, t.now()) }).await;
    let claim = t.claim("n", "a").await;
    assert_eq!(claim.record.metadata(), Ok(Metadata { parked_by: None, ..metadata }));
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!(t.state("a").await, Some(State::Delayed));
    t.requeue("b").await;
    let crashes: Vec<_> = t.claims("n").await.iter().map(|claim| claim.crashes).collect();
    assert_eq!(crashes, [0, 0]);
}

/// A copy of a DONE job is removed at the end of its retention, and one of a DEAD job by its age (rule 27).
pub async fn imported_jobs_are_pruned_at_their_time(t: &Topic) {
    t.import_new(copy("done", State::Done, t.in_ms(100))).await;
    t.import_new(copy("dead", State::Dead, t.now())).await;
    t.advance(ms(101)).await;
    let swept = t.sweep("n", t.sweep_of("n", MAX_JOBS)).await;
    assert_eq!((swept.pruned_done, swept.pruned_dead), (1, 0));
    t.advance(secs(31 * 24 * 3_600)).await;
    let swept = t.sweep("n", t.sweep_of("n", MAX_JOBS)).await;
    assert_eq!((swept.pruned_done, swept.pruned_dead), (0, 1));
}

/// Under `keep` a known job stays, DONE and RUNNING included, and the other copies go in (rule 27).
pub async fn import_keeps_known_jobs(t: &Topic) {
    for state in State::ALL {
        add_in_state(t, state.as_str(), state).await;
    }
    let named = |name: &str| copy(name, State::Dead, t.now());
    let copies = State::ALL.iter().map(|state| named(state.as_str())).chain([named("new")]).collect();
    let before = t.export().await;
    let outcomes = t.import(import_of(copies, OnDuplicate::Keep)).await;
    let expected = State::ALL.map(ImportOutcome::Exists).into_iter().chain([ImportOutcome::Added]);
    assert_eq!(outcomes, expected.collect::<Vec<_>>());
    let after: Vec<_> = t.export().await.into_iter().filter(|copy| copy.id.as_str() != "new").collect();
    assert_eq!(after, before);
}

/// Under `reject` one known job is enough, and nothing of the batch is done (rule 27).
pub async fn import_that_is_rejected_changes_nothing(t: &Topic) {
    t.add("known").await;
    let copies = ["a", "known", "a", "b"].map(|name| copy(name, State::Dead, t.now())).into();
    let import = Import { fence: Fence(t.micros() + 3_600_000_000), ..import_of(copies, OnDuplicate::Reject) };
    let exists = ImportOutcome::Exists(State::Delayed);
    let expected = [ImportOutcome::NotDone, exists, ImportOutcome::Repeated, ImportOutcome::NotDone];
    let before = t.export().await;
    assert_eq!(t.import(import).await, expected);
    assert_eq!(t.export().await, before);
    assert_eq!(t.claim("n", "known").await.token.fence, Fence(t.micros()), "the fence did not count either");
}

/// Under `replace` a copy takes the place of a job with its time, metadata and crashes; a RUNNING job stays (rule 27).
pub async fn import_replaces_what_does_not_run(t: &Topic) {
    for state in State::ALL {
        add_in_state(t, state.as_str(), state).await;
    }
    let copies: Vec<_> = State::ALL.iter().map(|state| copy(state.as_str(), State::Unacked, t.in_ms(5))).collect();
    let outcomes = t.import(import_of(copies.clone(), OnDuplicate::Replace)).await;
    let expected = State::ALL.map(|state| match state {
        State::Running => ImportOutcome::Exists(state),
        state => ImportOutcome::Replaced(state),
    });
    assert_eq!(outcomes, expected);
    for copy in copies.iter().filter(|copy| copy.id.as_str() != State::Running.as_str()) {
        let stored = t.stored(copy.id.as_str()).await;
        assert_eq!((&stored.record, &stored.place), (&copy.record, &JobState::Unacked { since: copy.at }));
    }
    assert_eq!(t.state(State::Running.as_str()).await, Some(State::Running));
}

/// A copy that replaces a job that failed and crashed has nothing of it (rules 2, 27).
pub async fn import_leaves_nothing_of_the_replaced_job(t: &Topic) {
    t.add("a").await;
    let claim = t.claim("n", "a").await;
    t.end_with("n", &claim, Change::Retry(ms(0)), Metadata { attempts: 1, ..Metadata::default() }).await;
    t.claim("n", "a").await;
    t.crash("n").await;
    let new = copy("a", State::Delayed, t.now());
    t.import(import_of(vec![new.clone()], OnDuplicate::Replace)).await;
    let claim = t.claim("m", "a").await;
    assert_eq!((claim.crashes, claim.record), (0, new.record));
}

/// The job and the broadcast of an id are two copies, and each meets only its own kind (rules 24, 27).
pub async fn job_and_broadcast_of_an_id_are_two_copies(t: &Topic) {
    let at = t.in_ms(50);
    let both = || vec![copy_of_broadcast("a", at), copy("a", State::Delayed, at)];
    let outcomes = t.import(import_of(vec![copy_of_broadcast("a", at)], OnDuplicate::Reject)).await;
    assert_eq!(outcomes, [ImportOutcome::Added]);
    let outcomes = t.import(import_of(both(), OnDuplicate::Keep)).await;
    assert_eq!(outcomes, [ImportOutcome::Exists(State::Delayed), ImportOutcome::Added]);
    assert_eq!((t.counts().await.delayed, t.counts().await.broadcasts), (1, 1));
    let later = JobCopy { at: t.in_ms(90), ..copy_of_broadcast("a", at) };
    let outcomes = t.import(import_of(vec![later.clone()], OnDuplicate::Replace)).await;
    assert_eq!(outcomes, [ImportOutcome::Replaced(State::Delayed)]);
    assert_eq!(t.export().await, [copy("a", State::Delayed, at), later]);
}

/// A copy that is due before all others wakes the nodes, and so does a broadcast; one that is not due before wakes none (rules 23, 27).
pub async fn imported_earlier_head_is_signalled(t: &Topic) {
    let mut subscriber = t.subscribe("s").await;
    t.import_new(copy("a", State::Delayed, t.in_ms(500))).await;
    assert!(matches!(subscriber.received(t).await[..], [Signal::Due(_)]));
    t.import_new(copy("late", State::Delayed, t.in_ms(600))).await;
    t.import_new(copy("dead", State::Dead, t.in_ms(1))).await;
    assert_eq!(subscriber.received(t).await, []);
    // It is due before the marker, which therefore signals nothing.
    let past = Timestamp::from_millis(t.now().as_millis() - 1);
    t.import_new(copy_of_broadcast("b", past)).await;
    assert!(subscriber.received_all(t).await.contains(&Signal::BroadcastDue));
}

/// No run of the topic gets a fence up to the one that an import names; a smaller one changes nothing (rules 9, 27).
pub async fn import_raises_the_fence(t: &Topic) {
    let ahead = Fence(t.micros() + 1_000_000_000);
    let fence_of = |fence| Import { fence, ..import_of(Vec::new(), OnDuplicate::Keep) };
    assert_eq!(t.import(fence_of(ahead)).await, []);
    assert_eq!(t.import(fence_of(Fence(5))).await, []);
    assert_eq!(t.running("n", "a").await.token.fence, Fence(ahead.0 + 1));
}

/// An import of a fence over its limit is refused, because no clock would reach it (rules 9, 27).
pub async fn import_of_a_fence_that_no_clock_reaches_is_refused(t: &Topic) {
    for fence in [limits::FENCE.most + 1, 1 << 52, (1 << 53) - 1, u64::MAX] {
        let copies = vec![copy("a", State::Dead, t.now())];
        let import = Import { fence: Fence(fence), ..import_of(copies, OnDuplicate::Keep) };
        let refused = t.try_import(import).await.expect_err("no clock reaches it");
        assert!(matches!(refused, StoreError::OverLimit { .. }), "{refused}");
        assert_eq!(t.state("a").await, None);
    }
    assert_eq!(t.running("n", "b").await.token.fence, Fence(t.micros()));
}

/// A repeated import answers as the first one did and does nothing, and its number is one of those of adds and commands (rule 18).
pub async fn repeated_import_does_nothing(t: &Topic) {
    let p = t.producer_named("p");
    let import = || import_of(vec![copy("a", State::Delayed, t.now())], OnDuplicate::Replace);
    let first = p.import(2, import()).await.expect("import is answered");
    assert_eq!(first, BatchAnswer::Done(vec![ImportOutcome::Added]));
    t.delete("a").await;
    assert_eq!(t.add_job(with_payload("a", "newer")).await, AddOutcome::Added);
    assert_eq!(t.producer_named("p").import(2, import()).await.expect("import is answered"), first);
    assert_eq!(p.import(1, import()).await.expect("import is answered"), BatchAnswer::Late);
    assert_eq!(t.payload("a").await, "newer");
    let error = p.add(Numbered { number: 2, items: vec![job("b")] }).await.expect_err("2 was an import");
    assert!(matches!(error, StoreError::Other { .. }), "{error}");
    p.add(Numbered { number: 3, items: vec![job("b")] }).await.map(answered).expect("add is answered");
    let error = p.import(3, import()).await.expect_err("3 was an add");
    assert!(matches!(error, StoreError::Other { .. }), "{error}");
}

/// A record of any bytes and any size comes back, and so does one that dq cannot read (rules 1, 27).
pub async fn imported_record_comes_back(t: &Topic) {
    let metadata = Metadata { retain: secs(60), headers: vec![("a".into(), "b".repeat(900))], ..Metadata::default() };
    let large = "x".repeat(20_000);
    let with = |name: &str, payload: &[u8]| {
        let record = dq::job::Record::new(&metadata, dq::job::Codec::Json, payload);
        JobCopy { crashes: 1, ..JobCopy::new(id(name), record, State::Delayed, t.now()) }
    };
    let unreadable = dq::job::Record::from_bytes(bytes::Bytes::from_static(b"what?\xff"));
    let copies = vec![
        with("bytes", b"\0\xff\n"),
        with("large", large.as_bytes()),
        JobCopy { record: unreadable, ..with("none", b"") },
    ];
    t.import(import_of(copies.clone(), OnDuplicate::Reject)).await;
    assert_eq!(t.export().await, copies);
    let claim = t.claims("n").await.into_iter().find(|claim| claim.id == id("large")).expect("it is due");
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.place("large").await, JobState::Done { until: t.in_ms(60_000) });
}
