//! Changes of the state of the topic under test, and what it answers about it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::producer::answered;
use super::topic::Topic;
use dq::store::{Due, Limit, SetTopic, TopicChange, TopicSet, TopicState};

/// A change by `anna`.
pub(super) fn by_anna(change: TopicChange) -> SetTopic {
    SetTopic { by: "anna".into(), change }
}

/// A pause without an end.
pub(super) fn pause(reason: &str) -> TopicChange {
    TopicChange::Pause { group: None, reason: reason.into(), until: None }
}

/// A pause that ends after this long.
pub(super) fn pause_for(reason: &str, time: Duration) -> TopicChange {
    TopicChange::Pause { group: None, reason: reason.into(), until: Some(Due::After(time)) }
}

/// The draining of a topic.
pub(super) fn drain(reason: &str) -> TopicChange {
    TopicChange::Drain { reason: reason.into() }
}

/// A limit.
pub(super) fn limit_to(limit: Limit, reason: &str) -> TopicChange {
    TopicChange::Limit { limit, reason: reason.into() }
}

impl Topic {
    /// Changes the state of the topic under the next number.
    pub(super) async fn set(&self, change: TopicChange) -> TopicSet {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        let answer = self.producer.set(number, by_anna(change)).await.expect("set is answered");
        self.audit_step().await;
        answered(answer).remove(0)
    }

    /// Pauses the topic.
    pub(super) async fn pause(&self) -> TopicSet {
        self.set(pause("why")).await
    }

    /// Ends the pause.
    pub(super) async fn resume(&self) -> TopicSet {
        self.set(TopicChange::Resume { group: None }).await
    }

    /// The state of the topic.
    pub(super) async fn topic_state(&self) -> TopicState {
        self.store.topic_state(&self.key).await.expect("topic_state is answered")
    }
}
