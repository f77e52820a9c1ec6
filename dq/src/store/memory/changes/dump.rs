//! The whole state of a topic, in pages.
//!
//! A page is the bytes of changes that put its rows, so [`Topic::apply`] loads it. Steps may change anything between two
//! pages. A row that moves from a place that is not dumped yet to one that is would be in no page, so while a dump goes on
//! a step that changes a row logs it whole. All pages, and behind them all changes since the dump began, are the state.

use smol_str::SmolStr;

use super::super::histories::History;
use super::super::job_sets::{JobSet, Member, MemberState};
use super::super::places::{Log, Slot, TimedPlace};
use super::super::taken::TakenId;
use super::super::topic::Topic;
use super::write::Groups;
use crate::job::{JobId, NodeId, ProducerId, Record, TopicName};
use crate::store::{HistorySetting, LONGEST_AUTHOR, LONGEST_REASON, Membership, Packed, Pause};
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
    PausesOfGroups(Option<SmolStr>),
    Histories(Option<JobId>),
    Taken(Option<JobId>),
    Positions(Option<ProducerId>),
    Outbox(Option<(TopicName, u64)>),
    Members(Option<JobId>),
    Sets(Option<JobId>),
    SetMembers(Option<(JobId, MemberState, Member)>),
    Done,
}

impl Default for Part {
    fn default() -> Self {
        Self::Timed(0, None)
    }
}

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

    /// Writes the items that fit, each with the size of its texts. Returns whether these were all; if not, `after` is the last of them
    /// then. (A page that continues a place is empty, so one item fits at least.)
    fn fill<I: Copy, K>(
        &mut self,
        after: &mut Option<K>,
        items: impl Iterator<Item = I>,
        size: impl Fn(I) -> usize,
        write: impl Fn(&mut Groups<'_>, I),
        key: impl Fn(I) -> K,
    ) -> bool {
        let mut last = None;
        for item in items {
            if !self.takes(size(item)) {
                *after = last.map(key);
                return false;
            }
            write(&mut self.groups, item);
            last = Some(item);
        }
        true
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
                    let next =
                        if *n + 1 < TimedPlace::ALL.len() { Part::Timed(*n + 1, None) } else { Part::Running(None) };
                    (self.dump_timed(TimedPlace::ALL[*n], after, &mut page), next)
                }
                Part::Running(after) => (self.dump_runs(after, &mut page), Part::Broadcasts(None)),
                Part::Broadcasts(after) => (self.dump_broadcasts(after, &mut page), Part::State),
                Part::State => (self.dump_settings(&mut page), Part::PausesOfGroups(None)),
                Part::PausesOfGroups(after) => (self.dump_pauses(after, &mut page), Part::Histories(None)),
                Part::Histories(after) => (self.dump_histories(after, &mut page), Part::Taken(None)),
                Part::Taken(after) => (self.dump_taken(after, &mut page), Part::Positions(None)),
                Part::Positions(after) => (self.dump_positions(after, &mut page), Part::Outbox(None)),
                Part::Outbox(after) => (self.dump_outbox(after, &mut page), Part::Members(None)),
                Part::Members(after) => (self.dump_members(after, &mut page), Part::Sets(None)),
                Part::Sets(after) => (self.dump_sets(after, &mut page), Part::SetMembers(None)),
                Part::SetMembers(after) => (self.dump_set_members(after, &mut page), Part::Done),
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

    fn dump_timed(&self, place: TimedPlace, after: &mut Option<(Timestamp, JobId)>, page: &mut Page<'_>) -> bool {
        let ids = self.jobs.index(place).after(after.clone());
        let rows = ids.filter_map(|at_id| Some((at_id, self.jobs.get(&at_id.1)?)));
        let write =
            |groups: &mut Groups<'_>, (at_id, slot): (&(_, JobId), &_)| groups.put(&at_id.1, slot, self.jobs.holders());
        page.fill(after, rows, |(at_id, slot)| size(&at_id.1, slot), write, |(at_id, _)| at_id.clone())
    }

    fn dump_runs(&self, after: &mut Option<(NodeId, JobId)>, page: &mut Page<'_>) -> bool {
        let rows = self.jobs.rows_after(after.clone());
        let rows = rows.filter_map(|(node, id)| Some((node, id, self.jobs.get(id)?)));
        let write =
            |groups: &mut Groups<'_>, (_, id, slot): (&NodeId, &JobId, &_)| groups.put(id, slot, self.jobs.holders());
        page.fill(after, rows, |(_, id, slot)| size(id, slot), write, |(node, id, _)| (node.clone(), id.clone()))
    }

    fn dump_broadcasts(&self, after: &mut Option<(Timestamp, JobId)>, page: &mut Page<'_>) -> bool {
        let items = self.broadcasts.after(after.clone());
        let size = |(id, _, record): (&JobId, _, &Record)| id.as_str().len() + record.as_bytes().len();
        let write = |groups: &mut Groups<'_>, (id, due, record): (&JobId, Timestamp, &Record)| {
            groups.broadcast(id, due, record);
        };
        page.fill(after, items, size, write, |(id, due, _)| (due, id.clone()))
    }

    fn dump_histories(&self, after: &mut Option<JobId>, page: &mut Page<'_>) -> bool {
        let items = self.histories.behind(after.clone());
        let size = |(id, history): (&JobId, &History)| id.as_str().len() + history.text.len();
        let write = |groups: &mut Groups<'_>, (id, history): (&JobId, &History)| groups.history(id, history);
        page.fill(after, items, size, write, |(id, _)| id.clone())
    }

    fn dump_pauses(&self, after: &mut Option<SmolStr>, page: &mut Page<'_>) -> bool {
        let size = |(name, pause): (&SmolStr, &Pause)| name.len() + pause.by.len() + pause.reason.len();
        let write =
            |groups: &mut Groups<'_>, (name, pause): (&SmolStr, &Pause)| groups.pause_of_group(name, Some(pause));
        page.fill(after, self.jobs.pauses_after(after.clone()), size, write, |(name, _)| name.clone())
    }

    fn dump_taken(&self, after: &mut Option<JobId>, page: &mut Page<'_>) -> bool {
        let size = |(id, _): (&JobId, TakenId)| id.as_str().len();
        let write = |groups: &mut Groups<'_>, (id, taken): (&JobId, TakenId)| groups.taken(id, Some(taken));
        page.fill(after, self.taken.after(after.clone()), size, write, |(id, _)| id.clone())
    }

    fn dump_positions(&self, after: &mut Option<ProducerId>, page: &mut Page<'_>) -> bool {
        let from = after.clone();
        let relays = self.calls.positions().filter(|(relay, _)| from.as_ref().is_none_or(|from| *relay > from));
        let write = |groups: &mut Groups<'_>, (relay, position)| groups.position(relay, position);
        page.fill(after, relays, |(relay, _)| relay.as_str().len(), write, |(relay, _)| relay.clone())
    }

    fn dump_members(&self, after: &mut Option<JobId>, page: &mut Page<'_>) -> bool {
        let size = |(id, of): (&JobId, &Membership)| id.as_str().len() + of.home.as_str().len() + of.set.as_str().len();
        let write = |groups: &mut Groups<'_>, (id, of): (&JobId, &Membership)| groups.member(id, Some(of));
        page.fill(after, self.members.after(after.clone()), size, write, |(id, _)| id.clone())
    }

    fn dump_sets(&self, after: &mut Option<JobId>, page: &mut Page<'_>) -> bool {
        let size = |(name, set): (&JobId, &JobSet)| {
            name.as_str().len() + set.then.as_ref().map_or(0, |then| then.as_bytes().len())
        };
        let write = |groups: &mut Groups<'_>, (name, set): (&JobId, &JobSet)| groups.set(name, set);
        page.fill(after, self.job_sets.after(after.clone()), size, write, |(name, _)| name.clone())
    }

    fn dump_set_members(&self, after: &mut Option<(JobId, MemberState, Member)>, page: &mut Page<'_>) -> bool {
        type Row<'a> = (&'a JobId, MemberState, &'a Member);
        let size = |(name, _, (topic, id)): Row<'_>| name.as_str().len() + topic.as_str().len() + id.as_str().len();
        let write = |groups: &mut Groups<'_>, (name, state, member): Row<'_>| groups.set_member(name, member, state);
        let key = |(name, state, member): Row<'_>| (name.clone(), state, member.clone());
        page.fill(after, self.job_sets.members_after(after.clone()), size, write, key)
    }

    /// Of each target the entries, and before them what is certain to be gone.
    fn dump_outbox(&self, after: &mut Option<(TopicName, u64)>, page: &mut Page<'_>) -> bool {
        let from = after.clone();
        let rows = self.outbox.targets().flat_map(|(target, of)| {
            let gone = of.entries.first_key_value().map_or(of.last, |(first, _)| first - 1);
            let entries = of.entries.iter().map(|(position, (after, batch))| (*position, Some((*after, batch))));
            [(gone, None)].into_iter().chain(entries).map(move |(position, entry)| (target, position, entry))
        });
        let rows = rows
            .filter(|(target, position, _)| from.as_ref().is_none_or(|(last, at)| (*target, *position) > (last, *at)));
        let size = |(target, _, entry): (&TopicName, u64, Option<(u64, &Packed)>)| {
            target.as_str().len() + entry.map_or(0, |(_, batch)| batch.as_bytes().len())
        };
        let write =
            |groups: &mut Groups<'_>, (target, position, entry): (&TopicName, u64, Option<(u64, &Packed)>)| match entry
            {
                Some((after, batch)) => groups.outbox(target, position, after, batch),
                None => groups.outbox_gone(target, position),
            };
        page.fill(after, rows, size, write, |(target, position, _)| (target.clone(), position))
    }

    fn dump_settings(&self, page: &mut Page<'_>) -> bool {
        let (state, history) = (&self.settings, self.histories.setting());
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
}

/// The bytes of the texts of a row.
fn size(id: &JobId, slot: &Slot) -> usize {
    id.as_str().len() + slot.record.as_bytes().len() + slot.replacement_size()
}
