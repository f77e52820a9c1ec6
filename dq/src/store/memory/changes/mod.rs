//! What the steps of a topic change, as bytes: for a journal.
//!
//! A journal keeps what a step *did* to rows and never the request, so replaying it does not depend on how a step works. The
//! changes are absolute values: applying them again, in order, changes nothing.
//!
//! * [`Topic::log_changes`] makes a topic note what its steps touch, and [`Topic::take_changes`] encodes the present rows of
//!   what the last step touched (`write`, `settings`). Only `places`, `broadcasts` and `histories` can change a row, and they note it.
//! * [`Topic::apply`] replays (`apply`).
//! * [`Topic::begin_dump`] and [`Topic::dump`] write the whole state in pages, between which steps may change anything (`dump`).
//!
//! Leases, sequence numbers, roles and kept answers (but the positions of outboxes) are not journaled: the processes that they belong to end with the store.
//! `docs/internals/journal-changes.md` documents every byte.

mod apply;
mod dump;
mod read;
mod settings;
mod write;

pub use apply::{Part, PassedOver, Replay};
pub use read::{BadChanges, Damage};

pub use dump::DumpCursor;

use std::mem;

use super::job_sets::Touched;
use super::outbox::Change;
use super::places::Log;
use super::topic::{Topic, Unsaved};

/// The version of the encoding. A journal writes it once, where a file begins.
pub const CHANGES_VERSION: u8 = 1;

/// The kinds of groups.
pub(super) mod kind {
    /// Rows, whole.
    pub(crate) const PUT: u8 = 1;
    /// Parts of rows.
    pub(super) const PART: u8 = 2;
    /// Jobs that a node has claimed.
    pub(super) const CLAIM: u8 = 3;
    /// Rows that are gone.
    pub(super) const GONE: u8 = 4;
    /// Broadcasts, whole.
    pub(super) const BROADCAST: u8 = 5;
    /// Broadcasts that are gone.
    pub(super) const BROADCAST_GONE: u8 = 6;
    /// Leases of nodes: released, or not any more.
    pub(crate) const LEASE: u8 = 7;
    /// The state of the topic as a whole, and the pauses of its groups.
    pub(super) const STATE: u8 = 8;
    /// Histories of jobs, whole.
    pub(super) const HISTORY: u8 = 9;
    /// Histories that are gone.
    pub(super) const HISTORY_GONE: u8 = 10;
    /// What the topic keeps of histories.
    pub(super) const HISTORY_SETTING: u8 = 11;
    /// Ids that stay taken, or are free again.
    pub(super) const TAKEN: u8 = 12;
    /// Positions of outboxes whose entries have come here.
    pub(super) const POSITION: u8 = 13;
    /// Entries of the outbox, whole.
    pub(super) const OUTBOX: u8 = 14;
    /// Entries of the outbox that are gone: all up to a position.
    pub(super) const OUTBOX_GONE: u8 = 15;
    /// Of which sets jobs are members, or that they are of none.
    pub(super) const MEMBER: u8 = 16;
    /// Job sets without their members.
    pub(super) const SET: u8 = 17;
    /// Job sets that are gone.
    pub(super) const SET_GONE: u8 = 18;
    /// Members of job sets, each with how far it has come.
    pub(super) const SET_MEMBER: u8 = 19;
}

/// The bits of bytes with several values.
mod bits {
    /// Of a row: its place, 0 to 4.
    pub(super) const PLACE: u8 = 7;
    /// Of a row: a crash count follows.
    pub(super) const CRASHES: u8 = 1 << 3;
    /// Of a row and of notes: the run was started in a group.
    pub(super) const GROUPED: u8 = 1 << 4;
    /// Of a row and of notes: the run was started alone.
    pub(super) const ALONE: u8 = 1 << 5;
    /// Of a row and of notes: a pending command follows.
    pub(super) const PENDING: u8 = 1 << 6;
    /// Of a RUNNING row: the node that holds the job has released its lease.
    pub(super) const RELEASED: u8 = 1 << 7;
    /// Of another row, and of the place in a part: the job has a seat in its group.
    pub(super) const SEAT: u8 = 1 << 7;

    /// Of a part: the place follows.
    pub(super) const HAS_PLACE: u8 = 1;
    /// Of a part: the crash count follows.
    pub(super) const HAS_CRASHES: u8 = 1 << 1;
    /// Of a part: metadata follow.
    pub(super) const HAS_METADATA: u8 = 1 << 2;
    /// Of a part: the notes of the run follow.
    pub(super) const HAS_NOTES: u8 = 1 << 3;

    /// Of a pending command: its end, 0 to 3.
    pub(super) const END: u8 = 3;
    /// Of a pending command: the fence of the end follows.
    pub(super) const FENCE: u8 = 1 << 2;
    /// Of a pending command: a replacement follows.
    pub(super) const REPLACEMENT: u8 = 1 << 3;
    /// Of a pending command: the replacement is conditional.
    pub(super) const CONDITIONAL: u8 = 1 << 4;
    /// Of a pending command: the replacement is a broadcast, and no job of the queue.
    pub(super) const ONLY_BROADCAST: u8 = 1 << 5;
    /// Of a pending command: the replacement is both.
    pub(super) const BOTH: u8 = 1 << 6;
}

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
        let mut groups = write::Groups::new(into);
        self.jobs.take_touched(|changed| groups.changed(&changed));
        for id in self.broadcasts.touched.take() {
            match self.broadcasts.get(&id) {
                Some((due, record)) => groups.broadcast(&id, *due, record),
                None => groups.named(kind::BROADCAST_GONE, id.as_str()),
            }
        }
        let Unsaved { state, history } = mem::take(&mut self.unsaved);
        if state {
            groups.state(&self.settings);
        }
        for name in self.jobs.take_touched_pauses() {
            groups.pause_of_group(&name, self.jobs.pause_of_group(&name));
        }
        if history {
            groups.history_setting(self.histories.setting());
        }
        for id in self.histories.touched.take() {
            match self.histories.get(&id) {
                Some(history) => groups.history(&id, history),
                None => groups.named(kind::HISTORY_GONE, id.as_str()),
            }
        }
        for id in self.taken.touched.take() {
            groups.taken(&id, self.taken.get(&id));
        }
        for relay in self.calls.take_moved() {
            groups.position(&relay, self.calls.highest(&relay));
        }
        for (target, change) in self.outbox.take_touched() {
            match change {
                Change::New(position) => {
                    // Of one that has gone in the same step, the target is told of the position.
                    if let Some((after, batch)) = self.outbox.entry(&target, position) {
                        groups.outbox(&target, position, after, batch);
                    }
                }
                Change::Gone(position) => groups.outbox_gone(&target, position),
            }
        }
        for id in self.members.touched.take() {
            groups.member(&id, self.members.get(&id));
        }
        for touched in self.job_sets.take_touched() {
            let name = match &touched {
                Touched::Row(name) | Touched::Member(name, _) => name,
            };
            match (self.job_sets.get(name), &touched) {
                (Some(set), Touched::Row(_)) => groups.set(name, set),
                (None, Touched::Row(_)) => groups.named(kind::SET_GONE, name.as_str()),
                (set, Touched::Member(_, member)) => {
                    if let Some(state) = set.and_then(|set| set.member(member)) {
                        groups.set_member(name, member, state);
                    }
                }
            }
        }
        groups.end()
    }

    fn set_log(&mut self, log: Log) {
        self.jobs.set_log(log);
        let (histories, members) = (&mut self.histories.touched, &mut self.members.touched);
        for ids in [&mut self.broadcasts.touched, histories, &mut self.taken.touched, members] {
            ids.set_logged(log != Log::Off);
        }
        self.calls.set_logged(log != Log::Off);
        self.outbox.set_logged(log != Log::Off);
        self.job_sets.set_logged(log != Log::Off);
    }
}
