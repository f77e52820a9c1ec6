//! What a script needs to know of new records without reading them, because the topic notes it for other steps.

use crate::job::{Metadata, Priority, Record, Weight};

/// What is so of any of these records.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecordNotes {
    /// No record has more bytes.
    pub(super) longest: usize,
    pub(super) retains: bool,
    pub(super) has_priorities: bool,
    pub(super) has_groups: bool,
    pub(super) has_weights: bool,
}

impl RecordNotes {
    /// Of these records.
    pub(super) fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut notes = Self::default();
        records.into_iter().for_each(|record| _ = notes.add(record));
        notes
    }

    /// Adds a record, and returns its metadata without texts.
    pub(super) fn add(&mut self, record: &Record) -> Metadata {
        let fixed = record.fixed();
        self.longest = self.longest.max(record.as_bytes().len());
        self.retains |= !fixed.retain.is_zero();
        self.has_priorities |= fixed.priority != Priority::Normal;
        self.has_groups |= record.group().is_some();
        self.has_weights |= fixed.weight != Weight::ONE;
        fixed
    }

    /// As the scripts of adds and imports take them.
    pub(super) const fn letters(self) -> [(bool, char); 4] {
        [(self.retains, 'r'), (self.has_priorities, 'p'), (self.has_groups, 'g'), (self.has_weights, 'y')]
    }
}

/// The letters of what is so, as a script takes them.
pub(super) fn letters(all: impl IntoIterator<Item = (bool, char)>) -> String {
    all.into_iter().filter_map(|(is_so, letter)| is_so.then_some(letter)).collect()
}
