//! `memory:NAME`: one store for all in this process who name it, for as long as any of them has it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::Topics;

static NAMED: Mutex<BTreeMap<String, Weak<Topics>>> = Mutex::new(BTreeMap::new());

/// The topics under `name`; `make` makes them if nobody has them now.
pub(super) fn shared(name: &str, make: impl FnOnce() -> Topics) -> Arc<Topics> {
    // One insertion is the only change, so a panic beside it left nothing half-changed.
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(topics) = named.get(name).and_then(Weak::upgrade) {
        return topics;
    }
    named.retain(|_, topics| topics.strong_count() > 0);
    let topics = Arc::new(make());
    named.insert(name.to_owned(), Arc::downgrade(&topics));
    topics
}
