//! The whole state of a topic, in pages.
//!
//! A page is the bytes of changes that put its rows, so [`Topic::apply`] loads it. Steps may change anything between two
//! pages. A row that moves from a place that is not dumped yet to one that is would be in no page, so while a dump goes on
//! a step that changes a row logs it whole. All pages, and behind them all changes since the dump began, are the state.

use super::super::places::{Log, Slot, TimedPlace};
use super::super::topic::Topic;
use super::write::Groups;
use crate::job::{JobId, NodeId};
use crate::store::{HistorySetting, LONGEST_AUTHOR, LONGEST_REASON};
use crate::time::Timestamp;

/// How far a dump has come.
#[derive(Debug, Clone, Default)]
pub struct DumpCursor(Part);

/// The place that is dumped, and the last row that was.
#[derive(Debug, Clone)]
enum Part {
    Timed(usize, Option<(Timestamp, JobId)>),
    Running(Option<(NodeId, JobId)>),
    Broadcasts(Option<(Timestamp, JobId)>),
    State,
    Histories(Option<JobId>),
    Done,
}

impl Default for Part {
    fn default() -> Self {
        Self::Timed(0, None)
    }
}

const TIMED: [TimedPlace; 4] = [TimedPlace::Delayed, TimedPlace::Unacked, TimedPlace::Dead, TimedPlace::Done];

/// More than a row needs beside its texts.
const ROW_BYTES: usize = 64;

/// A page, and the room that is left in it.
struct Page<'a> {
    groups: Groups<'a>,
    rows: usize,
    bytes: usize,
    is_empty: bool,
}

impl Page<'_> {
    /// Whether one more row fits whose texts have this size; the first always does.
    fn takes(&mut self, size: usize) -> bool {
        let size = size + ROW_BYTES;
        if self.rows == 0 || (size > self.bytes && !self.is_empty) {
            return false;
        }
        (self.rows, self.bytes, self.is_empty) = (self.rows - 1, self.bytes.saturating_sub(size), false);
        true
    }

    fn takes_row(&mut self, id: &JobId, slot: &Slot) -> bool {
        let pending = slot.run().and_then(|run| run.pending.as_ref()).and_then(|pending| pending.replacement.as_ref());
        let replacement = pending.map_or(0, |new| new.job.record.as_bytes().len());
        self.takes(id.as_str().len() + slot.record.as_bytes().len() + replacement)
    }
}

impl Topic {
    /// A dump begins: until its last page, steps log the rows that they change whole. The changes that belong to the dump are
    /// those of every step after this call.
    pub(crate) fn begin_dump(&mut self) -> DumpCursor {
        self.set_log(Log::Whole);
        DumpCursor::default()
    }

    /// The dump ends before its last page; its pages are of no use.
    pub(crate) fn give_up_dump(&mut self) {
        self.set_log(Log::Parts);
    }

    /// Writes the next page behind what is in `into`: at most `rows` rows and about `bytes` bytes, but at least one row. Returns
    /// whether it was the last page. O(rows log n).
    pub(crate) fn dump(&mut self, cursor: &mut DumpCursor, rows: usize, bytes: usize, into: &mut Vec<u8>) -> bool {
        let mut page = Page { groups: Groups::new(into), rows: rows.max(1), bytes, is_empty: true };
        let done = loop {
            let (is_finished, next) = match &mut cursor.0 {
                Part::Timed(n, after) => {
                    let next = if *n + 1 < TIMED.len() { Part::Timed(*n + 1, None) } else { Part::Running(None) };
                    (self.dump_timed(TIMED[*n], after, &mut page), next)
                }
                Part::Running(after) => (self.dump_runs(after, &mut page), Part::Broadcasts(None)),
                Part::Broadcasts(after) => (self.dump_broadcasts(after, &mut page), Part::State),
                Part::State => (self.dump_state(&mut page), Part::Histories(None)),
                Part::Histories(after) => (self.dump_histories(after, &mut page), Part::Done),
                Part::Done => break true,
            };
            if !is_finished {
                break false;
            }
            cursor.0 = next;
        };
        page.groups.close();
        if done {
            self.set_log(Log::Parts);
        }
        done
    }

    /// Writes the rows behind `after` that fit; returns whether these were all. (A page that continues a place is empty, so
    /// one row fits at least, and `last` is behind `after`.)
    fn dump_timed(&self, place: TimedPlace, after: &mut Option<(Timestamp, JobId)>, page: &mut Page<'_>) -> bool {
        let mut last: Option<&(Timestamp, JobId)> = None;
        for at_id in self.jobs.index(place).after(after.clone()) {
            let Some(slot) = self.jobs.get(&at_id.1) else { continue };
            if !page.takes_row(&at_id.1, slot) {
                *after = last.cloned();
                return false;
            }
            page.groups.put(&at_id.1, slot, || false);
            last = Some(at_id);
        }
        true
    }

    fn dump_runs(&self, after: &mut Option<(NodeId, JobId)>, page: &mut Page<'_>) -> bool {
        let mut last = None;
        let from = after.clone();
        for (node, id) in self.jobs.rows_after(from.as_ref()) {
            let Some(slot) = self.jobs.get(id) else { continue };
            if !page.takes_row(id, slot) {
                *after = last.map(|(node, id): (&NodeId, &JobId)| (node.clone(), id.clone()));
                return false;
            }
            page.groups.put(id, slot, || self.jobs.is_released(slot));
            last = Some((node, id));
        }
        true
    }

    fn dump_state(&self, page: &mut Page<'_>) -> bool {
        let (state, history) = (self.settings.get(), self.histories.setting());
        if state.is_default() && history == HistorySetting::default() {
            return true;
        }
        let fits = page.takes(2 * (LONGEST_AUTHOR + LONGEST_REASON));
        if fits {
            page.groups.state(state);
            page.groups.history_setting(history);
        }
        fits
    }

    fn dump_histories(&self, after: &mut Option<JobId>, page: &mut Page<'_>) -> bool {
        let mut last: Option<&JobId> = None;
        for (id, history) in self.histories.behind(after.clone()) {
            if !page.takes(id.as_str().len() + history.text.len()) {
                *after = last.cloned();
                return false;
            }
            page.groups.history(id, history);
            last = Some(id);
        }
        true
    }

    fn dump_broadcasts(&self, after: &mut Option<(Timestamp, JobId)>, page: &mut Page<'_>) -> bool {
        let mut last = None;
        for (id, due, record) in self.broadcasts.after(after.clone()) {
            if !page.takes(id.as_str().len() + record.as_bytes().len()) {
                *after = last.map(|(due, id): (Timestamp, &JobId)| (due, id.clone()));
                return false;
            }
            page.groups.broadcast(id, due, record);
            last = Some((due, id));
        }
        true
    }
}
