//! The numbers of topics.

use std::collections::BTreeMap;

use super::frame::TopicNumber;

/// The most bytes that the name of a topic may have.
pub const MAX_NAME: usize = 1_024;

/// Names no segment.
const NOWHERE: u64 = u64::MAX;

#[derive(Debug)]
struct Named {
    name: Box<str>,
    /// The segment that has the name already, by its first position.
    segment: u64,
}

/// The topics of a journal. A number is never given to another topic as long as a file with it may exist.
#[derive(Debug, Default)]
pub(super) struct Topics {
    by_number: BTreeMap<u32, Named>,
    by_name: BTreeMap<Box<str>, u32>,
}

impl Topics {
    /// The number of a topic.
    pub(super) fn number(&mut self, name: &str) -> TopicNumber {
        if let Some(number) = self.by_name.get(name) {
            return TopicNumber(*number);
        }
        let number = self.by_number.last_key_value().map_or(1, |(last, _)| last + 1);
        self.insert(number, name);
        TopicNumber(number)
    }

    fn insert(&mut self, number: u32, name: &str) {
        self.by_number.insert(number, Named { name: name.into(), segment: NOWHERE });
        self.by_name.insert(name.into(), number);
    }

    /// Takes over a number that a file has. Returns false if the number or the name has another partner already.
    pub(super) fn learn(&mut self, number: TopicNumber, name: &str) -> bool {
        match (self.by_number.get(&number.0), self.by_name.get(name)) {
            (None, None) => {
                self.insert(number.0, name);
                true
            }
            (Some(named), Some(other)) => &*named.name == name && *other == number.0,
            _ => false,
        }
    }

    pub(super) fn name(&self, topic: TopicNumber) -> Option<&str> {
        self.by_number.get(&topic.0).map(|named| &*named.name)
    }

    /// Notes that a segment has the name from now on. Returns the name if it did not have it.
    pub(super) fn enter(&mut self, topic: TopicNumber, segment: u64) -> Option<&str> {
        if topic == TopicNumber::NONE {
            return None;
        }
        let named = self.by_number.get_mut(&topic.0).expect("a topic has its number from this journal");
        if named.segment == segment {
            return None;
        }
        named.segment = segment;
        Some(&named.name)
    }
}
