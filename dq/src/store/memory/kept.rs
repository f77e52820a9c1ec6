//! What a topic keeps by an id or a name, beside its jobs: items that may have an end, what they take in memory, and which of them the
//! present step has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Bound;

use crate::job::JobId;
use crate::time::Timestamp;

/// What is kept under a key.
pub(crate) trait Item<K> {
    /// When it may be forgotten; `None`: it stays until somebody removes it.
    fn end(&self) -> Option<Timestamp>;

    /// What it takes in memory, about.
    fn bytes(&self, key: &K) -> u64;
}

/// Items by their keys.
#[derive(Debug, Clone)]
pub(crate) struct Kept<K, V> {
    items: BTreeMap<K, V>,
    by_end: BTreeSet<(Timestamp, K)>,
    /// What they take in memory, about.
    pub(super) bytes: u64,
    /// Those that the step has changed.
    pub(super) touched: Touches<K>,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), by_end: BTreeSet::new(), bytes: 0, touched: Touches::default() }
    }
}

impl<K: Ord + Clone, V: Item<K>> Kept<K, V> {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.items.get(key)
    }

    /// Those after a key, in order.
    pub(super) fn after(&self, after: Option<K>) -> impl Iterator<Item = (&K, &V)> {
        self.items.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
    }

    /// The first end, and whose it is.
    pub(super) fn first_end(&self) -> Option<&(Timestamp, K)> {
        self.by_end.first()
    }

    /// How many have an end.
    pub(super) fn ending(&self) -> usize {
        self.by_end.len()
    }

    /// Puts an item; `None`: there is none. Returns the one that was there.
    pub(super) fn put(&mut self, key: &K, new: Option<V>) -> Option<V> {
        self.touched.add(|| key.clone());
        if let Some(new) = &new {
            self.bytes += new.bytes(key);
            self.by_end.extend(new.end().map(|end| (end, key.clone())));
        }
        let end = new.as_ref().and_then(Item::end);
        let old = match new {
            Some(new) => self.items.insert(key.clone(), new),
            None => self.items.remove(key),
        };
        if let Some(old) = &old {
            self.bytes -= old.bytes(key);
            if let Some(gone) = old.end().filter(|gone| end != Some(*gone)) {
                self.by_end.remove(&(gone, key.clone()));
            }
        }
        old
    }

    /// Removes all. The journal is not told.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.by_end.clear();
        self.bytes = 0;
    }
}

/// What the current step has touched, where a journal wants to know it; nothing between steps.
#[derive(Debug, Clone)]
pub(crate) struct Touches<T = JobId> {
    is_logged: bool,
    touched: Vec<T>,
}

impl<T> Default for Touches<T> {
    fn default() -> Self {
        Self { is_logged: false, touched: Vec::new() }
    }
}

impl<T: PartialEq> Touches<T> {
    pub(super) fn set_logged(&mut self, is_logged: bool) {
        self.is_logged = is_logged;
    }

    pub(super) fn add(&mut self, what: impl FnOnce() -> T) {
        if self.is_logged {
            let what = what();
            // A step that replaces something touches it twice in a row.
            if self.touched.last() != Some(&what) {
                self.touched.push(what);
            }
        }
    }

    pub(super) fn take(&mut self) -> Vec<T> {
        mem::take(&mut self.touched)
    }
}
