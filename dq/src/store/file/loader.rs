//! From the frames of a journal to the rows of a store.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::error::Error;

use foldhash::fast::FixedState;

use super::journal::{Frame, Origin, TopicNumber};
use super::sink::CHANGES;
use crate::job::{AppName, Fence, TopicKey, TopicName};
use crate::store::Store;
use crate::store::memory::{MemoryStore, PassedOver, Replay, ReplayPart};

/// Applies the frames of a journal to a store.
#[derive(Debug)]
pub(super) struct Loader {
    pub(super) memory: MemoryStore,
    part: ReplayPart,
    /// How much memory the jobs may take.
    most: u64,
    topics: HashMap<TopicNumber, TopicKey, FixedState>,
}

impl Loader {
    pub(super) fn new(memory: &MemoryStore, part: ReplayPart) -> Self {
        Self { memory: memory.clone(), part, most: u64::MAX, topics: HashMap::default() }
    }

    /// Refuses frames once the jobs take more memory than this.
    pub(super) fn up_to(self, most: u64) -> Self {
        Self { most, ..self }
    }

    pub(super) fn is_over(&self) -> bool {
        self.memory.memory_use().is_some_and(|used| used.bytes > self.most)
    }

    pub(super) fn load(&mut self, frame: &Frame<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.load_known(frame).map(drop)
    }

    /// As [`load`](Self::load). Returns the topic, and the rows that it does not have and the frame is of.
    pub(super) fn load_known(
        &mut self,
        frame: &Frame<'_>,
    ) -> Result<(&TopicKey, PassedOver), Box<dyn Error + Send + Sync>> {
        if self.is_over() {
            return Err(
                format!("the jobs take more memory than {} MiB, which is what they may take", self.most >> 20).into()
            );
        }
        if frame.kind != CHANGES {
            return Err(format!("frames of kind {} are unknown", frame.kind).into());
        }
        let topic = match self.topics.entry(frame.topic) {
            Occupied(known) => known.into_mut(),
            Vacant(unknown) => {
                let key = topic_of(frame.name).ok_or_else(|| format!("`{}` is not the name of a topic", frame.name))?;
                unknown.insert(key)
            }
        };
        let replay = if frame.origin == Origin::Journal { Replay::Strict } else { Replay::WithinDump };
        let passed = self.memory.replay(topic, frame.bytes, replay, self.part)?;
        for what in &passed.aside {
            tracing::warn!(%topic, what, "the journal has a number that no dq writes: it is set aside; find out which program wrote it");
        }
        Ok((topic, passed))
    }
}

/// The topic behind `APP:TOPIC`; no app has a colon.
fn topic_of(name: &str) -> Option<TopicKey> {
    let (app, topic) = name.split_once(':')?;
    Some(TopicKey { app: AppName::stored(app).ok()?, topic: TopicName::stored(topic).ok()? })
}

/// The fence that the journal reserves. One that no clock reaches is none: the store would have no fence left.
pub(super) fn reserved(path: &str, fence: u64) -> Fence {
    if Fence(fence) <= Fence::LAST {
        return Fence(fence);
    }
    tracing::error!(
        path,
        fence,
        "the journal has a fence that no dq gives out, so the next ones follow the clock again; find out which program wrote it, and lower the fences in your own databases"
    );
    Fence::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_of_a_name_that_no_door_takes_any_more_is_replayed() {
        for name in [".", ".."] {
            let topic = topic_of(&format!("shop:{name}")).map(|key| key.topic.as_str().to_owned());
            assert_eq!(topic.as_deref(), Some(name));
        }
        assert!(topic_of("shop:a b").is_none());
    }
}
