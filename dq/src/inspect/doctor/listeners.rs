//! Who listens to a topic and who calls it, and the clock of the store.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::Doctor;
use super::finding::{Finding, Remedy};
use crate::inspect::topic::TopicSummary;
use crate::job::TopicName;
use crate::provider::{CallError, TopicProvider};
use crate::store::{FindingCode, MAX_AHEAD, MAX_NODES, OutboxSeen, Repair, StoreError, TopicOverview};
use crate::time::Timestamp;

/// How far the clock of the store may be from that of this machine.
const MAX_DIFFERENCE: Duration = Duration::from_secs(1);

/// How long follow-ups may wait.
pub(super) const LONG_WAIT: Duration = Duration::from_secs(60);

/// How many topics with waiting follow-ups are named at most.
const MAX_TARGETS: usize = 100;

/// How many producers a topic usually has at most. A topic remembers answers for each of them for an hour.
const DEFAULT_PRODUCERS: usize = 1_000;

impl Doctor {
    /// Compares the clocks, by a topic that need not exist.
    pub(super) async fn compare_with_store(&mut self) -> Result<(), CallError> {
        let any = self.provider.topic("all")?;
        self.overview_of(&any, 0).await.map(drop)
    }

    /// Looks whether the topic has a listener where it needs one, and which versions of dq listen.
    pub(super) async fn examine_listeners(&mut self, topic: &TopicProvider) -> Result<(), CallError> {
        let seen = TopicSummary::new(topic.name().clone(), self.overview_of(topic, MAX_NODES).await?);
        if seen.needs_listener() && seen.state.pause.is_none() {
            let text = format!("{} jobs are due, and no node listens", seen.ready);
            self.found(Finding::new(FindingCode::NoListener, Some(topic.name().clone()), text));
        }
        let lives = seen.nodes.iter().chain(&seen.watchers).filter(|node| node.until > seen.store_time);
        let versions: BTreeSet<_> = lives.filter_map(|node| node.version.as_deref()).collect();
        if versions.len() > 1 {
            let versions: Vec<_> = versions.into_iter().collect();
            let text = format!("nodes with several versions of dq listen: {}", versions.join(", "));
            self.found(Finding::new(FindingCode::SeveralVersions, Some(topic.name().clone()), text));
        }
        Ok(())
    }

    /// Looks whether follow-ups have waited for long. Returns for which topics some wait.
    pub(super) async fn examine_outbox(&mut self, topic: &TopicProvider) -> Result<VecDeque<OutboxSeen>, CallError> {
        let waits = topic.outbox(MAX_TARGETS).await?;
        for seen in &waits {
            let waited = self.provider.wall().since(Timestamp::floor_micros(seen.oldest));
            if waited >= LONG_WAIT {
                let (waiting, target) = (seen.waiting, &seen.target);
                let text = format!(
                    "follow-ups of {waiting} runs wait for topic {target}, the first for {}",
                    in_seconds(waited)
                );
                let finding = Finding::new(FindingCode::FollowUpsWait, Some(topic.name().clone()), text);
                self.found(Finding { id: Some(target.to_string()), ..finding });
            }
        }
        Ok(waits.into())
    }

    /// Looks whether a topic for which follow-ups wait is so far ahead that no node sets it back (rule 18).
    pub(super) async fn examine_target(&mut self, from: &TopicProvider, seen: &OutboxSeen) -> Result<(), CallError> {
        // What is no name of a topic any more takes nothing.
        let (source, Ok(target)) = (from.name(), self.provider.topic(seen.target.as_str())) else { return Ok(()) };
        let arrived = match target.arrived(source.clone()).await {
            // The names of all keys have shown that already, and it is no fault of this topic.
            Err(error) if matches!(error.of_store(), Some(StoreError::WrongType { .. })) => return Ok(()),
            arrived => arrived?,
        };
        let clock = from.counts().await?.clock.as_millis().saturating_mul(1_000);
        if arrived.at <= seen.before.at || arrived.at <= clock.saturating_add(MAX_AHEAD) {
            return Ok(());
        }
        // What has arrived since the outbox was read is gone by now.
        let waits = from.outbox(MAX_TARGETS).await?;
        let Some(seen) = waits.iter().find(|now| now.target == seen.target && now.before.at < arrived.at) else {
            return Ok(());
        };
        let text = format!(
            "follow-ups of {} runs of topic {source} wait, because the topic has their position {}, which is more than a day ahead of the clock",
            seen.waiting, arrived.at
        );
        let set_back = Repair::SetBack { source: source.clone(), from: arrived, to: seen.before };
        let finding = Finding::new(FindingCode::TargetAhead, Some(seen.target.clone()), text);
        self.found(Finding { id: Some(source.to_string()), remedy: Some(Remedy::Step(set_back)), ..finding });
        Ok(())
    }

    /// Looks how many producers the topic has, once the names of all keys were read.
    pub(super) fn count_producers(&mut self, topic: &TopicName) {
        let producers = self.producers.remove(topic).unwrap_or_default();
        if producers > DEFAULT_PRODUCERS {
            let text = format!(
                "{producers} producers have called the topic within the last hour, and it remembers answers for each"
            );
            self.found(Finding::new(FindingCode::ManyProducers, Some(topic.clone()), text));
        }
    }

    /// Reads a topic as a whole. The first answer also tells the clock of the store.
    async fn overview_of(&mut self, topic: &TopicProvider, nodes: usize) -> Result<TopicOverview, CallError> {
        let before = self.provider.wall();
        let seen = topic.overview(nodes).await?;
        if !self.has_compared_clocks {
            self.has_compared_clocks = true;
            self.compare_clocks(before, seen.counts.clock);
        }
        Ok(seen)
    }

    /// The store read its clock between the time `before` and now.
    fn compare_clocks(&mut self, before: Timestamp, clock: Timestamp) {
        let (behind, ahead) = (before.since(clock), clock.since(self.provider.wall()));
        if behind.max(ahead) < MAX_DIFFERENCE {
            return;
        }
        let text = match behind > ahead {
            true => format!("the clock of the store is {} behind that of this machine", in_seconds(behind)),
            false => format!("the clock of the store is {} ahead of that of this machine", in_seconds(ahead)),
        };
        self.found(Finding::new(FindingCode::ClockDifference, None, text));
    }
}

fn in_seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
