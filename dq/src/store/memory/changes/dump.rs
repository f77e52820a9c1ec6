//! The whole state of a topic, in pages.
//!
//! A page is the bytes of changes that put its rows, so [`Topic::apply`] loads it. Steps may change anything between two
//! pages. A row that moves from a place that is not dumped yet to one that is would be in no page, so while a dump goes on
//! a step that changes a row logs it whole. All pages, and behind them all changes since the dump began, are the state.

use smol_str::SmolStr;

use super::super::job_sets::{Member, MemberState};
use super::super::kept::{Item, Kept};
use super::super::places::Log;
use super::super::topic::Topic;
use super::change::{self, Change};
use super::write::Writer;
use crate::job::{JobId, NodeId, ProducerId, State, TopicName};
use crate::store::{HistorySetting, OutboxPosition};
use crate::time::Timestamp;

/// How far a dump has come.
#[derive(Debug, Clone, Default)]
pub struct DumpCursor(DumpPart);

/// The place that is dumped, and the last row that was.
#[derive(Debug, Clone)]
enum DumpPart {
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
}

impl Default for DumpPart {
    fn default() -> Self {
        Self::Timed(0, None)
    }
}

/// More than a row needs in memory beside its bytes.
const ROW_BYTES: usize = 64;

/// A page, and the room that is left in it.
struct Page<'a> {
    writer: Writer<'a>,
    rows: usize,
    bytes: usize,
    is_empty: bool,
}

impl Page<'_> {
    /// Writes the items that fit; the first always does. Returns whether these were all; if not, `after` is the last of them then. (A page that
    /// continues a place is empty, so one item fits at least.)
    fn fill<I: Copy, K>(
        &mut self,
        after: &mut Option<K>,
        items: impl Iterator<Item = I>,
        write: impl Fn(&mut Writer<'_>, I),
        key: impl Fn(I) -> K,
    ) -> bool {
        let mut last = None;
        for item in items {
            let begin = self.writer.into.len();
            write(&mut self.writer, item);
            let size = self.writer.into.len() - begin + ROW_BYTES;
            if self.rows == 0 || (size > self.bytes && !self.is_empty) {
                self.writer.into.truncate(begin);
                *after = last.map(key);
                return false;
            }
            (self.rows, self.bytes, self.is_empty) = (self.rows - 1, self.bytes.saturating_sub(size), false);
            last = Some(item);
        }
        true
    }

    /// Writes what fits of what is kept behind a key.
    fn kept<K: Ord + Clone, V: Item<K>>(
        &mut self,
        after: &mut Option<K>,
        kept: &Kept<K, V>,
        change: impl for<'k> Fn(&'k K, Option<&'k V>) -> Change<'k>,
    ) -> bool {
        let items = kept.after(after.clone());
        let write = |to: &mut Writer<'_>, (key, item): (&K, &V)| to.push(&change(key, Some(item)));
        self.fill(after, items, write, |(key, _)| key.clone())
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
        let mut page = Page { writer: Writer::new(into), rows: rows.max(1), bytes, is_empty: true };
        let done = loop {
            let (is_finished, next) = self.dump_part(&mut cursor.0, &mut page);
            if !is_finished {
                break false;
            }
            match next {
                Some(next) => cursor.0 = next,
                None => break true,
            }
        };
        if done {
            self.set_log(Log::Parts);
        }
        done
    }

    /// Writes what fits of a place. Returns whether that was all, and the next place.
    fn dump_part(&self, part: &mut DumpPart, page: &mut Page<'_>) -> (bool, Option<DumpPart>) {
        let (is_finished, next) = match part {
            DumpPart::Timed(n, after) => {
                let next =
                    if *n + 1 < State::TIMED.len() { DumpPart::Timed(*n + 1, None) } else { DumpPart::Running(None) };
                (self.dump_timed(State::TIMED[*n], after, page), next)
            }
            DumpPart::Running(after) => (self.dump_runs(after, page), DumpPart::Broadcasts(None)),
            DumpPart::Broadcasts(after) => {
                let items = self.broadcasts.after(after.clone());
                let write = |to: &mut Writer<'_>, (id, due, record): (&_, _, &_)| to.broadcast(id, Some((due, record)));
                (page.fill(after, items, write, |(id, due, _)| (due, id.clone())), DumpPart::State)
            }
            DumpPart::State => (self.dump_settings(page), DumpPart::PausesOfGroups(None)),
            DumpPart::PausesOfGroups(after) => {
                (page.kept(after, self.jobs.paused_groups(), change::pause_of_group), DumpPart::Histories(None))
            }
            DumpPart::Histories(after) => {
                (page.kept(after, &self.histories.kept, change::history), DumpPart::Taken(None))
            }
            DumpPart::Taken(after) => (page.kept(after, &self.taken, change::taken), DumpPart::Positions(None)),
            DumpPart::Positions(after) => (self.dump_positions(after, page), DumpPart::Outbox(None)),
            DumpPart::Outbox(after) => (self.dump_outbox(after, page), DumpPart::Members(None)),
            DumpPart::Members(after) => (page.kept(after, &self.members, change::member), DumpPart::Sets(None)),
            DumpPart::Sets(after) => {
                let sets = self.job_sets.after(after.clone());
                let write = |to: &mut Writer<'_>, (name, set): (&_, &_)| to.push(&Change::set(name, Some(set)));
                (page.fill(after, sets, write, |(name, _)| name.clone()), DumpPart::SetMembers(None))
            }
            DumpPart::SetMembers(after) => return (self.dump_set_members(after, page), None),
        };
        (is_finished, Some(next))
    }

    fn dump_timed(&self, place: State, after: &mut Option<(Timestamp, JobId)>, page: &mut Page<'_>) -> bool {
        let ids = self.jobs.index(place).after(after.clone());
        let rows = ids.filter_map(|at_id| Some((at_id, self.jobs.get(&at_id.1)?)));
        let write = |to: &mut Writer<'_>, (at_id, slot): (&(_, _), &_)| to.put(&at_id.1, slot, self.jobs.holders());
        page.fill(after, rows, write, |(at_id, _)| at_id.clone())
    }

    fn dump_runs(&self, after: &mut Option<(NodeId, JobId)>, page: &mut Page<'_>) -> bool {
        let rows = self.jobs.rows_after(after.clone());
        let rows = rows.filter_map(|(node, id)| Some((node, id, self.jobs.get(id)?)));
        let write = |to: &mut Writer<'_>, (_, id, slot): (&NodeId, &_, &_)| to.put(id, slot, self.jobs.holders());
        page.fill(after, rows, write, |(node, id, _)| (node.clone(), id.clone()))
    }

    fn dump_positions(&self, after: &mut Option<ProducerId>, page: &mut Page<'_>) -> bool {
        let from = after.clone();
        let relays = self.calls.positions().filter(|(relay, _)| from.as_ref().is_none_or(|from| *relay > from));
        let write = |to: &mut Writer<'_>, (relay, position): (&ProducerId, _)| {
            to.push(&Change::Position(relay.as_str(), position));
        };
        page.fill(after, relays, write, |(relay, _)| relay.clone())
    }

    fn dump_set_members(&self, after: &mut Option<(JobId, MemberState, Member)>, page: &mut Page<'_>) -> bool {
        type Row<'a> = (&'a JobId, MemberState, &'a Member);
        let members = self.job_sets.members_after(after.clone());
        let write = |to: &mut Writer<'_>, (name, state, of): Row<'_>| to.push(&Change::set_member(name, of, state));
        page.fill(after, members, write, |(name, state, of): Row<'_>| (name.clone(), state, of.clone()))
    }

    fn dump_outbox(&self, after: &mut Option<(TopicName, u64)>, page: &mut Page<'_>) -> bool {
        let from = after.clone();
        let rows = self.outbox.targets().flat_map(|(target, of)| {
            let first = of.entries.first_key_value();
            let gone = first.map_or(of.last, |(first, _)| OutboxPosition::clock(first - 1));
            let entries = of.entries.iter().map(|(at, kept)| (kept.position(*at), Some(kept)));
            [(gone, None)].into_iter().chain(entries).map(move |(position, entry)| (target, position, entry))
        });
        let rows = rows.filter(|(target, position, _)| {
            from.as_ref().is_none_or(|(last, at)| (*target, position.at) > (last, *at))
        });
        let write = |to: &mut Writer<'_>, (target, position, entry): (&TopicName, OutboxPosition, Option<&_>)| {
            to.push(&match entry {
                Some(kept) => Change::outbox(target, position.at, kept),
                None => Change::OutboxGone(target.clone(), position),
            });
        };
        page.fill(after, rows, write, |(target, position, _)| (target.clone(), position.at))
    }

    fn dump_settings(&self, page: &mut Page<'_>) -> bool {
        let (state, history) = (&self.settings, self.histories.setting());
        if state.is_default() && history == HistorySetting::default() {
            return true;
        }
        let write = |to: &mut Writer<'_>, ()| {
            to.settings(state, history);
        };
        page.fill(&mut None, std::iter::once(()), write, |()| ())
    }
}
