//! A batch of an import: neighbouring lines of one topic.

use std::collections::HashSet;

use dq::job::{Fence, JobId, TopicName};
use dq::store::JobCopy;
use dq::store::step::DEFAULT_BYTES;

/// How many jobs one request reads or writes at most. A server does nothing else meanwhile, and may have other work.
pub(crate) const AT_ONCE: usize = 300;

/// Lines that go to the store together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) topic: TopicName,
    /// The fence of the topic's line, which every batch of it names.
    pub(crate) fence: Fence,
    pub(crate) copies: Vec<JobCopy>,
    /// The number of the line of each copy.
    pub(crate) lines: Vec<u64>,
    bytes: usize,
    named: HashSet<(bool, JobId)>,
}

impl Batch {
    pub(crate) fn new(topic: TopicName, fence: Fence) -> Self {
        Self { topic, fence, copies: Vec::new(), lines: Vec::new(), bytes: 0, named: HashSet::new() }
    }

    /// Whether this copy goes into the batch: there is room, and no copy of its kind has its id.
    pub(crate) fn takes(&self, copy: &JobCopy) -> bool {
        let fits = self.copies.len() < AT_ONCE && self.bytes + copy.record.as_bytes().len() <= DEFAULT_BYTES;
        (fits || self.copies.is_empty()) && !self.named.contains(&name_of(copy))
    }

    pub(crate) fn push(&mut self, line: u64, copy: JobCopy) {
        self.bytes += copy.record.as_bytes().len();
        self.named.insert(name_of(&copy));
        self.lines.push(line);
        self.copies.push(copy);
    }
}

/// A job and a broadcast of the same id are two copies.
fn name_of(copy: &JobCopy) -> (bool, JobId) {
    (copy.is_broadcast, copy.id.clone())
}

#[cfg(test)]
mod tests {
    use dq::job::{Codec, Metadata, Record, State};
    use dq::time::Timestamp;

    use super::*;

    fn copy(name: &str, bytes: usize, state: State) -> JobCopy {
        let record = Record::new(&Metadata::default(), Codec::Json, &vec![b'1'; bytes]);
        JobCopy::new(JobId::new(name).unwrap(), record, state, Timestamp::EPOCH)
    }

    #[test]
    fn a_batch_is_bounded_by_a_count_and_by_bytes_and_has_no_id_twice() {
        let mut batch = Batch::new(TopicName::new("t").unwrap(), Fence(0));
        let large = copy("large", 2 * DEFAULT_BYTES, State::Dead);
        assert!(batch.takes(&large), "a large one never blocks");
        batch.push(1, large);
        assert!(!batch.takes(&copy("small", 1, State::Dead)));

        let mut batch = Batch::new(TopicName::new("t").unwrap(), Fence(0));
        batch.push(1, copy("half", DEFAULT_BYTES / 2, State::Dead));
        assert!(!batch.takes(&copy("other", DEFAULT_BYTES / 2, State::Dead)), "with their metadata they are more");
        assert!(!batch.takes(&copy("half", 1, State::Delayed)));
        let broadcast = JobCopy { is_broadcast: true, ..copy("half", 1, State::Delayed) };
        assert!(batch.takes(&broadcast), "a job and a broadcast of an id are two");
        for n in 1..AT_ONCE {
            let next = copy(&n.to_string(), 1, State::Dead);
            assert!(batch.takes(&next));
            batch.push(1, next);
        }
        assert!(!batch.takes(&copy("one more", 1, State::Dead)));
    }
}
