//! The task that sends what a buffer has, topic by topic and in order, and learns the store's clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::Buffer;
use super::entries::{Given, Read};
use crate::environment::Environment;
use crate::job::{JobId, TopicKey};
use crate::provider::RefusedJob;
use crate::store::{
    BatchAnswer, FollowUpBatch, FollowUpOutcome, OutboxEntry, OutboxPosition, StoreError, Waits, in_call_timeout,
    relay_of,
};
use crate::time::Timestamp;

/// How often the store's clock is read while the store answers.
const CLOCK_EVERY: Duration = Duration::from_secs(60);

/// How long the sender rests at first after an error, and at most.
const FIRST_REST: Duration = Duration::from_millis(250);
const MAX_REST: Duration = Duration::from_secs(1);

/// Sends until the buffer is dropped.
pub(super) async fn run(buffer: Weak<Buffer>) {
    let (mut failures, mut waits) = (0, BTreeMap::new());
    loop {
        let Some(strong) = buffer.upgrade() else { return };
        let (changed, environment) = (Arc::clone(&strong.changed), strong.environment.clone());
        let is_done = strong.send_all(&mut waits).await;
        let pause = match is_done {
            true => CLOCK_EVERY,
            false => environment.growing_pause(FIRST_REST, MAX_REST, failures, 2),
        };
        failures = if is_done { 0 } else { failures.saturating_add(1) };
        drop(strong);
        wait(&environment, pause, is_done.then_some(&*changed)).await;
    }
}

/// Waits for this long, or until something has changed.
async fn wait(environment: &Environment, pause: Duration, changed: Option<&Notify>) {
    let end = environment.sleep_until(environment.now() + pause);
    match changed {
        Some(changed) => tokio::select! {
            biased;
            () = changed.notified() => {}
            () = end => {}
        },
        None => end.await,
    }
}

impl Buffer {
    /// Sends what waits, and reads the store's clock. Returns whether nothing is left to do.
    async fn send_all(&self, waits: &mut BTreeMap<TopicKey, Option<Waits>>) -> bool {
        let topics = self.state().topics();
        let mut all_sent = true;
        for topic in topics {
            let sent = self.send_topic(&topic).await;
            all_sent &= sent.is_ok();
            let waits = waits.entry(topic.clone()).or_default();
            if let Err(error) = sent {
                if let Some(since) = Waits::to_say(waits, &self.environment) {
                    tracing::warn!(topic = %topic.topic, %since, %error, "the adds for this topic wait in the buffer; dq tries again");
                }
                if error.is_outage() {
                    self.state().goes_away(self.environment.now());
                    return false;
                }
            } else if let Some(since) = Waits::over(waits) {
                tracing::info!(topic = %topic.topic, %since, "the topic has the adds from the buffer");
            }
        }
        let is_read = self.read_clock().await.is_ok();
        if is_read && let Some(away) = self.state().comes_back(self.environment.now()) {
            let away = humantime::format_duration(Duration::from_secs(away.as_secs())).to_string();
            tracing::info!(
                store = self.store.url(),
                away,
                "the store answers again, and has what waited in the directory"
            );
        }
        all_sent && (is_read || self.state().known().is_none())
    }

    /// Sends the entries of a topic until there are none.
    async fn send_topic(&self, topic: &TopicKey) -> Result<(), StoreError> {
        let producer = self.store.producer(topic, &relay_of(&self.entries.name));
        loop {
            let read = self.entries.first(topic).await?;
            if read.is_empty() {
                return Ok(());
            }
            let wall = self.environment.wall();
            let is_old = |read: &Read| wall.since(read.written) > self.bounds.age;
            let (old, new): (Vec<_>, Vec<_>) = read.into_iter().partition(is_old);
            self.drop_old(topic, &old).await?;
            if new.is_empty() {
                continue;
            }
            let mut sent = Vec::with_capacity(new.len());
            for (Read { place, size, .. }, entry) in self.numbered(topic, new).await? {
                sent.push((place, size, producer.relay(entry)));
            }
            let (mut gone, mut failed) = (Vec::new(), None);
            for (place, size, answer) in sent {
                match in_call_timeout(&self.environment, self.bounds.call_timeout, "relay", answer).await {
                    Ok(answer) => {
                        self.note_outcomes(topic, answer);
                        self.state().sent(size.jobs);
                        gone.push(place);
                    }
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            self.remove(topic, &gone).await?;
            match failed {
                // The store had to be asked twice for one of them, and refused what was sent behind it.
                Some(error) if error.is_out_of_order() && !gone.is_empty() => {}
                Some(error) => return Err(error),
                None => {}
            }
        }
    }

    /// The entries under their numbers. Those that may have been sent before keep theirs, unless the store has a later one, which is none of this buffer.
    async fn numbered(&self, topic: &TopicKey, mut new: Vec<Read>) -> Result<Vec<(Read, OutboxEntry)>, StoreError> {
        let (environment, timeout) = (&self.environment, self.bounds.call_timeout);
        let arrived = self.store.arrived(topic, &self.entries.name);
        let arrived = in_call_timeout(environment, timeout, "arrived", arrived).await?;
        let clock = self.clock_at(topic).await?;
        let last_place = self.state().last;
        let given = self.entries.numbers(topic, last_place).await?;
        let is_given = |read: &Read, given: &Given| read.place <= given.place;
        let again =
            given.filter(|given| arrived.at <= given.number && new.first().is_some_and(|read| is_given(read, given)));
        let wall = environment.wall();
        let given = match again {
            Some(given) => {
                new.retain(|read| is_given(read, &given));
                given
            }
            None => {
                let before = given.map_or(0, |given| given.number).max(arrived.at);
                let first = before.saturating_add(1).max(clock.as_millis().saturating_mul(1_000));
                let last = first.saturating_add(new.len() as u64 - 1);
                let place = new.last().map_or(0, |read| read.place);
                let ahead = clock.as_millis() as i64 - wall.as_millis() as i64;
                let given = Given { place, number: last, ahead };
                self.entries.keep_numbers(topic, given).await?;
                given
            }
        };
        // An entry that overtakes the one before it is refused. The first one follows what the store has.
        let first = given.number.saturating_sub(new.len() as u64 - 1);
        let mut after = OutboxPosition::START;
        let numbered = new.into_iter().zip(first..).map(|(read, at)| {
            let position = OutboxPosition { at, written: given.written(&read) };
            let entry = read.entry(topic, position, after);
            after = position;
            (read, entry)
        });
        Ok(numbered.collect())
    }

    async fn drop_old(&self, topic: &TopicKey, old: &[Read]) -> Result<(), StoreError> {
        for read in old {
            if let FollowUpBatch::Add(jobs) = read.batch.batch()? {
                for job in jobs {
                    let cause = "it waited in the buffer for longer than `buffer_age`".to_owned();
                    self.refuse(topic, &job.id, cause);
                }
            }
        }
        let gone: Vec<_> = old.iter().map(|read| read.place).collect();
        self.remove(topic, &gone).await
    }

    async fn remove(&self, topic: &TopicKey, gone: &[u64]) -> Result<(), StoreError> {
        if gone.is_empty() {
            return Ok(());
        }
        let last = self.state().last;
        self.entries.remove(topic, gone, last).await?;
        self.state().forget(topic, gone);
        Ok(())
    }

    fn note_outcomes(&self, topic: &TopicKey, answer: BatchAnswer<FollowUpOutcome>) {
        let BatchAnswer::Done(outcomes) = answer else { return };
        for outcome in outcomes {
            if let FollowUpOutcome::Refused { id, cause } = outcome {
                self.refuse(topic, &id, cause);
            }
        }
    }

    fn refuse(&self, topic: &TopicKey, id: &JobId, cause: String) {
        tracing::warn!(topic = %topic.topic, job.id = %id, cause, "an add from the buffer is refused for good: it is passed over");
        self.state().refuse(RefusedJob::new(&topic.topic, id, cause, self.environment.wall()));
    }

    /// Reads the store's clock.
    async fn read_clock(&self) -> Result<(), StoreError> {
        let Some(topic) = self.state().known() else { return Ok(()) };
        let clock = self.clock_at(&topic).await?;
        self.state().clock = Some((clock.as_millis().saturating_mul(1_000), self.environment.now()));
        Ok(())
    }

    /// The clock of the server that has the topic.
    async fn clock_at(&self, topic: &TopicKey) -> Result<Timestamp, StoreError> {
        let counts = in_call_timeout(&self.environment, self.bounds.call_timeout, "counts", self.store.counts(topic));
        Ok(counts.await?.clock)
    }
}
