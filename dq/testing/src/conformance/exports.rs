//! An export reads everything that the store keeps of the jobs of a topic (rule 27).

use super::copies::{copy, import_of};
use super::events::{LONG, add_in_state, ending};
use super::producer::{job, replacing, retained, with_payload};
use super::topic::{Topic, id, ms, secs};
use dq::job::{Delivery, Fence, Metadata, State};
use dq::store::step::{Change, DEFAULT_BYTES, MAX_JOBS};
use dq::store::{Due, JobCopy, NewJob, OnDuplicate, PageRequest, StoreError};

/// The copies, each as its id, state and time.
fn states(copies: &[JobCopy]) -> Vec<(&str, State, u64)> {
    copies.iter().map(|copy| (copy.id.as_str(), copy.state, copy.at.as_millis())).collect()
}

/// Which of the copies are broadcasts.
fn broadcasts(copies: &[JobCopy]) -> Vec<bool> {
    copies.iter().map(|copy| copy.is_broadcast).collect()
}

/// The copy that an export has of a RUNNING job, if it has one.
async fn of_running(t: &Topic) -> Vec<JobCopy> {
    t.export_part((false, State::Running), 9, DEFAULT_BYTES).await
}

/// An export has every job, in every state, with its time, and the broadcasts (rule 27).
pub async fn export_has_every_job(t: &Topic) {
    let start = t.now().as_millis();
    for state in [State::Unacked, State::Dead, State::Done] {
        add_in_state(t, state.as_str(), state).await;
        t.advance(ms(1)).await;
    }
    t.running("n", "running").await;
    t.add_later("delayed", secs(900)).await;
    t.add_job(NewJob { deliver: Delivery::Broadcast, due: Due::After(secs(5)), ..job("broadcast") }).await;
    let expected = [
        ("delayed", State::Delayed, start + 900_003),
        ("unacked", State::Unacked, start),
        ("dead", State::Dead, start + 1),
        ("done", State::Done, start + 2 + 60_000),
        ("running", State::Delayed, start + 3),
        ("broadcast", State::Delayed, start + 5_003),
    ];
    let copies = t.export().await;
    assert_eq!(states(&copies), expected);
    assert_eq!(broadcasts(&copies), [false, false, false, false, false, true]);
}

/// A copy has the present metadata and the crashes of the job; the broadcast of the same id has neither (rule 27).
pub async fn export_has_metadata_and_crashes(t: &Topic) {
    let metadata = Metadata { attempts: 2, error: Some("no".into()), ..Metadata::default() };
    t.add_job(NewJob { deliver: Delivery::Both, ..job("a") }).await;
    let claim = t.claim("n", "a").await;
    t.end_with("n", &claim, Change::Retry(ms(1)), metadata.clone()).await;
    t.advance(ms(1)).await;
    t.claim("n", "a").await;
    t.crash("n").await;
    let copies = t.export().await;
    assert_eq!((copies[0].crashes, copies[0].record.metadata()), (1, Ok(metadata)));
    assert_eq!((copies[1].crashes, &copies[1].record), (0, &job("a").record));
}

/// What an export has read, an import into another topic puts back, so that an export of that reads the same (rule 27).
pub async fn export_of_an_import_is_the_same(t: &Topic) {
    for state in [State::Unacked, State::Dead, State::Done] {
        add_in_state(t, state.as_str(), state).await;
    }
    let claim = t.running("n", "crashed").await;
    t.isolate("n", &claim).await;
    t.crash("n").await;
    t.add_job(with_payload("large", &"x".repeat(9_000))).await;
    t.add_job(NewJob { deliver: Delivery::Both, due: Due::After(LONG), ..retained("both") }).await;
    t.add_later("far", secs(3_600)).await;
    let other = t.beside("conformance", "moved").await;
    let copies = t.export().await;
    other.import(import_of(copies.clone(), OnDuplicate::Reject)).await;
    assert_eq!(other.export().await, copies);
    assert_eq!(copies.len(), 8);
    other.import(import_of(copies.clone(), OnDuplicate::Keep)).await;
    assert_eq!(other.export().await, copies, "an import that is repeated changes nothing");
    other.close().await;
}

/// A RUNNING job is copied as if its node gave it back: to its due time, or to when it was parked, without a charge (rule 27).
pub async fn running_job_is_exported_as_if_given_back(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.advance(ms(7)).await;
    t.isolate("n", &claim).await;
    assert_eq!(of_running(t).await, [copy("a", State::Delayed, claim.token.due)]);
    t.end("n", &claim, Change::Park).await;
    let parked = t.now();
    t.advance(secs(7 * 24 * 3_600)).await;
    t.claim_unacked("n", "a").await;
    let copies = of_running(t).await;
    assert_eq!(states(&copies), [("a", State::Unacked, parked.as_millis())]);
    assert_eq!(copies[0].record.fixed().parked_by, Some(claim.token.fence));
    assert_eq!(t.state("a").await, Some(State::Running), "the export changes nothing");
}

/// An end that waits for a RUNNING job has taken effect in its copy, if it is for this run (rules 13, 27).
pub async fn pending_end_has_taken_effect_in_an_export(t: &Topic) {
    t.add_job(retained("a")).await;
    let claim = t.claim("n", "a").await;
    t.ack_run("a", Fence(claim.token.fence.0 - 1)).await;
    assert_eq!(states(&of_running(t).await), [("a", State::Delayed, claim.token.due.as_millis())]);
    t.ack_run("a", claim.token.fence).await;
    assert_eq!(states(&of_running(t).await), [("a", State::Done, t.in_ms(60_000).as_millis())]);
    t.delete("a").await;
    assert_eq!(of_running(t).await, []);
    t.running("n", "b").await;
    t.ack_outside("b").await;
    assert_eq!(of_running(t).await, [], "b has no retention");
}

/// A replacement that waits for a RUNNING job takes its place in the copy, unless it is for an end of another run (rules 13, 27).
pub async fn replacement_has_taken_effect_in_an_export(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.add_job(NewJob { due: Due::After(secs(3)), ..replacing("a", "new") }).await;
    let copies = of_running(t).await;
    assert_eq!(states(&copies), [("a", State::Delayed, t.in_ms(3_000).as_millis())]);
    assert_eq!(copies[0].record, replacing("a", "new").record);
    t.add_job(NewJob { deliver: Delivery::Both, due: Due::After(secs(4)), ..replacing("a", "newer") }).await;
    let due = t.in_ms(4_000).as_millis();
    let copies = of_running(t).await;
    assert_eq!((states(&copies), broadcasts(&copies)), (vec![("a", State::Delayed, due); 2], vec![false, true]));
    t.end("n", &claim, Change::Ack).await;
    t.delete("a").await;
    let claim = t.running("n", "b").await;
    t.ack_run("b", Fence(claim.token.fence.0 - 1)).await;
    t.add_job(NewJob { on_duplicate: OnDuplicate::Keep, ..with_payload("b", "conditional") }).await;
    assert_eq!(of_running(t).await, [copy("b", State::Delayed, claim.token.due)]);
}

/// Each page is bounded by a count and by bytes, has one job at least, and all pages together have each job once (rules 5, 27).
pub async fn pages_of_an_export_are_bounded(t: &Topic) {
    for state in State::ALL {
        for n in 0..3 {
            let name = format!("{state}{n}");
            let due = Due::After(if state == State::Delayed { LONG } else { ms(0) });
            t.add_job(NewJob { due, ..with_payload(&name, &"x".repeat(1_000)) }).await;
            if state == State::Delayed {
                continue;
            }
            let claim = t.claim("n", &name).await;
            if state != State::Running {
                let kept = Metadata { retain: LONG, ..Metadata::default() };
                t.end_with("n", &claim, ending(state), kept).await;
            }
        }
    }
    for n in 0..3 {
        let large = with_payload(&format!("broadcast{n}"), &"x".repeat(1_000));
        t.add_job(NewJob { deliver: Delivery::Broadcast, due: Due::After(LONG), ..large }).await;
    }
    for part in JobCopy::parts() {
        let whole = t.export_part(part, MAX_JOBS, DEFAULT_BYTES).await;
        assert_eq!(whole.len(), 3, "{part:?}");
        let by_count = t.export_part(part, 1, DEFAULT_BYTES).await;
        let by_bytes = t.export_part(part, MAX_JOBS, 2_500).await;
        let sorted = |mut copies: Vec<JobCopy>| {
            copies.sort_by(|a, b| a.id.cmp(&b.id));
            copies
        };
        assert_eq!(sorted(by_count), sorted(whole.clone()), "{part:?}");
        assert_eq!(sorted(by_bytes), sorted(whole), "{part:?}");
        let request = PageRequest { state: part.1, after: None, limit: MAX_JOBS, bytes: 2_500 };
        let most =
            t.export_page(request, part.0).await.copies.iter().map(|copy| copy.record.as_bytes().len()).sum::<usize>();
        assert!((1..=2_500).contains(&most), "{part:?}: {most}");
    }
    let request = PageRequest { state: State::Delayed, after: None, limit: 1_001, bytes: 1 };
    let error = t.store.export(&t.key, request, true).await.expect_err("it is over the limit");
    assert!(matches!(error, StoreError::OverLimit { size: 1_001, .. }), "{error}");
}

/// Each page names the newest fence of the topic (rules 9, 27).
pub async fn export_names_the_newest_fence(t: &Topic) {
    let request = PageRequest { state: State::Delayed, after: None, limit: 1, bytes: 1 };
    assert_eq!(t.export_page(request.clone(), false).await.fence, Fence(0));
    let claim = t.running("n", "a").await;
    assert_eq!(t.export_page(request, false).await.fence, claim.token.fence);
    let running = PageRequest { state: State::Running, after: None, limit: 1, bytes: 1 };
    assert_eq!(t.export_page(running, false).await.fence, claim.token.fence);
}

/// An export changes nothing: what was claimed can be settled, and what waits is claimed (rule 27).
pub async fn export_changes_nothing(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.add("b").await;
    let before = t.export().await;
    assert_eq!(t.export().await, before);
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.claim("n", "b").await.id, id("b"));
}
