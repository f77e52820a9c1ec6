//! What tests write to a journal.

use std::sync::Arc;

use dq::store::file::journal::Journal;

use crate::fixture::content;

/// Appends these numbers, each in a group of its own.
pub fn append(journal: &Journal, range: std::ops::Range<u64>) {
    let topic = journal.topic("orders").unwrap();
    for number in range {
        journal.append(topic, 0, &content(number)).unwrap();
        journal.commit().unwrap();
    }
}

/// Takes a snapshot that has these numbers.
pub fn snapshot(journal: &Arc<Journal>, range: std::ops::Range<u64>) {
    let topic = journal.topic("orders").unwrap();
    let mut writer = journal.snapshot().unwrap();
    range.for_each(|number| writer.append(topic, 0, &content(number)).unwrap());
    writer.finish().unwrap();
}
