//! Payloads that are JSON, and that the nodes which claimed them could not decode.

use super::finding::Finding;
use super::records::error_in;
use crate::job::{Cause, Codec, State, TopicName};
use crate::store::{FindingCode, Stored};

/// The DEAD jobs of a topic that a node could not decode.
#[derive(Debug, Clone, Default)]
pub(super) struct Undecoded {
    jobs: usize,
    /// The id and the error of the first one.
    first: Option<(String, String)>,
}

impl Undecoded {
    /// Counts a job whose payload is JSON and did not decode.
    pub(super) fn add(&mut self, job: &Stored) {
        if job.place.state() != State::Dead {
            return;
        }
        let (Ok(metadata), Ok((Codec::Json, payload))) = (job.record.metadata(), job.record.payload()) else { return };
        if metadata.cause == Some(Cause::Decode) && error_in(payload).is_none() {
            self.jobs += 1;
            self.first.get_or_insert_with(|| (job.id.to_string(), metadata.error.unwrap_or_default()));
        }
    }

    /// What to say of them, if there are any.
    pub(super) fn finding(self, topic: &TopicName) -> Option<Finding> {
        let (id, error) = self.first?;
        let jobs = if self.jobs == 1 { "1 DEAD job has".to_owned() } else { format!("{} DEAD jobs have", self.jobs) };
        let text = format!("{jobs} a payload that no node could decode, {id} for example: {error}");
        Some(Finding::new(FindingCode::SchemaDifference, Some(topic.clone()), text))
    }
}
