//! The result that a run leaves with its ack (rules 10, 13, 27), and how many DONE jobs are kept (step `sweep`).

use super::copies::import_of;
use super::producer::{replacing, retained};
use super::topic::{Topic, ms, secs, with_state};
use dq::job::{KeptState, Metadata, State};
use dq::store::OnDuplicate;
use dq::store::step::{Change, Claim, Sweep, Verdict};

/// The metadata of the claim, with this result and this retention.
fn with_result(claim: &Claim, result: &str, retain: std::time::Duration) -> Metadata {
    let metadata = claim.record.metadata().expect("the record is readable");
    Metadata { state: None, result: Some(KeptState::from_bytes(result.as_bytes())), retain, ..metadata }
}

/// The result of the job.
async fn result(t: &Topic, name: &str) -> Option<String> {
    t.metadata(name).await.result.map(|result| String::from_utf8_lossy(result.as_bytes()).into_owned())
}

/// A result is kept with the job in the step of its ack, in place of its state, for the retention that the job has or the ack brings.
pub async fn result_is_kept_with_the_ack(t: &Topic) {
    t.add_job(retained("retained")).await;
    let mut claim = t.claim("n", "retained").await;
    t.end_with("n", &claim, Change::Retry(ms(5)), with_state(&claim, "[1]")).await;
    t.advance(ms(10)).await;
    claim = t.claim("n", "retained").await;
    let metadata = with_result(&claim, "[7]", secs(60));
    t.end_with("n", &claim, Change::Ack, metadata.clone()).await;
    let kept = t.stored("retained").await;
    assert_eq!((kept.place.state(), kept.record.metadata()), (State::Done, Ok(metadata)));
    assert_eq!(kept.record.payload(), claim.record.payload());
    let claim = t.running("n", "plain").await;
    t.end_with("n", &claim, Change::Ack, with_result(&claim, "{\"a\":1}", secs(3_600))).await;
    assert_eq!((t.state("plain").await, result(t, "plain").await.as_deref()), (Some(State::Done), Some("{\"a\":1}")));
    t.advance(secs(61)).await;
    assert_eq!(t.sweep("n", t.sweep_of("n", 10)).await.pruned_done, 1);
    assert_eq!((t.state("retained").await, t.state("plain").await), (None, Some(State::Done)));
    t.add("plain").await;
    assert_eq!((t.state("plain").await, result(t, "plain").await), (Some(State::Delayed), None), "a new job has none");
    t.advance(secs(3_600)).await;
    assert_eq!(t.sweep("n", t.sweep_of("n", 10)).await.pruned_done, 0);
}

/// Acks without a result, of jobs without a retention, leave nothing, although other jobs of their batch leave results.
pub async fn result_concerns_only_its_job(t: &Topic) {
    for name in ["a", "b", "c", "d"] {
        t.add(name).await;
    }
    t.add_job(retained("e")).await;
    let claims = t.claims("n").await;
    let mut outcomes = Vec::new();
    for (n, claim) in claims.iter().enumerate() {
        let mut outcome = t.settle_of("n", claim, Change::Ack).outcomes.remove(0);
        outcome.metadata = (n % 2 == 0).then(|| with_result(claim, &format!("[{n}]"), secs(3_600)));
        outcomes.push(outcome);
    }
    assert_eq!(t.settle_all("n", outcomes).await.verdicts, vec![Verdict::Done; 5]);
    for (n, claim) in claims.iter().enumerate() {
        let is_kept = n % 2 == 0 || claim.id.as_str() == "e";
        assert_eq!(t.state(claim.id.as_str()).await, is_kept.then_some(State::Done), "{}", claim.id);
    }
    for (n, claim) in claims.iter().enumerate().step_by(2) {
        assert_eq!(result(t, claim.id.as_str()).await, Some(format!("[{n}]")));
    }
}

/// A late ack leaves no result, and neither does a run under an end or a replacement (rules 10, 13).
pub async fn late_result_is_refused_and_an_end_or_a_replacement_overrides_one(t: &Topic) {
    let late = t.running("late", "a").await;
    t.crash("late").await;
    let mut claim = t.claim("n", "a").await;
    let outcome = |claim: &Claim| {
        let mut outcome = t.settle_of("n", claim, Change::Ack).outcomes.remove(0);
        outcome.metadata = Some(with_result(claim, "[7]", secs(60)));
        vec![outcome]
    };
    for node in ["late", "n"] {
        assert_eq!(t.settle_all(node, outcome(&late)).await.verdicts, [Verdict::Stale], "{node}");
    }
    t.add_job(replacing("a", "new")).await;
    assert_eq!(t.settle_all("n", outcome(&claim)).await.verdicts, [Verdict::Done]);
    assert_eq!((t.state("a").await, result(t, "a").await), (Some(State::Delayed), None));
    claim = t.claim("n", "a").await;
    t.delete("a").await;
    assert_eq!(t.settle_all("n", outcome(&claim)).await.verdicts, [Verdict::Done]);
    assert_eq!(t.state("a").await, None);
    t.add_job(retained("a")).await;
    claim = t.claim("n", "a").await;
    t.ack_outside("a").await;
    assert_eq!(t.settle_all("n", outcome(&claim)).await.verdicts, [Verdict::Done]);
    assert_eq!((t.state("a").await, result(t, "a").await), (Some(State::Done), None));
}

/// An export has the result, and so has the store that imports it (rule 27).
pub async fn result_survives_export_and_import(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.end_with("n", &claim, Change::Ack, with_result(&claim, "[7]", secs(3_600))).await;
    let copies = t.export().await;
    t.delete("a").await;
    t.import(import_of(copies.clone(), OnDuplicate::Reject)).await;
    assert_eq!((t.state("a").await, result(t, "a").await.as_deref()), (Some(State::Done), Some("[7]")));
    assert_eq!(t.export().await, copies);
}

/// If there are more DONE jobs than `done_max`, those go first whose retention ends first, as many as the limit says (step `sweep`).
pub async fn done_jobs_are_pruned_by_number(t: &Topic) {
    for n in 0..6 {
        t.add_job(retained(&format!("j{n}"))).await;
        t.run("n", &format!("j{n}"), Change::Ack).await;
        t.advance(ms(5)).await;
    }
    let most = |done_max, limit| Sweep { done_max, ..t.sweep_of("n", limit) };
    assert_eq!(t.sweep("n", most(None, 10)).await.pruned_done, 0);
    assert_eq!(t.sweep("n", most(Some(6), 10)).await.pruned_done, 0);
    for (pruned, more) in [(2, true), (1, false), (0, false)] {
        let swept = t.sweep("n", most(Some(3), 2)).await;
        assert_eq!((swept.pruned_done, swept.more), (pruned, more));
    }
    let kept: Vec<_> = t.pages(State::Done, 10).await.into_iter().map(|job| job.id.to_string()).collect();
    assert_eq!(kept, ["j3", "j4", "j5"]);
    t.advance(secs(60)).await;
    assert_eq!(t.sweep("n", most(Some(3), 10)).await.pruned_done, 3, "their retention ends all the same");
}
