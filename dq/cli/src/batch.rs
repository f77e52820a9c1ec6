//! A batch of an import: neighbouring lines of one topic.

use std::collections::HashSet;

use dq::job::{Fence, JobId, TopicName};
use dq::store::step::USUAL_BYTES;
use dq::store::{CopyPlace, JobCopy};

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
        let fits = self.copies.len() < AT_ONCE && self.bytes + copy.record.as_bytes().len() <= USUAL_BYTES;
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
    (copy.place == CopyPlace::Broadcast, copy.id.clone())
}
