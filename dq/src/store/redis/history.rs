//! The histories of jobs (rule 31): what a topic keeps of them, and one of them.

use redis::Value;

use super::keys::Key;
use super::scripts::Step;
use super::{RedisStore, millis};
use crate::job::{JobId, TopicKey};
use crate::store::history::read;
use crate::store::{HistorySetting, JobHistory, StoreError};

impl RedisStore {
    pub(super) async fn keep_history_of(&self, topic: &TopicKey, setting: HistorySetting) -> Result<(), StoreError> {
        let HistorySetting { moves, after } = setting.check()?;
        let text = if moves == 0 { String::new() } else { format!("{moves}:{}", millis(after)) };
        let call = self.scripts_of(topic).call(Step::KeepHistory).arg(text);
        self.shards.ask(call).await.map(drop)
    }

    pub(super) async fn history_of(&self, topic: &TopicKey, id: &JobId) -> Result<Option<JobHistory>, StoreError> {
        let key = (&self.keyspace.of(topic), Key::History);
        Ok(match self.shards.read_key("history", key, "HGET", id.as_str()).await? {
            Value::BulkString(text) => Some(read(&String::from_utf8_lossy(&text))),
            _ => None,
        })
    }
}
