//! Job sets: members in any topics, and one job that is added once when all of them have ended (rule 18).

use std::sync::Arc;

use futures_util::future::join_all;

use super::broadcasts::{HOUR_MS, publish};
use super::events::exhaust_by_crashes;
use super::producer::{answered, delayed, job, replacing, retained, with_payload};
use super::topic::{Topic, id, ms, secs};
use dq::job::{Delivery, State};
use dq::store::step::{Change, Ending, Verdict};
use dq::store::{
    ACKED_HEADER, BatchAnswer, CommandKind, DEAD_HEADER, FollowUpBatch, FollowUpBatches, JobSetSummary, LEFT_HEADER,
    MAX_SETS, NewJob, OnDead, OnDuplicate, SetChange, SetCounts, SetOutcome, SetRefusal, SetState, SetVerb,
    SetsRequest,
};

impl Topic {
    async fn change_set(&self, name: &str, what: SetVerb) -> SetOutcome {
        let producer = self.store.producer(&self.key, &dq::job::ProducerId::new(format!("set-{}", self.micros())));
        self.advance(std::time::Duration::from_micros(1)).await; // another producer for each call
        let answer = producer.job_set(1, SetChange { set: id(name), what }).await.expect("job_set is answered");
        answered(answer).remove(0)
    }

    /// Adds these jobs of `of` as members of the set `s`, which lives here.
    async fn joined_by(&self, of: &Self, on_dead: OnDead, jobs: Vec<NewJob>) -> SetOutcome {
        let jobs = jobs.into_iter().map(|job| (of.key.topic.clone(), job)).collect();
        self.change_set("s", SetVerb::Add(on_dead, jobs)).await
    }

    /// Closes the set `s` with the last job `then`.
    async fn closes(&self) -> SetOutcome {
        self.change_set("s", SetVerb::Close(Box::new(job("then")))).await
    }

    async fn set_of(&self, most: usize) -> JobSetSummary {
        let request = SetsRequest::One(id("s"), most);
        self.store.job_sets(&self.key, &request).await.expect("job_sets is answered").remove(0)
    }

    /// The counts of the set `s`: members, acked, dead and left.
    async fn set_counts(&self) -> [u64; 4] {
        let SetCounts { members, acked, dead, left } = self.set_of(0).await.counts;
        [members, acked, dead, left]
    }

    /// The same, once what waits here and in this topic has come to the other.
    async fn relayed(&self, other: &Self) -> [u64; 4] {
        relay_all(&[self, other]).await;
        self.set_counts().await
    }

    /// What the last job of the set `s` says of the members: acked, dead and left; `None` if it was not added.
    async fn last_job(&self) -> Option<[String; 3]> {
        let found = self.store.get(&self.key, &[id("then")]).await.expect("get is answered").remove(0)?;
        let headers = found.record.metadata().expect("it decodes").headers;
        let of = |name: &str| headers.iter().find(|(known, _)| known == name).expect("the header is there").1.clone();
        Some([ACKED_HEADER, DEAD_HEADER, LEFT_HEADER].map(of))
    }
}

/// Brings what waits in the outboxes of these topics to the others, until nothing waits and what came is due.
async fn relay_all(topics: &[&Topic]) {
    loop {
        let mut is_quiet = true;
        for from in topics {
            for entry in from.relay_of("relay", topics, &[]).await.entries {
                is_quiet = false;
                let target = topics.iter().find(|to| to.key.topic == entry.target).expect("the target is one of them");
                target.gets(from, &entry).await.expect("the target takes it");
            }
            from.relay_of("relay", topics, &[]).await;
        }
        if is_quiet {
            // A delay counts from the position of the entry, rounded up.
            return topics[0].advance(ms(1)).await;
        }
    }
}

/// A topic `one` that has got these jobs, the members of the set `s` of this topic.
async fn with_members(t: &Topic, on_dead: OnDead, jobs: Vec<NewJob>) -> Topic {
    let one = t.beside("conformance", "one").await;
    t.joined_by(&one, on_dead, jobs).await;
    relay_all(&[t, &one]).await;
    one
}

/// Three members in two topics, each of which ends in another way (rule 18).
pub async fn last_job_of_a_set_comes_once_when_all_members_have_ended(t: &Topic) {
    let (one, two) = (t.beside("conformance", "one").await, t.beside("conformance", "two").await);
    let all = [t, &one, &two];
    t.joined_by(&one, OnDead::Count, vec![with_payload("a", "payload"), job("b")]).await;
    t.joined_by(&two, OnDead::Count, vec![job("a")]).await;
    assert_eq!(one.state("a").await, None, "the set brings them");
    relay_all(&all).await;
    assert_eq!(one.payload("a").await, "payload");
    let claims = one.claims("n").await;
    assert_eq!(one.settle("n", &claims[0], Change::Ack).await, Verdict::Done);
    assert_eq!(one.settle("n", &claims[1], Change::Dead).await, Verdict::Done);
    relay_all(&all).await;
    assert_eq!(t.set_counts().await, [3, 1, 1, 0]);
    assert_eq!(
        (t.set_of(10).await.state, t.set_of(10).await.waits_for),
        (SetState::Open, vec![(two.key.topic.clone(), id("a"))])
    );
    assert!(matches!(t.closes().await, SetOutcome::Done(seen) if seen.state == SetState::Closed));
    relay_all(&all).await;
    assert_eq!(t.last_job().await, None);
    two.delete("a").await;
    relay_all(&all).await;
    assert_eq!(t.last_job().await, Some(["1", "1", "1"].map(str::to_owned)));
    assert_eq!((t.set_of(10).await.state, t.set_of(10).await.waits_for), (SetState::Ended, vec![]));
    t.delete("then").await;
    assert!(matches!(t.closes().await, SetOutcome::Done(seen) if seen.state == SetState::Ended));
    one.requeue("b").await;
    one.run("n", "b", Change::Ack).await;
    relay_all(&all).await;
    assert_eq!(t.last_job().await, None, "it was added once");
    one.close().await;
    two.close().await;
}

/// A set that was closed before it had a member waits for none (rule 18).
pub async fn set_without_members_ends_at_once(t: &Topic) {
    t.closes().await;
    relay_all(&[t]).await;
    assert_eq!(t.last_job().await, Some(["0", "0", "0"].map(str::to_owned)));
}

/// What a topic does about members of sets and what it does about histories keep no job from it (rules 18, 31).
pub async fn topic_with_members_and_histories_takes_jobs(t: &Topic) {
    let one = t.beside("conformance", "one").await;
    one.keep_history(9, std::time::Duration::ZERO).await;
    t.joined_by(&one, OnDead::Count, vec![job("a")]).await;
    relay_all(&[t, &one]).await;
    one.add_job(job("b")).await;
    one.add_job(delayed("far", secs(10_000_000))).await;
    assert_eq!((one.counts().await.delayed, one.moves("b").await.len(), one.moves("far").await.len()), (3, 1, 1));
    one.close().await;
}

/// A caller repeats its members with the same ids: each counts once, and is added once (rule 18).
pub async fn member_counts_once_however_often_it_is_added(t: &Topic) {
    let one = t.beside("conformance", "one").await;
    for _ in 0..2 {
        t.joined_by(&one, OnDead::Count, vec![job("a"), job("b")]).await;
        relay_all(&[t, &one]).await;
    }
    let claims = one.claims("n").await;
    assert_eq!(claims.len(), 2);
    one.end("n", &claims[0], Change::Ack).await;
    relay_all(&[t, &one]).await;
    t.joined_by(&one, OnDead::Count, vec![job("a"), job("b")]).await;
    relay_all(&[t, &one]).await;
    assert_eq!((t.set_counts().await, one.counts().await.delayed), ([2, 1, 0, 0], 0), "not even after its end");
    one.close().await;
}

/// A call that is repeated under its number is one call (rule 18).
pub async fn change_of_a_set_is_one_call(t: &Topic) {
    let change = SetChange { set: id("s"), what: SetVerb::Close(Box::new(job("then"))) };
    let producer = t.producer_named("p");
    let first = producer.job_set(1, change.clone()).await.expect("job_set is answered");
    assert_eq!(producer.job_set(1, change.clone()).await.expect("job_set is answered"), first);
    producer.job_set(2, change.clone()).await.expect("job_set is answered");
    assert!(matches!(producer.job_set(1, change).await, Ok(BatchAnswer::Done(_) | BatchAnswer::Late)));
}

/// Whatever ends a job ends the member, in the step that does so (rule 18).
pub async fn each_way_of_leaving_ends_a_member(t: &Topic) {
    let names =
        ["ack", "ack-outside", "dead", "delete", "cancel", "drop", "deleted-while-it-runs", "acked-while-it-runs"];
    let one = with_members(t, OnDead::Count, names.into_iter().map(job).collect()).await;
    one.ack_outside("ack-outside").await;
    one.delete("delete").await;
    one.cancel("cancel").await;
    assert_eq!(t.relayed(&one).await, [8, 1, 0, 2]);
    for claim in one.claims("n").await {
        let change = match claim.id.as_str() {
            "dead" => Change::Dead,
            "drop" => Change::Drop,
            "ack" => Change::Ack,
            name => {
                let verb = if name == "deleted-while-it-runs" { CommandKind::Delete } else { CommandKind::Ack };
                one.command(verb, name, None).await;
                Change::Rejoin(dq::store::step::RejoinDue::AsAdded)
            }
        };
        one.end("n", &claim, change).await;
    }
    assert_eq!(t.relayed(&one).await, [8, 3, 1, 4]);
    assert_eq!(t.set_of(10).await.waits_for, []);
    one.close().await;
}

/// A retry, a rejoin, a park, a crash and a replacement end no member (rule 18).
pub async fn job_that_comes_back_is_still_a_member(t: &Topic) {
    let names = ["retried", "parked", "replaced", "crashed"];
    let one = with_members(t, OnDead::Count, names.into_iter().map(job).collect()).await;
    for claim in one.claims("n").await {
        match claim.id.as_str() {
            "retried" => one.end("n", &claim, Change::Retry(secs(1))).await,
            "parked" => one.end("n", &claim, Change::Park).await,
            "replaced" => {
                one.add_job(replacing("replaced", "new")).await;
                one.end("n", &claim, Change::Ack).await;
            }
            _ => {}
        }
    }
    one.crash("n").await;
    assert_eq!(t.relayed(&one).await, [4, 0, 0, 0]);
    one.ack_outside("parked").await;
    one.advance(secs(1)).await;
    for claim in one.claims("m").await {
        one.end("m", &claim, Change::Ack).await;
    }
    assert_eq!(t.relayed(&one).await, [4, 4, 0, 0]);
    one.close().await;
}

/// A member whose place a broadcast takes has left once that goes out or expires; a job that goes out as a broadcast, too, stays one
/// (rule 18).
pub async fn broadcast_in_the_place_of_a_member_ends_it(t: &Topic) {
    let both = NewJob { deliver: Delivery::Both, ..job("both") };
    let one = with_members(t, OnDead::Wait, vec![job("replaced"), both, delayed("expired", ms(1))]).await;
    for id in ["replaced", "expired"] {
        one.add_job(NewJob { deliver: Delivery::Broadcast, ..replacing(id, "new") }).await;
        assert_eq!(t.relayed(&one).await, [3, 0, 0, u64::from(id == "expired")]);
        if id == "expired" {
            one.advance(ms(HOUR_MS + 1)).await;
        }
        while publish(&one, "n", 10).await.published > 0 {}
        relay_all(&[t, &one]).await;
    }
    assert_eq!(t.set_counts().await, [3, 0, 0, 2]);
    one.run("n", "both", Change::Ack).await;
    assert_eq!(t.relayed(&one).await, [3, 1, 0, 2]);
    one.close().await;
}

/// A job that takes the place of a waiting member is the member (rule 18).
pub async fn replaced_or_extended_member_is_still_one(t: &Topic) {
    let one = with_members(t, OnDead::Count, vec![delayed("replaced", secs(9)), delayed("extended", secs(9))]).await;
    one.add_job(replacing("replaced", "new")).await;
    let extends = OnDuplicate::Extend { at_most: None };
    one.add_job(NewJob { on_duplicate: extends, ..delayed("extended", secs(1)) }).await;
    assert_eq!(t.relayed(&one).await, [2, 0, 0, 0]);
    one.advance(secs(1)).await;
    let claims = one.claims("n").await;
    assert_eq!(claims.len(), 2);
    for claim in claims {
        one.end("n", &claim, Change::Ack).await;
    }
    assert_eq!(t.relayed(&one).await, [2, 2, 0, 0]);
    one.close().await;
}

/// A member that kills its node has ended once its crashes make it DEAD, and not when they convict it (rules 18, 19).
pub async fn member_that_crashes_too_often_is_dead(t: &Topic) {
    let one = with_members(t, OnDead::Count, vec![job("a")]).await;
    let claim = one.claim("n", "a").await;
    exhaust_by_crashes(&one, "n", claim).await;
    assert_eq!(t.relayed(&one).await, [1, 0, 0, 0]);
    one.crash("n").await;
    relay_all(&[t, &one]).await;
    assert_eq!((one.state("a").await, t.set_counts().await), (Some(State::Dead), [1, 0, 1, 0]));
    one.close().await;
}

/// A DONE or DEAD job that is removed after its retention had ended before (rule 18).
pub async fn removal_of_an_ended_member_counts_no_second_time(t: &Topic) {
    let one = with_members(t, OnDead::Count, vec![job("dead"), retained("done")]).await;
    for claim in one.claims("n").await {
        let change = if claim.id.as_str() == "dead" { Change::Dead } else { Change::Ack };
        one.end("n", &claim, change).await;
    }
    assert_eq!(t.relayed(&one).await, [2, 1, 1, 0]);
    assert_eq!((one.state("dead").await, one.state("done").await), (Some(State::Dead), Some(State::Done)));
    one.advance(secs(400 * 86_400)).await;
    one.sweep("n", one.sweep_of("n", 10)).await;
    assert_eq!((one.state("dead").await, one.state("done").await), (None, None));
    assert_eq!(t.relayed(&one).await, [2, 1, 1, 0]);
    one.close().await;
}

/// A set may wait for a person who requeues, deletes or acks a DEAD member, or for the end of its retention (rule 18).
pub async fn set_waits_for_its_dead_members(t: &Topic) {
    let names = ["requeued", "deleted", "removed"];
    let one = with_members(t, OnDead::Wait, names.into_iter().map(job).collect()).await;
    for claim in one.claims("n").await {
        one.end("n", &claim, Change::Dead).await;
    }
    assert_eq!(t.relayed(&one).await, [3, 0, 0, 0]);
    one.requeue("requeued").await;
    one.run("n", "requeued", Change::Ack).await;
    one.delete("deleted").await;
    assert_eq!(t.relayed(&one).await, [3, 1, 0, 1]);
    one.advance(secs(400 * 86_400)).await;
    one.sweep("n", one.sweep_of("n", 10)).await;
    assert_eq!(t.relayed(&one).await, [3, 1, 0, 2]);
    one.close().await;
}

/// A DEAD member may cancel those that have not ended (rule 18).
pub async fn dead_member_cancels_the_rest(t: &Topic) {
    let (one, two) = (t.beside("conformance", "one").await, t.beside("conformance", "two").await);
    let all = [t, &one, &two];
    t.joined_by(&one, OnDead::CancelRest, vec![job("a")]).await;
    relay_all(&all).await;
    let claim = one.claim("n", "a").await;
    for batch in 0..4 {
        let jobs = (0..120).map(|n| job(&format!("{batch}-{n}"))).collect();
        t.joined_by(&two, OnDead::CancelRest, jobs).await;
    }
    relay_all(&all).await;
    t.closes().await;
    one.end("n", &claim, Change::Dead).await;
    relay_all(&all).await;
    assert_eq!(t.last_job().await, Some(["0", "1", "480"].map(str::to_owned)));
    assert_eq!(two.counts().await.delayed, 0);
    one.close().await;
    two.close().await;
}

/// A closed set takes no members of callers, but those of handlers of its members, which come before the end of these (rule 18).
pub async fn closed_set_takes_members_of_its_members_only(t: &Topic) {
    let one = t.beside("conformance", "one").await;
    t.joined_by(&one, OnDead::Count, vec![job("a")]).await;
    t.closes().await;
    relay_all(&[t, &one]).await;
    let late = t.joined_by(&one, OnDead::Count, vec![job("late")]).await;
    assert_eq!(late, SetOutcome::Refused(SetRefusal::Closed));
    let claim = one.claim("n", "a").await;
    let mut follow_ups = FollowUpBatches::default();
    let what = SetVerb::Add(OnDead::Count, vec![(one.key.topic.clone(), job("b"))]);
    follow_ups.push(t.key.topic.clone(), &FollowUpBatch::Set(SetChange { set: id("s"), what }));
    one.end("n", &claim, Change::Then(Ending::Ack, Arc::new(follow_ups))).await;
    relay_all(&[t, &one]).await;
    assert_eq!((t.set_counts().await, t.last_job().await), ([2, 1, 0, 0], None));
    one.run("n", "b", Change::Ack).await;
    relay_all(&[t, &one]).await;
    assert_eq!(t.last_job().await, Some(["2", "0", "0"].map(str::to_owned)));
    let late = t.joined_by(&one, OnDead::Count, vec![job("late")]).await;
    assert_eq!(late, SetOutcome::Refused(SetRefusal::Ended));
    relay_all(&[t, &one]).await;
    assert_eq!(one.state("late").await, None);
    one.close().await;
}

/// A job that exists is not the set's, and a job that joins another set leaves its own (rule 18).
pub async fn job_is_a_member_of_one_set(t: &Topic) {
    let one = t.beside("conformance", "one").await;
    one.add("exists").await;
    t.joined_by(&one, OnDead::Count, vec![job("exists"), job("a")]).await;
    assert_eq!(t.relayed(&one).await, [2, 0, 0, 1]);
    one.delete("exists").await;
    let what = SetVerb::Add(OnDead::Count, vec![(one.key.topic.clone(), replacing("a", "new"))]);
    t.change_set("other", what).await;
    assert_eq!(t.relayed(&one).await, [2, 0, 0, 2]);
    one.run("n", "a", Change::Ack).await;
    relay_all(&[t, &one]).await;
    let request = SetsRequest::One(id("other"), 1);
    let other = t.store.job_sets(&t.key, &request).await.expect("job_sets is answered").remove(0);
    assert_eq!((other.counts.acked, t.set_counts().await), (1, [2, 0, 0, 2]));
    one.close().await;
}

/// The sets of a topic come in pages, those first that have not ended; an ended one is forgotten after a day (rule 18).
pub async fn sets_come_in_pages(t: &Topic) {
    for name in ["b", "a", "c"] {
        t.change_set(name, SetVerb::Add(OnDead::Count, vec![(t.key.topic.clone(), job(name))])).await;
    }
    t.change_set("b", SetVerb::Close(Box::new(job("then")))).await;
    relay_all(&[t]).await;
    t.delete("b").await;
    relay_all(&[t]).await;
    let page = |from, limit| {
        let request = SetsRequest::Page { from, limit };
        async move {
            let sets = t.store.job_sets(&t.key, &request).await.expect("job_sets is answered");
            sets.into_iter().map(|seen| seen.set.to_string()).collect::<Vec<_>>()
        }
    };
    assert_eq!((page(0, 2).await, page(2, 2).await), (vec!["a".to_owned(), "c".to_owned()], vec!["b".to_owned()]));
    t.advance(secs(86_400)).await;
    t.change_set("d", SetVerb::Add(OnDead::Count, Vec::new())).await;
    assert_eq!(page(0, 10).await, ["a", "c", "d"]);
    assert_eq!(t.state("a").await, Some(State::Delayed));
}

/// A topic has at most 10,000 sets that have not ended. Those that it has take members, and one that ends makes room (rule 18).
pub async fn sets_of_a_topic_are_bounded(t: &Topic) {
    let producer = t.producer_named("many");
    let open = |name: usize| {
        let change = SetChange { set: id(&format!("s{name}")), what: SetVerb::Add(OnDead::Count, Vec::new()) };
        producer.job_set(name as u64, change)
    };
    for first in (1..=MAX_SETS).step_by(10) {
        let answers = join_all((first..first + 10).map(open)).await;
        assert!(
            answers.into_iter().all(|answer| {
                matches!(answered(answer.expect("job_set is answered")).remove(0), SetOutcome::Done(_))
            })
        );
    }
    let member = |name: &str| SetVerb::Add(OnDead::Count, vec![(t.key.topic.clone(), job(name))]);
    let too_many = SetOutcome::Refused(SetRefusal::TooManySets);
    assert_eq!(t.change_set("one more", member("a")).await, too_many);
    assert_eq!(t.change_set("one more", SetVerb::Close(Box::new(job("then")))).await, too_many);
    assert!(matches!(t.change_set("s1", member("a")).await, SetOutcome::Done(seen) if seen.counts.members == 1));
    t.change_set("s2", SetVerb::Close(Box::new(job("then")))).await;
    assert!(matches!(t.change_set("one more", member("b")).await, SetOutcome::Done(_)));
}
