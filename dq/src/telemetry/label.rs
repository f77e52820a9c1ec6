//! The label of a topic.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// How many topics of a process have a label of their own.
const MOST_TOPICS: usize = 1_000;

/// The label of a topic: its name, or `other` once too many have one.
pub(crate) fn label(topic: &str) -> &str {
    static TOPICS: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut known = TOPICS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if known.len() < MOST_TOPICS && !known.contains(topic) {
        known.insert(topic.to_owned());
    }
    if known.contains(topic) { topic } else { "other" }
}
