//! How a group borrows what is idle beyond the number of its jobs that may run (rule 4).

use super::groups::{add, limit, member};
use super::setting::limit_to;
use super::stopped::{group, named};
use super::topic::{Topic, ids, ms, secs};
use dq::store::step::{Change, Claim};
use dq::store::{AddOutcome, Limit, LimitKind, LinkOptions, TopicChange};

async fn burst(t: &Topic, jobs: usize) {
    t.set(limit_to(Limit::GroupBurst(jobs), "")).await;
}

/// Claims one job after the other while there is more, at most so many.
async fn claim(t: &Topic, most: usize) -> Vec<Claim> {
    let (mut claims, mut tries) = (Vec::new(), 0);
    while claims.len() < most {
        let answer = t.transfer("n", 1).await;
        claims.extend(answer.claims);
        if !answer.more {
            break;
        }
        tries += 1;
        assert!(tries < 100, "it ends to ask for more");
    }
    claims
}

/// A group runs so many more jobs while nothing else is due, in their order, and not one more (rule 4).
pub async fn group_borrows_what_is_idle(t: &Topic) {
    limit(t, 2).await;
    burst(t, 2).await;
    add(t, &["a-1", "a-2", "a-3", "a-4", "a-5", "a-6", "b-1"]).await;
    t.add("plain").await;
    t.advance(ms(1)).await;
    let claims = claim(t, 9).await;
    let mut own = ids(&claims)[..4].to_vec();
    own.sort_unstable();
    assert_eq!((own, &ids(&claims)[4..]), (vec!["a-1", "a-2", "b-1", "plain"], &["a-3", "a-4"][..]));
    let seen = group(t, "a").await.expect("it has jobs");
    assert_eq!((seen.seats.len(), seen.waiting, seen.is_full), (4, 2, true));
    for (ends, next) in [("a-3", "a-5"), ("a-1", "a-6")] {
        let ended = claims.iter().find(|claim| claim.id.as_str() == ends).expect("it runs");
        t.end("n", ended, Change::Ack).await;
        assert_eq!(ids(&claim(t, 9).await), [next], "what a job gives back goes to the next one");
    }
    assert_eq!(group(t, "a").await.map(|seen| seen.waiting), Some(0));
}

/// What else is due goes first, whatever its turn, and a group that runs more than its number is full until enough of its jobs have ended (rule 4).
pub async fn group_that_borrows_gives_back(t: &Topic) {
    limit(t, 2).await;
    burst(t, 2).await;
    add(t, &["a-1", "a-2", "a-3", "a-4", "a-5", "a-6"]).await;
    t.advance(ms(1)).await;
    let claims = claim(t, 3).await;
    assert_eq!(ids(&claims), ["a-1", "a-2", "a-3"]);
    t.advance(secs(1)).await;
    add(t, &["b-1", "b-2", "b-3"]).await;
    t.add("plain").await;
    t.advance(ms(1)).await;
    let mut others = ids(&claim(t, 3).await).join(" ");
    assert_eq!(others, "b-1 plain b-2", "they are due later than the job of the group that borrows");
    t.end("n", &claims[0], Change::Ack).await;
    t.add("second").await;
    others = ids(&claim(t, 1).await).join(" ");
    assert_eq!(others, "second", "two of the group run");
    t.add("other").await;
    assert_eq!(ids(&claim(t, 1).await), ["other"], "its turn comes, and it is full");
    t.advance(ms(1)).await;
    t.end("n", &claims[1], Change::Ack).await;
    t.advance(ms(1)).await;
    t.add("third").await;
    assert_eq!(ids(&claim(t, 2).await), ["a-4", "third"], "now it has a turn of its own");
}

/// A group borrows nothing while it waits for a job with a seat, and a group of one job is a queue that no job overtakes (rule 4).
pub async fn burst_passes_no_job_that_its_group_waits_for(t: &Topic) {
    limit(t, 2).await;
    burst(t, 5).await;
    add(t, &["a-1", "a-2", "a-3", "a-4"]).await;
    let claims = claim(t, 2).await;
    t.end("n", &claims[0], Change::Retry(secs(60))).await;
    assert_eq!(ids(&claim(t, 9).await), [""; 0], "a-1 keeps its seat until its retry");
    t.advance(secs(60)).await;
    let others = claim(t, 9).await;
    assert_eq!(ids(&others), ["a-1", "a-3", "a-4"]);
    for claim in claims[1..].iter().chain(&others) {
        t.end("n", claim, Change::Ack).await;
    }
    limit(t, 1).await;
    add(t, &["c-1", "c-2", "c-3"]).await;
    for name in ["c-1", "c-2", "c-3"] {
        let claims = claim(t, 9).await;
        assert_eq!(ids(&claims), [name]);
        t.end("n", &claims[0], Change::Ack).await;
    }
}

/// Neither a pause of the group nor a topic that is shut lets it borrow (rules 4, 29).
pub async fn burst_obeys_pauses_and_slots(t: &Topic) {
    limit(t, 2).await;
    burst(t, 5).await;
    t.set(limit_to(Limit::ClusterConcurrency(3), "")).await;
    add(t, &["a-1", "a-2", "a-3", "a-4", "a-5"]).await;
    let claims = claim(t, 9).await;
    assert_eq!(ids(&claims), ["a-1", "a-2", "a-3"]);
    let group = Some(named("a"));
    t.set(TopicChange::Pause { group: group.clone(), reason: String::new(), until: None }).await;
    t.set(TopicChange::ClearLimit(LimitKind::ClusterConcurrency)).await;
    assert_eq!(ids(&claim(t, 9).await), [""; 0]);
    t.set(TopicChange::Resume { group }).await;
    assert_eq!(ids(&claim(t, 9).await), ["a-4", "a-5"]);
}

/// A burst that a caller has set overrides the code, and a change of it reaches full groups; the jobs of a group that borrows change like others (rule
/// 29).
pub async fn burst_that_was_set_overrides_the_code(t: &Topic) {
    t.linked("n", LinkOptions { group_concurrency: Some(2), group_burst: 1, ..LinkOptions::default() });
    add(t, &["a-1", "a-2", "a-3", "a-4", "a-5", "a-6", "a-7"]).await;
    assert_eq!(ids(&claim(t, 9).await), ["a-1", "a-2", "a-3"]);
    burst(t, 3).await;
    assert_eq!(t.topic_state().await.limits[0].limit, Limit::GroupBurst(3));
    assert_eq!(ids(&claim(t, 1).await), ["a-4"]);
    t.delete("a-5").await;
    assert_eq!(t.add_job(member("a-8", ms(0))).await, AddOutcome::Added);
    assert_eq!(ids(&claim(t, 9).await), ["a-6"]);
    burst(t, 0).await;
    assert_eq!(ids(&claim(t, 9).await), [""; 0]);
    t.set(TopicChange::ClearLimit(LimitKind::GroupBurst)).await;
    assert_eq!(ids(&claim(t, 9).await), [""; 0]);
    burst(t, 100).await;
    assert_eq!(ids(&claim(t, 9).await), ["a-7", "a-8"]);
}
