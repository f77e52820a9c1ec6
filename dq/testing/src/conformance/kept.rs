//! The state that a run leaves for the next one: with its outcome, or by a checkpoint (rules 10, 13, 15).

use super::changes::update;
use super::copies::import_of;
use super::producer::{job, replacing, retained};
use super::topic::{Topic, ms, secs, with_state};
use dq::job::limits::STATE;
use dq::job::{Cause, Isolation, KeptState, Metadata, Progress, State};
use dq::store::OnDuplicate;
use dq::store::step::{Change, NoteVerdict, Noting, RejoinDue, Verdict};

/// The state of the job.
async fn kept(t: &Topic, name: &str) -> Option<String> {
    t.metadata(name).await.state.map(|state| String::from_utf8_lossy(state.as_bytes()).into_owned())
}

/// A checkpoint is there for the next run, whatever ends this one: a crash, a rollback, or an outcome without a state of its own. It
/// changes nothing else of the job.
pub async fn checkpoint_is_there_for_the_next_run(t: &Topic) {
    t.add("a").await;
    let before = t.stored("a").await;
    let mut claim = t.claim("n", "a").await;
    assert_eq!(t.note("n", &claim, "[1]").await, NoteVerdict::Done);
    t.crash("n").await;
    claim = t.claim("n", "a").await;
    assert_eq!(claim.record.metadata(), Ok(with_state(&claim, "[1]")), "after a crash");
    assert_eq!(claim.record.metadata().map(|metadata| Metadata { state: None, ..metadata }), before.record.metadata());
    assert_eq!(claim.record.payload(), before.record.payload());
    for (n, change) in [Change::Rollback, Change::Rejoin(RejoinDue::AsAdded), Change::Rejoin(RejoinDue::After(ms(5)))]
        .into_iter()
        .enumerate()
    {
        let state = format!("[{n}]");
        assert_eq!(t.note("n", &claim, &state).await, NoteVerdict::Done);
        t.end("n", &claim, change).await;
        t.advance(ms(10)).await;
        claim = t.claim("n", "a").await;
        assert_eq!(kept(t, "a").await, Some(state));
    }
}

/// An outcome brings its state in the same step, and nothing of the job but what it says changes.
pub async fn outcome_brings_its_state(t: &Topic) {
    let mut claim = t.running("n", "a").await;
    for (n, change) in
        [Change::Rejoin(RejoinDue::AsAdded), Change::Retry(ms(5)), Change::Park, Change::Dead].into_iter().enumerate()
    {
        let state = format!("{{\"n\":{n}}}");
        t.end_with("n", &claim, change, with_state(&claim, &state)).await;
        assert_eq!(kept(t, "a").await.as_ref(), Some(&state));
        t.advance(ms(10)).await;
        if n >= 2 {
            t.requeue("a").await;
        }
        claim = t.claim("n", "a").await;
        assert_eq!((claim.record.metadata(), kept(t, "a").await), (Ok(with_state(&claim, &state)), Some(state)));
    }
}

/// A node that has lost its job saves nothing, however late its checkpoint comes, and leaves the state of the run that has it (rule 10).
pub async fn late_checkpoint_is_refused(t: &Topic) {
    let late = t.running("paused", "a").await;
    assert_eq!(t.note("paused", &late, "[1]").await, NoteVerdict::Done);
    t.crash("paused").await;
    assert_eq!(t.note("paused", &late, "[2]").await, NoteVerdict::Stale, "the job waits");
    let claim = t.claim("n", "a").await;
    assert_eq!(t.note("n", &claim, "[3]").await, NoteVerdict::Done);
    for node in ["paused", "n"] {
        assert_eq!(t.note(node, &late, "[4]").await, NoteVerdict::Stale, "{node}");
    }
    assert_eq!(kept(t, "a").await.as_deref(), Some("[3]"));
    let exhausted = Metadata { exhausted: true, cause: Some(Cause::Timeout), ..with_state(&claim, "[3]") };
    assert_eq!(t.exhaust("n", &claim, exhausted.clone()).await, NoteVerdict::Done);
    assert_eq!(t.note("n", &claim, "[4]").await, NoteVerdict::Done);
    assert_eq!(t.metadata("a").await, exhausted, "the checkpoint comes once no attempt is left");
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.note("n", &claim, "[5]").await, NoteVerdict::Stale, "the job is gone");
    assert_eq!(t.state("a").await, None);
}

/// A checkpoint or a progress that comes after a later one of its run, over a line that its node has left, changes nothing; the next run has
/// numbers of its own (rule 10).
pub async fn earlier_note_does_not_replace_a_later_one(t: &Topic) {
    for isolation in [None, Some(Isolation::Grouped)] {
        let claim = t.running("n", "a").await;
        let saves = |state| Noting::State(with_state(&claim, state));
        assert_eq!(t.note_numbered("n", &claim, 7, saves("[7]")).await, NoteVerdict::Done);
        if let Some(isolation) = isolation {
            t.isolate_all("n", isolation, &[&claim]).await;
        }
        assert_eq!(t.note_numbered("n", &claim, 9, progress()).await, NoteVerdict::Done);
        for number in [6, 7, 8, 9] {
            assert_eq!(
                t.note_numbered("n", &claim, number, saves("[late]")).await,
                NoteVerdict::Done,
                "it has the job"
            );
            let other = Noting::Progress(Progress::read("2/2 late").expect("it is a progress"));
            assert_eq!(t.note_numbered("n", &claim, number, other).await, NoteVerdict::Done);
        }
        assert_eq!(
            (kept(t, "a").await.as_deref(), t.stored("a").await.progress),
            (Some("[7]"), Progress::read("1/2 x"))
        );
        assert_eq!(t.note_numbered("n", &claim, 10, saves("[10]")).await, NoteVerdict::Done);
        assert_eq!(
            (kept(t, "a").await.as_deref(), t.stored("a").await.progress),
            (Some("[10]"), Progress::read("1/2 x"))
        );
        t.crash("n").await;
        let claim = t.claim("n", "a").await;
        assert_eq!(t.note_numbered("n", &claim, 1, saves("[1]")).await, NoteVerdict::Done);
        assert_eq!(kept(t, "a").await.as_deref(), Some("[1]"), "another run");
        t.end("n", &claim, Change::Ack).await;
    }
}

/// Under an unfenced end no run will read a checkpoint, so it is refused; a replacement that waits has no state (rule 13).
pub async fn replacement_has_no_state(t: &Topic) {
    let claim = t.running("n", "a").await;
    assert_eq!(t.note("n", &claim, "[1]").await, NoteVerdict::Done);
    t.add_job(replacing("a", "new")).await;
    assert_eq!(t.note("n", &claim, "[2]").await, NoteVerdict::Done, "the run still has the job");
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!((kept(t, "a").await, t.payload("a").await), (None, "new".into()));
    t.add_job(replacing("a", "newer")).await;
    let claim = t.claim("n", "a").await;
    assert_eq!(t.note("n", &claim, "[3]").await, NoteVerdict::Done);
    t.delete("a").await;
    assert_eq!(t.note("n", &claim, "[4]").await, NoteVerdict::Ended);
    t.end("n", &claim, Change::Retry(ms(5))).await;
    t.add("a").await;
    assert_eq!(kept(t, "a").await, None);
}

/// The state stays with the job when a caller changes it, requeues it, or moves it to another store (rules 15, 27, 28).
pub async fn state_stays_with_the_job(t: &Topic) {
    let claim = t.running("n", "a").await;
    let failed = Metadata { attempts: 1, cause: Some(Cause::Error), ..with_state(&claim, "[1]") };
    t.end_with("n", &claim, Change::Retry(secs(60)), failed.clone()).await;
    t.changed("a", update("other")).await;
    assert_eq!((kept(t, "a").await.as_deref(), t.metadata("a").await.version), (Some("[1]"), 1));
    t.advance(secs(61)).await;
    let claim = t.claim("n", "a").await;
    assert_eq!(t.note("n", &claim, "[2]").await, NoteVerdict::Done);
    assert_eq!(t.metadata("a").await, Metadata { version: 1, ..with_state(&claim, "[2]") }, "it changes no version");
    let exhausted = t.metadata("a").await;
    assert_eq!(t.exhaust("n", &claim, Metadata { exhausted: true, ..exhausted.clone() }).await, NoteVerdict::Done);
    t.end_with("n", &claim, Change::Dead, Metadata { exhausted: true, ..exhausted }).await;
    let copies = t.export().await;
    t.delete("a").await;
    t.import(import_of(copies, OnDuplicate::Reject)).await;
    assert_eq!((t.state("a").await, kept(t, "a").await.as_deref()), (Some(State::Dead), Some("[2]")));
    t.requeue("a").await;
    assert_eq!(
        t.claim("n", "a").await.record.metadata().map(|read| read.state),
        Ok(Some(KeptState::from_bytes(b"[2]")))
    );
}

/// A job that `on_park_timeout` has keeps its parking fence, and a DONE job its state (rules 13, 25).
pub async fn checkpoint_leaves_the_parking_fence(t: &Topic) {
    t.add_job(retained("a")).await;
    let claim = t.claim("n", "a").await;
    t.end_with("n", &claim, Change::Park, with_state(&claim, "[1]")).await;
    let fence = t.metadata("a").await.parked_by;
    t.advance(secs(8 * 24 * 3_600)).await;
    let swept = t.claim_unacked("n", "a").await;
    let forged = Metadata { parked_by: None, ..with_state(&swept, "[2]") };
    assert_eq!(t.note("n", &swept, "[2]").await, NoteVerdict::Done);
    assert_eq!(t.metadata("a").await, Metadata { parked_by: fence, ..forged });
    t.end("n", &swept, Change::Park).await;
    t.ack_outside("a").await;
    assert_eq!((t.state("a").await, kept(t, "a").await.as_deref()), (Some(State::Done), Some("[2]")));
}

/// A state may have 64 KiB beside all texts, and each claim counts it (rule 5).
pub async fn large_states_count_in_the_bytes_of_a_claim(t: &Topic) {
    const JOBS: usize = 20;
    let large = "7".repeat(STATE.most as usize);
    let names: Vec<_> = (0..JOBS).map(|n| format!("job-{n:02}")).collect();
    t.add_all(names.iter().map(|name| job(name)).collect()).await;
    let claims = t.claims("n").await;
    let error = Some("x".repeat(4 << 10));
    for claim in &claims {
        let metadata = Metadata { attempts: 1, error: error.clone(), ..with_state(claim, &large) };
        t.end_with("n", claim, Change::Retry(ms(5)), metadata).await;
    }
    t.advance(ms(10)).await;
    let mut claimed = 0;
    while claimed < JOBS {
        let bytes = 3 * large.len();
        let page = t.transfer_with("n", dq::store::step::Transfer { bytes, ..t.transfer_of("n", 100) }).await;
        assert!(matches!(page.claims.len(), 1..=3), "{}", page.claims.len());
        for claim in &page.claims {
            let read = claim.record.metadata().expect("the record is readable");
            assert_eq!((read.state, &read.error), (Some(KeptState::from_bytes(large.as_bytes())), &error));
            assert_eq!(t.settle("n", claim, Change::Ack).await, Verdict::Done);
        }
        claimed += page.claims.len();
    }
}

/// How far a run has come is shown while it lasts, changes nothing of the job, and goes with the run, whatever ends it (rules 10, 13).
pub async fn progress_lasts_as_long_as_the_run(t: &Topic) {
    t.add("a").await;
    let before = t.stored("a").await.record;
    let mut claim;
    t.claim("n", "a").await;
    t.crash("n").await;
    for change in [Change::Rollback, Change::Retry(ms(5)), Change::Park, Change::Dead] {
        claim = t.claim("n", "a").await;
        for text in ["3/9 a\\b c", "4/9 d"] {
            let progress = Progress::read(text).expect("it is a progress");
            assert_eq!(t.note_what("n", &claim, Noting::Progress(progress.clone())).await, NoteVerdict::Done);
            let stored = t.stored("a").await;
            assert_eq!((stored.progress, stored.record), (Some(progress), before.clone()));
        }
        assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Done);
        t.end("n", &claim, change.clone()).await;
        t.advance(ms(10)).await;
        assert_eq!(t.stored("a").await.progress, None, "{change:?}");
        if matches!(change, Change::Park | Change::Dead) {
            t.requeue("a").await;
        }
    }
    claim = t.claim("n", "a").await;
    assert_eq!(t.note_what("n", &claim, progress()).await, NoteVerdict::Done);
    let crashes = t.stored("a").await.crashes;
    t.crash("n").await;
    assert_eq!((t.stored("a").await.progress, t.stored("a").await.crashes), (None, crashes + 1), "a crash is charged");
    assert_eq!(t.note_what("n", &claim, progress()).await, NoteVerdict::Stale);
    claim = t.claim("n", "a").await;
    assert_eq!(t.stored("a").await.progress, None);
    t.delete("a").await;
    assert_eq!(t.note_what("n", &claim, progress()).await, NoteVerdict::Ended);
    t.end("n", &claim, Change::Ack).await;
    t.add("a").await;
    assert_eq!(t.stored("a").await.progress, None);
}

fn progress() -> Noting {
    Noting::Progress(Progress::read("1/2 x").expect("it is a progress"))
}
