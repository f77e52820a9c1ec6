//! The rows of one node: the jobs that it holds.
//!
//! A node claims and ends jobs by the hundred, so a row has a number in the list of its claim and costs no comparison of ids. The few
//! who read rows in the order of their ids sort them for that.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;

use crate::job::{Fence, JobId};

/// The position of a row in its claim. Topics with the same jobs may differ in it, so `Debug` does not show it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Position(pub(super) usize);

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

/// The rows of one node, claim by claim.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    claims: BTreeMap<Fence, Claimed>,
    count: usize,
}

/// The rows of one claim. A row keeps its position until the last one has gone.
#[derive(Debug, Clone, Default)]
struct Claimed {
    ids: Vec<Option<JobId>>,
    left: usize,
}

impl Rows {
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The position of the next row of this claim.
    pub(super) fn next_position(&self, claim: Fence) -> Position {
        Position(self.claims.get(&claim).map_or(0, |claimed| claimed.ids.len()))
    }

    /// Adds rows to a claim, from its next position on.
    pub(super) fn extend(&mut self, claim: Fence, ids: impl ExactSizeIterator<Item = JobId>) {
        let claimed = self.claims.entry(claim).or_default();
        claimed.left += ids.len();
        self.count += ids.len();
        claimed.ids.extend(ids.map(Some));
    }

    /// The job at this position of a claim.
    pub(super) fn get(&self, claim: Fence, position: Position) -> Option<&JobId> {
        self.claims.get(&claim)?.ids.get(position.0)?.as_ref()
    }

    /// Removes a row. Returns whether it was there.
    pub(super) fn remove(&mut self, claim: Fence, position: Position) -> bool {
        let Some(claimed) = self.claims.get_mut(&claim) else { return false };
        if claimed.ids.get_mut(position.0).and_then(Option::take).is_none() {
            return false;
        }
        self.count -= 1;
        claimed.left -= 1;
        if claimed.left == 0 {
            self.claims.remove(&claim);
        }
        true
    }

    /// The rows behind this id, in the order of the ids. O(rows), and O(log rows) for each that is taken.
    pub(crate) fn after(&self, after: Option<&JobId>) -> impl Iterator<Item = &JobId> + use<'_> {
        let ids = self.claims.values().flat_map(|claimed| claimed.ids.iter().flatten());
        let ids = ids.filter(|id| after.is_none_or(|after| *id > after));
        let mut ids: BinaryHeap<_> = ids.map(Reverse).collect();
        std::iter::from_fn(move || ids.pop().map(|Reverse(id)| id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(texts: &[&str]) -> Vec<JobId> {
        texts.iter().map(|text| JobId::new(text).unwrap()).collect()
    }

    #[test]
    fn rows_keep_their_positions_until_the_last_one_of_their_claim_has_gone() {
        let mut rows = Rows::default();
        rows.extend(Fence(7), ids(&["b", "a"]).into_iter());
        assert_eq!(rows.next_position(Fence(7)).0, 2);
        assert!(rows.remove(Fence(7), Position(0)));
        assert!(!rows.remove(Fence(7), Position(0)) && !rows.remove(Fence(7), Position(2)));
        assert!(!rows.remove(Fence(8), Position(0)));
        rows.extend(Fence(7), ids(&["c"]).into_iter());
        let at = |position| rows.get(Fence(7), Position(position)).map(JobId::as_str);
        assert_eq!([at(0), at(1), at(2), at(3)], [None, Some("a"), Some("c"), None]);
        assert!(rows.remove(Fence(7), Position(1)) && rows.remove(Fence(7), Position(2)));
        assert!(rows.is_empty() && rows.claims.is_empty());
    }

    #[test]
    fn rows_of_several_claims_are_read_in_the_order_of_their_ids() {
        let mut rows = Rows::default();
        rows.extend(Fence(1), ids(&["d", "a"]).into_iter());
        rows.extend(Fence(2), ids(&["c", "b"]).into_iter());
        assert_eq!(rows.after(None).cloned().collect::<Vec<_>>(), ids(&["a", "b", "c", "d"]));
        let b = JobId::new("b").unwrap();
        assert_eq!(rows.after(Some(&b)).cloned().collect::<Vec<_>>(), ids(&["c", "d"]));
        assert_eq!(rows.len(), 4);
    }
}
