//! Follow-ups: an outcome leaves them in the outbox of its topic, and each arrives in its topic once (rule 18).

use std::sync::Arc;
use std::time::Duration;

use super::producer::{delayed, job, with_payload};
use super::setting::{drain, limit_to};
use super::topic::{Topic, id, ms, secs};
use dq::job::{NodeId, State, TopicName};
use dq::store::step::{Change, Claim, DEFAULT_BYTES, Ending, Verdict};
use dq::store::{
    Ahead, BatchAnswer, FollowUpBatch, FollowUpBatches, FollowUpOutcome, Limit, MAX_FOLLOW_UPS, MAX_READ, NewJob,
    OnDuplicate, OutboxEntry, OutboxPosition, Relay, Relayed, Repair, StoreError, TopicChange, relay_of,
};

/// For how long these nodes relay.
const LEASE: Duration = Duration::from_secs(5);

pub(super) fn adds(target: &Topic, jobs: Vec<NewJob>) -> FollowUpBatches {
    let mut follow_ups = FollowUpBatches::default();
    follow_ups.push(target.key.topic.clone(), &FollowUpBatch::Add(jobs));
    follow_ups
}

fn then(ending: Ending, follow_ups: FollowUpBatches) -> Change {
    Change::Then(ending, Arc::new(follow_ups))
}

fn asked(node: NodeId, arrived: Vec<(TopicName, u64)>, unread: &[(TopicName, u64)], without: Vec<TopicName>) -> Relay {
    let unread = unread.to_vec();
    Relay { node, lease: LEASE, arrived, unread, without, limit: 100, bytes: DEFAULT_BYTES }
}

pub(super) const START: OutboxPosition = OutboxPosition::START;

impl Topic {
    /// A run of the job `name`, which ends with an ack and these follow-ups.
    pub(super) async fn ends_with(&self, name: &str, follow_ups: FollowUpBatches) -> Claim {
        let claim = self.running("n", name).await;
        assert_eq!(self.settle("n", &claim, then(Ending::Ack, follow_ups)).await, Verdict::Done);
        claim
    }

    /// Asks for entries. The node says that these targets have got all.
    pub(super) async fn relay_of(&self, node: &str, arrived: &[&Self], without: &[&Self]) -> Relayed {
        let arrived: Vec<_> = arrived.iter().map(|topic| (*topic, u64::MAX)).collect();
        self.relay_after(node, &arrived, without).await
    }

    /// Asks for entries. The node says up to which position targets have got theirs.
    async fn relay_after(&self, node: &str, arrived: &[(&Self, u64)], without: &[&Self]) -> Relayed {
        let arrived = arrived.iter().map(|(topic, position)| (topic.key.topic.clone(), *position)).collect();
        let without = without.iter().map(|topic| topic.key.topic.clone()).collect();
        let request = asked(self.node(node), arrived, &[], without);
        self.store.relay(&self.key, &request).await.expect("relay is answered")
    }

    /// The entries that wait in the outbox.
    pub(super) async fn outbox(&self, arrived: &[&Self]) -> Vec<OutboxEntry> {
        self.relay_of("relay", arrived, &[]).await.entries
    }

    /// This topic gets an entry of the outbox of another one.
    pub(super) async fn gets(
        &self,
        from: &Self,
        entry: &OutboxEntry,
    ) -> Result<BatchAnswer<FollowUpOutcome>, StoreError> {
        let producer = self.store.producer(&self.key, &relay_of(&from.key.topic));
        producer.relay(entry.clone()).await
    }

    /// As [`gets`](Self::gets), of an entry that is new.
    pub(super) async fn gets_new(&self, from: &Self, entry: &OutboxEntry) -> Vec<FollowUpOutcome> {
        match self.gets(from, entry).await.expect("relay is answered") {
            BatchAnswer::Done(outcomes) => outcomes,
            BatchAnswer::Late => panic!("{entry:?} has arrived before"),
        }
    }
}

/// The outcome leaves the follow-ups in the outbox, and the target gets them with what they say (rule 18).
pub async fn follow_ups_arrive_after_their_outcome(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    t.ends_with("a", adds(&target, vec![with_payload("b", "payload"), delayed("c", secs(60))])).await;
    assert_eq!((t.state("a").await, target.state("b").await), (None, None));
    let seen = t.store.outbox(&t.key, None, 10).await.expect("outbox is answered");
    assert_eq!(seen.iter().map(|seen| (&seen.target, seen.waiting)).collect::<Vec<_>>(), [(&target.key.topic, 1)]);
    let written = t.now();
    t.advance(secs(10)).await;
    let entries = t.outbox(&[]).await;
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].after, seen[0].oldest), (START, entries[0].position.at));
    assert_eq!(target.gets_new(t, &entries[0]).await, [FollowUpOutcome::Done, FollowUpOutcome::Done]);
    assert_eq!(target.payload("b").await, "payload");
    assert_eq!(target.due("c").await, written.after(secs(60)), "a delay counts from the outcome");
    assert_eq!(t.outbox(&[&target]).await, []);
    assert_eq!(t.store.outbox(&t.key, None, 10).await.expect("outbox is answered"), []);
    target.close().await;
}

/// An export reads the whole outbox and what has arrived of it, and changes neither (rules 18, 27).
pub async fn outbox_is_read_page_by_page(t: &Topic) {
    let (near, far) = (t.beside("conformance", "near").await, t.beside("conformance", "target").await);
    for (name, target) in [("a", &far), ("b", &near), ("c", &far)] {
        t.ends_with(name, adds(target, vec![job(name)])).await;
    }
    let entries = t.outbox(&[]).await;
    let read = async |after, limit| t.store.follow_ups(&t.key, after, limit).await.expect("follow_ups is answered");
    assert_eq!(read(None, MAX_READ).await, entries);
    let after = |n: usize| Some((&entries[n].target, entries[n].position.at));
    assert_eq!(read(after(0), 1).await, entries[1..2]);
    assert_eq!(read(after(1), 2).await, entries[2..]);
    assert_eq!(read(after(2), 1).await, []);
    assert_eq!(
        entries.iter().map(|entry| &entry.target).collect::<Vec<_>>(),
        [&near.key.topic, &far.key.topic, &far.key.topic]
    );
    let arrived = async || far.store.arrived(&far.key, &t.key.topic).await.expect("arrived is answered");
    assert_eq!(arrived().await, START);
    far.gets_new(t, &entries[1]).await;
    assert_eq!(arrived().await, entries[1].position);
    far.gets(t, &entries[1]).await.expect("the target answers");
    assert_eq!(arrived().await, entries[1].position);
    assert_eq!(read(None, MAX_READ).await, entries, "a read removes nothing");
    assert!(t.store.follow_ups(&t.key, None, MAX_READ + 1).await.is_err());
    near.close().await;
    far.close().await;
}

/// Only an outcome that takes effect has follow-ups (rules 10, 18).
pub async fn stale_outcome_has_no_follow_ups(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.end("n", &claim, Change::Rollback).await;
    let change = then(Ending::Ack, adds(t, vec![job("b")]));
    assert_eq!(t.settle("n", &claim, change.clone()).await, Verdict::Stale);
    let claim = t.claim("n", "a").await;
    assert_eq!(t.settle("n", &claim, change.clone()).await, Verdict::Done);
    assert_eq!(t.settle("n", &claim, change).await, Verdict::Stale);
    assert_eq!(t.relay_of("n", &[], &[]).await.waiting, 1);
}

/// A job that becomes DEAD may have follow-ups, and so may a topic in itself (rule 18).
pub async fn dead_job_has_follow_ups(t: &Topic) {
    let claim = t.running("n", "a").await;
    assert_eq!(t.settle("n", &claim, then(Ending::Dead, adds(t, vec![job("b")]))).await, Verdict::Done);
    assert_eq!(t.state("a").await, Some(State::Dead));
    let entries = t.outbox(&[]).await;
    assert_eq!(t.gets_new(t, &entries[0]).await, [FollowUpOutcome::Done]);
    assert_eq!(t.state("b").await, Some(State::Delayed));
}

/// A run whose job was deleted has no follow-ups; one that was acked from outside has those of its ack (rules 13, 18).
pub async fn follow_ups_go_with_an_end_from_outside(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    let claim = t.running("n", "a").await;
    t.delete("a").await;
    t.settle("n", &claim, then(Ending::Ack, adds(&target, vec![job("b")]))).await;
    assert_eq!(t.outbox(&[]).await, []);
    for (ending, waiting) in [(Ending::Dead, 0), (Ending::Ack, 1)] {
        let claim = t.running("n", "a").await;
        t.ack_outside("a").await;
        t.settle("n", &claim, then(ending, adds(&target, vec![job("b")]))).await;
        assert_eq!(t.outbox(&[]).await.len(), waiting, "{ending:?}");
    }
    target.close().await;
}

/// An entry that comes again does nothing, whatever has become of its job, and however much later (rule 18).
pub async fn follow_up_that_comes_again_does_nothing(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    t.ends_with("a", adds(&target, vec![job("b")])).await;
    let entry = t.outbox(&[]).await.remove(0);
    target.gets_new(t, &entry).await;
    target.run("n", "b", Change::Ack).await;
    target.gets(t, &entry).await.expect("the target answers");
    assert_eq!(target.state("b").await, None);
    t.ends_with("a", adds(&target, vec![job("c")])).await;
    let next = t.outbox(&[&target]).await.remove(0);
    target.gets_new(t, &next).await;
    assert_eq!(target.gets(t, &entry).await.expect("the target answers"), BatchAnswer::Late);
    t.advance(secs(3 * 3_600)).await;
    target.add("d").await; // forgets numbers that were not used for an hour
    target.gets(t, &next).await.expect("the target answers");
    assert_eq!(target.gets(t, &entry).await.expect("the target answers"), BatchAnswer::Late);
    assert_eq!((target.state("b").await, target.counts().await.delayed), (None, 2));
    target.close().await;
}

/// A target of two follow-ups that wait in the outbox, and their entries.
async fn with_two_entries(t: &Topic) -> (Topic, Vec<OutboxEntry>) {
    let target = t.beside("conformance", "target").await;
    for name in ["a", "b"] {
        t.ends_with(name, adds(&target, vec![job(&format!("after-{name}"))])).await;
    }
    let entries = t.outbox(&[]).await;
    assert_eq!(entries.len(), 2);
    (target, entries)
}

/// An entry waits for the one before it, so that nothing is passed over after the store fell back (rule 18).
pub async fn follow_up_waits_for_the_one_before_it(t: &Topic) {
    let (target, entries) = with_two_entries(t).await;
    assert_eq!(entries[1].after, entries[0].position);
    let early = target.gets(t, &entries[1]).await.expect_err("the first is missing");
    assert!(early.nothing_done(), "{early}");
    for entry in &entries {
        target.gets_new(t, entry).await;
    }
    assert_eq!(target.counts().await.delayed, 2);
    target.close().await;
}

/// The store removes what the target has, and nothing that a node only says has arrived (rule 18).
pub async fn follow_up_that_has_not_arrived_stays_in_the_outbox(t: &Topic) {
    let (target, entries) = with_two_entries(t).await;
    assert_eq!(t.outbox(&[&target]).await, entries);
    target.gets_new(t, &entries[0]).await;
    assert_eq!(t.outbox(&[&target]).await, entries[1..]);
    target.close().await;
}

/// What a node cannot read it names: the store neither gives nor removes it, and the one after it follows the one before it. Once a node can read it, it
/// arrives (rule 18).
pub async fn follow_up_that_cannot_be_read_stays_in_the_outbox(t: &Topic) {
    let (target, entries) = with_two_entries(t).await;
    let unread = vec![(target.key.topic.clone(), entries[0].position.at)];
    let node = t.node("relay");
    let ask = |arrived, unread: &[_]| asked(node.clone(), arrived, unread, vec![]);
    let relay = async |request: &Relay| t.store.relay(&t.key, request).await.expect("relay is answered");
    assert_eq!(relay(&ask(vec![], &unread)).await.entries, entries[1..]);
    target.gets_new(t, &OutboxEntry { after: entries[0].after, ..entries[1].clone() }).await;
    let arrived = vec![(target.key.topic.clone(), entries[1].position.at)];
    let relayed = relay(&ask(arrived.clone(), &unread)).await;
    assert_eq!((relayed.entries, relayed.waiting), (Vec::new(), 1));
    assert_eq!(t.outbox(&[]).await, entries[..1]);
    // The target is not ahead of an entry that was passed over.
    t.ends_with("c", adds(&target, vec![job("after-c")])).await;
    let relayed = relay(&ask(arrived.clone(), &unread)).await;
    assert_eq!((&relayed.ahead[..], relayed.entries.len(), relayed.waiting), (&[][..], 1, 2));
    target.gets_new(t, &relayed.entries[0]).await;
    // A node that can read it finds it late. The target is set back to the one before it, and gets it.
    assert_eq!(target.gets(t, &entries[0]).await.expect("it answers"), BatchAnswer::Late);
    let arrived = vec![(target.key.topic.clone(), relayed.entries[0].position.at)];
    assert_eq!(relay(&ask(arrived.clone(), &unread)).await.waiting, 1);
    let relayed = relay(&ask(arrived, &[])).await;
    let Ahead { position, back_to, is_far, .. } = relayed.ahead[0].clone();
    assert_eq!((back_to, is_far, relayed.waiting), (entries[0].after, false, 1));
    let repair = Repair::SetBack { source: t.key.topic.clone(), from: position, to: back_to };
    assert!(target.store.repair(&target.key, &repair).await.expect("repair is answered"));
    assert_eq!(target.gets_new(t, &entries[0]).await, [FollowUpOutcome::Done]);
    target.close().await;
}

/// What the target has without having answered it to the node stays: a failover may take that back (rule 18).
pub async fn follow_up_that_was_not_answered_stays_in_the_outbox(t: &Topic) {
    let (target, entries) = with_two_entries(t).await;
    for entry in &entries {
        target.gets_new(t, entry).await;
    }
    assert_eq!(t.relay_after("relay", &[(&target, entries[0].position.at)], &[]).await.entries, entries[1..]);
    assert_eq!(t.relay_after("relay", &[(&target, entries[1].position.at)], &[]).await, Relayed::default());
    target.close().await;
}

/// Positions come from the clock, and grow even if it jumps back (rules 9, 18).
pub async fn positions_of_follow_ups_grow(t: &Topic) {
    t.ends_with("a", adds(t, vec![job("b")])).await;
    let written = t.micros();
    t.set_clock(written - 60_000_000).await;
    t.ends_with("c", adds(t, vec![job("d")])).await;
    let positions: Vec<_> = t.outbox(&[]).await.iter().map(|entry| entry.position.at).collect();
    assert_eq!(positions, [written, written + 1]);
    t.set_clock(written + 60_000_000).await;
    t.ends_with("e", adds(t, vec![job("f")])).await;
    assert_eq!(t.outbox(&[]).await[2].position, OutboxPosition::clock(written + 60_000_000));
}

/// An entry says when it was written, also where its position is later, and a delay counts from that (rules 4, 18).
pub async fn a_delay_counts_from_the_outcome_after_the_clock_fell_back(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    t.ends_with("a", adds(&target, vec![job("b")])).await;
    let ahead = t.micros();
    t.set_clock(ahead - 3_600_000_000).await;
    t.ends_with("c", adds(&target, vec![delayed("d", secs(60))])).await;
    let entries = t.outbox(&[]).await;
    let later = OutboxPosition { at: ahead + 1, written: ahead - 3_600_000_000 };
    assert_eq!((entries[0].position, entries[1].position), (OutboxPosition::clock(ahead), later));
    let read = t.store.follow_ups(&t.key, None, MAX_READ).await.expect("follow_ups is answered");
    assert_eq!(read, entries);
    for entry in &entries {
        target.gets_new(t, entry).await;
    }
    assert_eq!(target.due("d").await, t.now().after(secs(60)));
    target.close().await;
}

/// One node gets entries at a time; another one when that has got all, or does not ask again (rule 18).
pub async fn one_node_relays(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    t.ends_with("a", adds(&target, vec![job("b")])).await;
    let relayed = t.relay_of("n", &[], &[]).await;
    assert_eq!((relayed.busy, relayed.entries.len(), relayed.waiting), (None, 1, 1));
    let other = t.relay_of("m", &[], &[]).await;
    assert_eq!((other.busy, other.entries.len()), (Some(LEASE), 0));
    t.advance(LEASE).await;
    assert_eq!(t.relay_of("m", &[], &[]).await.entries, relayed.entries);
    assert_eq!(t.relay_of("n", &[], &[]).await.busy, Some(LEASE));
    target.gets_new(t, &relayed.entries[0]).await;
    assert_eq!(t.relay_of("m", &[&target], &[]).await, Relayed::default());
    assert_eq!(t.relay_of("n", &[], &[]).await, Relayed::default());
    target.close().await;
}

/// A node that relayed while the clock was ahead keeps no other from it once the clock has fallen back (rule 18).
pub async fn a_relay_ends_when_the_clock_falls_back(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    t.ends_with("a", adds(&target, vec![job("b")])).await;
    let now = t.micros();
    t.set_clock(now + 86_400_000_000).await;
    let relayed = t.relay_of("n", &[], &[]).await;
    t.set_clock(now).await;
    assert_eq!(t.relay_of("m", &[], &[]).await.entries, relayed.entries);
    assert_eq!(t.relay_of("n", &[], &[]).await.busy, Some(LEASE));
    target.close().await;
}

/// A target that takes none now holds up no other (rule 18).
pub async fn target_that_drains_holds_up_no_other(t: &Topic) {
    let (drained, open) = (t.beside("conformance", "drained").await, t.beside("conformance", "open").await);
    drained.set(drain("test")).await;
    t.ends_with("a", adds(&drained, vec![job("b")])).await;
    t.ends_with("c", adds(&open, vec![job("d")])).await;
    let entries = t.outbox(&[]).await;
    assert_eq!(entries.len(), 2);
    let refused = drained.gets(t, &entries[0]).await.expect_err("it drains");
    assert!(matches!(refused, StoreError::Draining { .. }), "{refused}");
    let others = t.relay_of("relay", &[], &[&drained]).await;
    assert_eq!((&others.entries[..], others.waiting), (&entries[1..], 2));
    open.gets_new(t, &entries[1]).await;
    drained.set(TopicChange::Undrain).await;
    assert_eq!(t.outbox(&[&open]).await, entries[..1]);
    drained.gets_new(t, &entries[0]).await;
    assert_eq!((drained.state("b").await, open.state("d").await), (Some(State::Delayed), Some(State::Delayed)));
    drained.close().await;
    open.close().await;
}

/// The follow-ups of an outcome wait for room, and come in whole then (rules 18, 29).
pub async fn follow_ups_wait_for_room(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    target.set(limit_to(Limit::MaxWaiting(1), "test")).await;
    target.add("first").await;
    t.ends_with("a", adds(&target, vec![job("b"), job("c")])).await;
    let entry = t.outbox(&[]).await.remove(0);
    let full = target.gets(t, &entry).await.expect_err("it is full");
    assert!(matches!(full, StoreError::TopicFull(full) if (full.waiting, full.limit) == (1, 1)));
    target.delete("first").await;
    assert_eq!(target.gets_new(t, &entry).await, [FollowUpOutcome::Done, FollowUpOutcome::Done]);
    target.close().await;
}

/// A known id refuses its follow-up for good, and the others of the entry come in (rule 18).
pub async fn follow_up_with_a_known_id_is_refused(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    target.add("b").await;
    let kept = NewJob { on_duplicate: OnDuplicate::Keep, ..job("b") };
    t.ends_with("a", adds(&target, vec![job("b"), job("c")])).await;
    t.ends_with("a", adds(&target, vec![kept])).await;
    let entries = t.outbox(&[]).await;
    let outcomes = target.gets_new(t, &entries[0]).await;
    assert!(
        matches!(&outcomes[0], FollowUpOutcome::Refused { id: refused, cause } if *refused == id("b") && cause.contains("exists"))
    );
    assert_eq!(outcomes[1], FollowUpOutcome::Done);
    assert_eq!(target.gets_new(t, &entries[1]).await, [FollowUpOutcome::Done]);
    assert_eq!(t.outbox(&[&target]).await, []);
    target.close().await;
}

/// A follow-up may delete a job; one that is not there is no refusal (rule 18).
pub async fn follow_up_deletes_a_job(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    target.add_later("b", secs(60)).await;
    let mut follow_ups = FollowUpBatches::default();
    follow_ups.push(target.key.topic.clone(), &FollowUpBatch::Delete(vec![id("b"), id("unknown")]));
    follow_ups.push(target.key.topic.clone(), &FollowUpBatch::Add(vec![job("b")]));
    t.ends_with("a", follow_ups).await;
    let entries = t.outbox(&[]).await;
    assert_eq!(target.gets_new(t, &entries[0]).await, [FollowUpOutcome::Done, FollowUpOutcome::Done]);
    assert_eq!(target.state("b").await, None);
    assert_eq!(target.gets_new(t, &entries[1]).await, [FollowUpOutcome::Done]);
    target.gets(t, &entries[0]).await.expect("the target answers");
    assert_eq!(target.state("b").await, Some(State::Delayed), "the delete that comes again does nothing");
    target.close().await;
}

/// An outcome has so many follow-ups and no more (rule 5).
pub async fn follow_ups_over_the_limit_change_nothing(t: &Topic) {
    let claim = t.running("n", "a").await;
    let jobs = |count: usize| (0..count).map(|n| job(&format!("{n:04}"))).collect();
    let request = t.settle_of("n", &claim, then(Ending::Ack, adds(t, jobs(MAX_FOLLOW_UPS + 1))));
    assert!(matches!(t.link("n").step(request).await, Err(StoreError::OverLimit { .. })));
    assert_eq!(t.state("a").await, Some(State::Running));
    let large = adds(t, vec![with_payload("b", &"x".repeat(DEFAULT_BYTES))]);
    let request = t.settle_of("n", &claim, then(Ending::Ack, large));
    assert!(matches!(t.link("n").step(request).await, Err(StoreError::OverLimit { .. })));
    assert_eq!(t.settle("n", &claim, then(Ending::Ack, adds(t, jobs(MAX_FOLLOW_UPS)))).await, Verdict::Done);
    let entry = t.outbox(&[]).await.remove(0);
    assert_eq!(t.gets_new(t, &entry).await.len(), MAX_FOLLOW_UPS);
    t.advance(ms(1)).await;
    assert_eq!(t.counts().await.ready, MAX_FOLLOW_UPS);
}
