//! What the steps of a topic change, as bytes: for a journal.
//!
//! A journal keeps what a step *did* to rows and never the request, so replaying it does not depend on how a step works. The
//! changes are absolute values: applying them again, in order, changes nothing.
//!
//! * [`Topic::log_changes`] makes a topic note what its steps touch, and [`Topic::take_changes`] encodes the present rows of
//!   what the last step touched (`write`): a [`Change`] for each. Only `places`, `broadcasts` and `histories` can change a row, and they note it.
//! * [`Topic::apply`] replays (`apply`).
//! * [`Topic::begin_dump`] and [`Topic::dump`] write the whole state in pages, between which steps may change anything (`dump`).
//!
//! Leases, sequence numbers, roles and kept answers (but the positions of outboxes) are not journaled: the processes that they belong to end with the store.
//! `docs/internals/journal-changes.md` documents them.

mod apply;
mod change;
mod dump;
mod read;
mod write;

pub use read::{BadChanges, Damage, PassedOver, Replay, ReplayPart};

#[cfg(test)]
pub(super) use read::ends_of;

pub use dump::DumpCursor;

use std::mem;

use super::job_sets::Touched;
use super::outbox::OutboxChange;
use super::places::Log;
use super::topic::Topic;
use change::Change;
use write::Writer;

/// The version of the encoding, which each file of a journal names.
pub const CHANGES_VERSION: u32 = 5;

impl Topic {
    /// From now on the topic notes what its steps change, and its owner calls [`take_changes`](Self::take_changes) after each.
    pub(crate) fn log_changes(&mut self) {
        if self.jobs.log() == Log::Off {
            self.set_log(Log::Parts);
        }
    }

    /// Encodes what the last step has changed behind what is in `into`; nothing if it has changed nothing. Returns the offsets at
    /// which a journal cuts the bytes into frames, because a frame is bounded and a step of a thousand large rows is not: each part
    /// is whole rows, so it applies alone.
    pub(crate) fn take_changes(&mut self, into: &mut Vec<u8>) -> Vec<usize> {
        let mut writer = Writer::new(into);
        self.jobs.take_touched(|changed| writer.changed(&changed));
        for id in self.broadcasts.touched.take() {
            writer.broadcast(&id, self.broadcasts.get(&id).map(|(due, record)| (*due, record)));
        }
        if mem::take(&mut self.is_unsaved) {
            writer.settings(&self.settings, self.histories.setting());
        }
        let pauses = self.jobs.touched_pauses().take();
        writer.touched(pauses, self.jobs.paused_groups(), change::pause_of_group);
        writer.touched(self.histories.kept.touched.take(), &self.histories.kept, change::history);
        writer.touched(self.taken.touched.take(), &self.taken, change::taken);
        for relay in self.calls.moved.take() {
            writer.push(&Change::Position(relay.as_str(), self.calls.highest(&relay)));
        }
        for (target, change) in self.outbox.touched.take() {
            match change {
                OutboxChange::New(position) => {
                    if let Some(kept) = self.outbox.entry(&target, position) {
                        writer.push(&Change::outbox(&target, position, kept));
                    }
                }
                OutboxChange::Gone(at) => {
                    let gone = self.outbox.gone(&target, at);
                    writer.push(&Change::OutboxGone(target, gone));
                }
            }
        }
        writer.touched(self.members.touched.take(), &self.members, change::member);
        for touched in self.job_sets.touched.take() {
            match &touched {
                Touched::Row(name) => writer.push(&Change::set(name, self.job_sets.get(name))),
                Touched::Member(name, member) => {
                    if let Some(state) = self.job_sets.get(name).and_then(|set| set.member(member)) {
                        writer.push(&Change::set_member(name, member, state));
                    }
                }
            }
        }
        writer.end()
    }

    fn set_log(&mut self, log: Log) {
        self.jobs.set_log(log);
        let is_logged = log != Log::Off;
        let (histories, members) = (&mut self.histories.kept.touched, &mut self.members.touched);
        for ids in [&mut self.broadcasts.touched, histories, &mut self.taken.touched, members] {
            ids.set_logged(is_logged);
        }
        self.jobs.touched_pauses().set_logged(is_logged);
        self.calls.moved.set_logged(is_logged);
        self.outbox.touched.set_logged(is_logged);
        self.job_sets.touched.set_logged(is_logged);
    }
}
