//! The jobs that imports have put into a directory, in little memory.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use foldhash::fast::FixedState;

use crate::environment::Seeded;
use crate::job::{State, TopicKey};
use crate::store::JobCopy;

/// Each shard grows alone, so that no growth takes much memory.
const SHARDS: usize = 64;

/// Stands for a copy: 96 bits of a hash under a random key. Among a billion jobs two have the same with a probability of one in 150 billion.
pub(super) type Print = [u8; 12];

/// The states of copies. 14 bytes a row, and between 16 and 32 with the rows that the tables keep free.
#[derive(Debug)]
pub(super) struct Known {
    keys: [u64; 2],
    shards: Vec<HashMap<Print, State, FixedState>>,
}

impl Known {
    pub(super) fn new() -> Self {
        let entropy = Seeded::by_system();
        Self { keys: [entropy.next(), entropy.next()], shards: vec![HashMap::default(); SHARDS] }
    }

    /// What stands for a copy: the job and the broadcast of an id are two.
    pub(super) fn print(&self, topic: &TopicKey, copy: &JobCopy) -> Print {
        let [first, second] = self.keys.map(|key| {
            let mut hasher = DefaultHasher::new();
            (key, topic, copy.is_broadcast, copy.id.as_str()).hash(&mut hasher);
            hasher.finish().to_le_bytes()
        });
        std::array::from_fn(|at| if at < 8 { first[at] } else { second[at - 8] })
    }

    pub(super) fn state(&self, print: &Print) -> Option<State> {
        self.shards[usize::from(print[0]) % SHARDS].get(print).copied()
    }

    pub(super) fn put(&mut self, print: Print, state: State) {
        self.shards[usize::from(print[0]) % SHARDS].insert(print, state);
    }
}
