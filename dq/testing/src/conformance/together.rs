//! Steps are atomic: many nodes and producers at once (rules 2, 9, 10, 13).

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::producer::{answered, job};
use super::topic::{LEASE, Topic, done, id};
use dq::job::{JobId, Sequence, State};
use dq::store::step::{Change, DEFAULT_BYTES, Reconcile, Settle, Transfer, Verdict};
use dq::store::{AddOutcome, CommandKind, Link, Numbered};

/// Claims until no job is due, seven at a time.
async fn claim_all(link: Arc<dyn Link>) -> Vec<(JobId, u64)> {
    let first = Reconcile { last_seen: Sequence(0), after: None, limit: 10 };
    let mut last_seen = done(link.step(first).await.expect("reconcile is answered")).lease_status.sequence;
    let mut claimed = Vec::new();
    loop {
        let answer = done(link.step(Transfer::new(last_seen, 7, LEASE)).await.expect("transfer is answered"));
        if answer.claims.is_empty() {
            return claimed;
        }
        last_seen = answer.lease_status.sequence;
        claimed.extend(answer.claims.into_iter().map(|claim| (claim.id, claim.token.fence.0)));
        assert_eq!(claimed.len(), answer.lease_status.rows);
        tokio::task::yield_now().await;
    }
}

/// Eight nodes that claim at once share out all jobs, never hold the same job, and never share a fence (rules 2, 9).
pub async fn nodes_that_claim_at_once_never_share_a_job(t: &Topic) {
    t.add_all((0..200).map(|n| job(&format!("j{n:03}"))).collect()).await;
    let mut nodes = JoinSet::new();
    for n in 0..8 {
        let link = t.link(&format!("n{n}"));
        nodes.spawn(async move { (n, claim_all(link).await) });
    }
    let (mut holders, mut fences) = (BTreeMap::new(), BTreeMap::new());
    while let Some(joined) = nodes.join_next().await {
        let (node, claims) = joined.expect("no node panics");
        for (id, fence) in claims {
            assert_eq!(holders.insert(id, node), None, "two nodes hold a job");
            assert_eq!(*fences.entry(fence).or_insert(node), node, "two nodes share a fence");
        }
    }
    assert_eq!(holders.len(), 200);
    t.audit().await;
}

/// If eight producers add one id at once, one of them adds it (rule 2).
pub async fn callers_that_add_at_once_add_one_job(t: &Topic) {
    let mut callers = JoinSet::new();
    for n in 0..8 {
        let caller = t.producer_named(&format!("p{n}"));
        callers.spawn(async move {
            let batch = Numbered { number: 1, items: vec![job("a")] };
            answered(caller.add(batch).await.expect("add is answered")).remove(0)
        });
    }
    let mut outcomes = callers.join_all().await;
    outcomes.sort_by_key(|outcome| *outcome != AddOutcome::Added);
    assert_eq!(outcomes.remove(0), AddOutcome::Added);
    assert!(outcomes.iter().all(|outcome| *outcome == AddOutcome::Exists(State::Delayed)));
    t.audit().await;
}

/// If eight outcomes of one run are sent at once, one of them applies (rule 10).
pub async fn outcomes_sent_at_once_count_once(t: &Topic) {
    let claim = t.running("n", "a").await;
    let mut senders = JoinSet::new();
    for _ in 0..8 {
        let (link, last_seen) = (t.link("n"), t.last_seen("n"));
        let outcomes = vec![claim.outcome(Change::Rollback)];
        senders.spawn(async move {
            let settled = link
                .step(Settle { last_seen, lease: LEASE, bytes: DEFAULT_BYTES, outcomes })
                .await
                .expect("settle is answered");
            settled.verdicts[0] == Verdict::Done
        });
    }
    assert_eq!(senders.join_all().await.into_iter().filter(|done| *done).count(), 1);
    t.claim("n", "a").await;
}

/// A delete that meets a claim either removes the job or leaves a pending command, so the job runs at most once (rules
/// 2, 13).
pub async fn delete_during_a_claim_removes_the_job_or_leaves_a_pending_command(t: &Topic) {
    t.enter("n").await;
    for n in 0..20 {
        let name = format!("j{n}");
        t.add(&name).await;
        let transfer = t.link("n").step(t.transfer_of("n", 10));
        let delete = t.producer().command(t.numbered(vec![super::producer::command(CommandKind::Delete, &name, None)]));
        let (transfer, delete) = futures_util::join!(transfer, delete);
        let claims = done(transfer.expect("transfer is answered")).claims;
        let found = answered(delete.expect("command is answered"))[0].found;
        match (claims.first(), found) {
            (Some(claim), Some(State::Running)) => {
                t.reconcile("n").await;
                t.end("n", claim, Change::Retry(LEASE)).await;
            }
            (None, Some(State::Delayed)) => drop(t.reconcile("n").await),
            other => panic!("{other:?}"),
        }
        assert_eq!(t.store.get(&t.key, &[id(&name)]).await.expect("get is answered"), [None]);
    }
}
