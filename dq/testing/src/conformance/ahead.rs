//! Targets that are ahead: a source fell back, and its clock too, or an import left a position (rule 18).

use super::follow_ups::{START, adds};
use super::producer::job;
use super::topic::{Topic, id, ms, secs};
use dq::job::State;
use dq::store::{
    Ahead, BatchAnswer, FollowUpBatch, FollowUpBatches, FollowUpOutcome, MAX_AHEAD, OutboxEntry, OutboxPosition,
    Packed, Relayed, Repair, StoreError,
};

/// A batch that does nothing.
fn nothing(target: &Topic) -> Packed {
    let mut nothing = FollowUpBatches::default();
    nothing.push(target.key.topic.clone(), &FollowUpBatch::Delete(vec![id("unknown")]));
    nothing.parts()[0].1.clone()
}

impl Topic {
    /// Sets the position of a source in this topic back. Returns whether it was this one.
    async fn is_set_back(&self, source: &Self, from: OutboxPosition, to: OutboxPosition) -> bool {
        let repair = Repair::SetBack { source: source.key.topic.clone(), from, to };
        self.store.repair(&self.key, &repair).await.expect("repair is answered")
    }
}

/// A target with a position at which its source has no entry answers what waits as late. So nothing is removed; the target is set back, once, and then
/// gets what waits (rule 18).
pub async fn a_target_that_is_ahead_is_set_back_and_loses_nothing(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    t.ends_with("a", adds(&target, vec![job("arrived")])).await;
    let first = t.outbox(&[]).await.remove(0);
    target.gets_new(t, &first).await;
    assert_eq!(t.outbox(&[&target]).await, []);
    // As an import leaves it beside a clock that was ahead by an hour.
    let ahead = OutboxPosition::clock(t.micros() + 3_600_000_000);
    target.gets_new(t, &OutboxEntry { position: ahead, after: START, ..first.clone() }).await;
    t.advance(ms(1)).await;
    t.ends_with("c", adds(&target, vec![job("b")])).await;
    t.ends_with("d", adds(&target, vec![job("e")])).await;
    let entries = t.outbox(&[]).await;
    assert_eq!(target.gets(t, &entries[0]).await.expect("it answers"), BatchAnswer::Late);
    let relayed = t.relay_of("relay", &[&target], &[]).await;
    let (name, back_to) = (target.key.topic.clone(), first.position);
    assert_eq!(relayed.ahead, [Ahead { target: name, position: ahead, back_to, is_far: false }]);
    assert_eq!((relayed.entries, relayed.waiting), (Vec::new(), 2), "nothing is removed, and nothing is sent");
    let seen = t.store.outbox(&t.key, None, 10).await.expect("outbox is answered");
    assert_eq!(seen[0].before, back_to);
    let other = OutboxPosition::clock(ahead.at - 1);
    assert!(!target.is_set_back(t, other, back_to).await, "it has another position");
    assert!(target.is_set_back(t, ahead, back_to).await);
    assert!(!target.is_set_back(t, ahead, back_to).await, "it is done once");
    assert_eq!(target.store.arrived(&target.key, &t.key.topic).await.expect("arrived is answered"), back_to);
    assert_eq!(target.gets(t, &first).await.expect("it answers"), BatchAnswer::Late);
    for entry in &entries {
        assert_eq!(target.gets_new(t, entry).await, [FollowUpOutcome::Done]);
    }
    assert_eq!(t.relay_of("relay", &[&target], &[]).await, Relayed::default());
    target.close().await;
}

/// A target with a position between two entries takes the later one not before the earlier one, which is late there (rule 18).
pub async fn an_entry_is_executed_right_behind_the_one_before_it(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    t.ends_with("a", adds(&target, vec![job("b")])).await;
    t.advance(secs(2)).await;
    t.ends_with("c", adds(&target, vec![job("d")])).await;
    let entries = t.outbox(&[]).await;
    let between = OutboxPosition::clock(entries[0].position.at + 1_000_000);
    let batch = nothing(&target);
    target.gets_new(t, &OutboxEntry { position: between, after: START, batch, ..entries[0].clone() }).await;
    assert_eq!(target.gets(t, &entries[0]).await.expect("it answers"), BatchAnswer::Late);
    let refused = target.gets(t, &entries[1]).await.expect_err("the one before it has not arrived");
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
    let relayed = t.relay_of("relay", &[&target], &[]).await;
    assert_eq!((relayed.ahead[0].position, relayed.ahead[0].back_to, relayed.waiting), (between, START, 2));
    target.close().await;
}

/// A source that fell back, and its clock too, may give a place a second time. When an entry was written tells it from the one that had the place before: the
/// target has not had it, and takes nothing behind it (rule 18).
pub async fn an_entry_at_a_place_that_another_one_had_is_not_taken_for_that(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    t.ends_with("a", adds(&target, vec![job("arrived")])).await;
    let first = t.outbox(&[]).await.remove(0);
    target.gets_new(t, &first).await;
    assert_eq!(t.outbox(&[&target]).await, []);
    t.set_clock(t.micros() - 60_000_000).await;
    t.ends_with("b", adds(&target, vec![job("new")])).await;
    t.ends_with("c", adds(&target, vec![job("later")])).await;
    let entries = t.outbox(&[]).await;
    // What the source has lost was written a second before, at the same place.
    let OutboxPosition { at, written } = entries[0].position;
    let lost = OutboxPosition { at, written: written - 1_000_000 };
    let other = OutboxEntry { position: lost, batch: nothing(&target), ..entries[0].clone() };
    target.gets_new(t, &other).await;
    assert_eq!(target.store.arrived(&target.key, &t.key.topic).await.expect("arrived is answered"), lost);
    assert!(matches!(target.gets(t, &other).await.expect("it answers"), BatchAnswer::Done(_)));
    assert_eq!(target.gets(t, &entries[0]).await.expect("it answers"), BatchAnswer::Late);
    let refused = target.gets(t, &entries[1]).await.expect_err("it does not follow that one");
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
    let relayed = t.relay_of("relay", &[&target], &[]).await;
    let (name, back_to) = (target.key.topic.clone(), first.position);
    assert_eq!(relayed.ahead, [Ahead { target: name, position: lost, back_to, is_far: false }]);
    assert_eq!((relayed.entries, relayed.waiting), (Vec::new(), 2), "nothing is removed, and nothing is sent");
    assert!(!target.is_set_back(t, entries[0].position, back_to).await, "it is another position");
    assert!(target.is_set_back(t, lost, back_to).await);
    for entry in &entries {
        assert_eq!(target.gets_new(t, entry).await, [FollowUpOutcome::Done]);
    }
    assert_eq!(t.relay_of("relay", &[&target], &[]).await, Relayed::default());
    assert_eq!((target.state("new").await, target.state("later").await), (Some(State::Delayed), Some(State::Delayed)));
    target.close().await;
}

/// A position that is more than a day ahead of the clock comes from no clock, and is left to a person (rule 18).
pub async fn a_target_that_is_far_ahead_is_left_to_a_person(t: &Topic) {
    let (target, other) = (t.beside("conformance", "target").await, t.beside("conformance", "other").await);
    t.ends_with("a", adds(&target, vec![job("b")])).await;
    t.ends_with("c", adds(&other, vec![job("d")])).await;
    let entries = t.outbox(&[]).await;
    let [for_other, for_target] = &entries[..] else { panic!("{entries:?}") };
    let ahead = OutboxPosition::clock(t.micros() + MAX_AHEAD);
    target.gets_new(t, &OutboxEntry { position: ahead, after: START, ..for_target.clone() }).await;
    for is_far in [false, true] {
        let relayed = t.relay_of("relay", &[&target], &[]).await;
        let name = target.key.topic.clone();
        assert_eq!(relayed.ahead, [Ahead { target: name, position: ahead, back_to: START, is_far }]);
        assert_eq!((&relayed.entries[..], relayed.waiting), (&[for_other.clone()][..], 2), "others continue");
        t.set_clock(t.micros() - 1_000).await;
    }
    target.close().await;
    other.close().await;
}
