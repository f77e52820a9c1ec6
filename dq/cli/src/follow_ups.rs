//! An export has the follow-ups that have not arrived as lines behind the jobs, and an import brings them to their topics.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use dq::job::{AppName, TopicKey, TopicName};
use dq::store::{
    BatchAnswer, FollowUpOutcome, MAX_READ, OutboxEntry, OutboxPosition, Packed, Producer, Store, relay_of,
};
use serde::{Deserialize, Serialize};

use crate::ahead::Ahead;
use crate::ask::Repeating;
use crate::failure::Failure;
use crate::job_line::decoded;
use crate::screen::many;

/// Follow-ups of one outcome for one topic that have not arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowUpLine {
    /// The topic of the run that wrote them.
    pub topic: TopicName,
    /// The topic that they are for.
    pub target: TopicName,
    /// Their place among the follow-ups of `topic`: when they were written, in µs, or later.
    pub position: u64,
    /// The place of those in front of them for the same target; 0: there are none.
    pub after: u64,
    /// When they were written, in µs, if that is not their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<u64>,
    /// When those in front of them were written, in µs, if that is not their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_written: Option<u64>,
    /// What they add or delete, as the store keeps it.
    pub batch_base64: String,
}

impl FollowUpLine {
    fn of(topic: &TopicName, entry: OutboxEntry) -> Self {
        let batch_base64 = BASE64_STANDARD.encode(entry.batch.as_bytes());
        let OutboxEntry { target, position, after, .. } = entry;
        let [written, after_written] = [position, after].map(|of| Some(of.written).filter(|at| *at != of.at));
        let (topic, position, after) = (topic.clone(), position.at, after.at);
        Self { topic, target, position, after, written, after_written, batch_base64 }
    }

    /// The topic that wrote them, and the entry of its outbox.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub(crate) fn into_entry(self, ahead: &mut Ahead) -> Result<(TopicName, OutboxEntry), String> {
        let batch = Packed::from_bytes(decoded("batch_base64", &self.batch_base64)?);
        let of = |at, written: Option<u64>| OutboxPosition { at, written: written.unwrap_or(at) };
        let (position, after) = (of(self.position, self.written), of(self.after, self.after_written));
        let entry = OutboxEntry { target: self.target, position, after, batch };
        entry.batch().map_err(|error| error.to_string())?;
        let entry = ahead.entry(&self.topic, entry)?;
        Ok((self.topic, entry))
    }
}

/// How many follow-ups wait in the outboxes of an app, and up to which position each target has them.
#[derive(Debug, Default)]
pub(crate) struct Outboxes {
    /// By source and target.
    of: BTreeMap<(TopicName, TopicName), Waiting>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    entries: usize,
    /// The position of the entry before the first one.
    before: OutboxPosition,
    arrived: OutboxPosition,
}

impl Waiting {
    /// Up to which position these entries have arrived. A position at which there is none says nothing (rule 18).
    async fn arrived_of(
        self,
        store: &dyn Store,
        source: &TopicKey,
        target: &TopicName,
        repeating: Repeating,
    ) -> Result<u64, Failure> {
        if self.arrived.at <= self.before.at {
            return Ok(self.arrived.at);
        }
        let what = format!("cannot read the outbox of topic `{}`", source.topic);
        let behind = Some((target, self.arrived.at - 1));
        let at = repeating.ask(&what, |_| store.follow_ups(source, behind, 1)).await?;
        let is_known = at.first().is_some_and(|entry| entry.target == *target && entry.position == self.arrived);
        Ok(if is_known { self.arrived.at } else { 0 })
    }
}

impl Outboxes {
    /// Notes what waits in the outbox of a topic.
    pub(crate) async fn look(
        &mut self,
        store: &dyn Store,
        key: &TopicKey,
        repeating: Repeating,
    ) -> Result<(), Failure> {
        const AT_ONCE: usize = 1_000;
        let what = format!("cannot read the outbox of topic `{}`", key.topic);
        let mut after = None;
        loop {
            let page = repeating.ask(&what, |_| store.outbox(key, after.as_ref(), AT_ONCE)).await?;
            let is_last = page.len() < AT_ONCE;
            after = page.last().map(|seen| seen.target.clone());
            for seen in page {
                let waiting = Waiting { entries: seen.waiting, before: seen.before, arrived: OutboxPosition::START };
                self.of.insert((key.topic.clone(), seen.target), waiting);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Notes what has arrived in the topics of a store.
    pub(crate) async fn compare(
        &mut self,
        store: &dyn Store,
        app: &AppName,
        repeating: Repeating,
    ) -> Result<(), Failure> {
        for ((source, target), waiting) in &mut self.of {
            let key = TopicKey { app: app.clone(), topic: target.clone() };
            let what = format!("cannot read what has arrived in topic `{target}`");
            let arrived = repeating.ask(&what, |_| store.arrived(&key, source)).await?;
            waiting.arrived = waiting.arrived.max(arrived);
        }
        Ok(())
    }

    /// Reads what has not arrived of the outboxes of a store. The first line for a target follows none: another store has nothing of them.
    /// Returns what has changed since [`look`](Self::look), in words.
    pub(crate) async fn read(
        &self,
        store: &dyn Store,
        app: &AppName,
        repeating: Repeating,
        mut write: impl FnMut(FollowUpLine) -> Result<(), Failure>,
    ) -> Result<Option<String>, Failure> {
        let mut changed = None;
        for ((source, target), waiting) in &self.of {
            let key = TopicKey { app: app.clone(), topic: source.clone() };
            let what = format!("cannot read the outbox of topic `{source}`");
            let (mut at, mut read, mut is_first) = (0, 0, true);
            let arrived = waiting.arrived_of(store, &key, target, repeating).await?;
            loop {
                let ask = |tries: u32| {
                    let most = MAX_READ.checked_shr(tries).unwrap_or_default().max(1);
                    store.follow_ups(&key, Some((target, at)), most)
                };
                let entries = repeating.ask(&what, ask).await?;
                let of_target: Vec<_> = entries.into_iter().filter(|entry| entry.target == *target).collect();
                let Some(last) = of_target.last() else { break };
                (at, read) = (last.position.at, read + of_target.len());
                for entry in of_target.into_iter().filter(|entry| entry.position.at > arrived) {
                    let after = if std::mem::take(&mut is_first) { OutboxPosition::START } else { entry.after };
                    write(FollowUpLine::of(source, OutboxEntry { after, ..entry }))?;
                }
            }
            if read != waiting.entries {
                let counts = format!("{} follow-ups for `{target}` before, {read} read", waiting.entries);
                changed = Some(format!("the outbox of topic `{source}` changed while it was read ({counts})"));
            }
        }
        Ok(changed)
    }
}

/// Lines of one source and target that the target has answered as late.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Late {
    pub(crate) lines: u64,
    /// The position that the target has.
    pub(crate) position: OutboxPosition,
    /// Whether one of the lines has this position: then an earlier try of the import has brought them. Otherwise the source has it from elsewhere.
    pub(crate) is_of_import: bool,
}

impl Late {
    /// What to say of them.
    pub(crate) fn text(&self, source: &TopicName, target: &TopicName) -> String {
        let (outcomes, position) = (many(self.lines as usize, "outcome"), self.position.at);
        format!(
            "the follow-ups of {outcomes} of topic `{source}` did nothing: topic `{target}` has had later ones from it, up to position {position}. If no \
             earlier import brought them, import them into an app whose topic `{source}` has not run"
        )
    }
}

/// Brings follow-ups to their topic. Returns those that it refuses; `None`: they are late.
pub(crate) async fn bring(
    store: &dyn Store,
    app: &AppName,
    source: &TopicName,
    entry: &OutboxEntry,
    repeating: Repeating,
) -> Result<Option<Vec<String>>, Failure> {
    let key = TopicKey { app: app.clone(), topic: entry.target.clone() };
    let what = format!("cannot bring the follow-ups of topic `{source}` to topic `{}`", entry.target);
    let relay = |to: &dyn Producer| to.relay(entry.clone());
    let answer = repeating.send(&what, store, &key, &relay_of(source), relay).await?;
    let BatchAnswer::Done(outcomes) = answer else { return Ok(None) };
    let refused = outcomes.into_iter().filter_map(|outcome| match outcome {
        FollowUpOutcome::Done => None,
        FollowUpOutcome::Refused { id, cause } => Some(format!("job `{id}` of topic `{}`: {cause}", entry.target)),
    });
    Ok(Some(refused.collect()))
}
