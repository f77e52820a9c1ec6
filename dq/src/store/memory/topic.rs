//! The state of one topic.
//!
//! A step is one plain method call on a `Topic`: it has no clock, lock or task of its own. It gets the time as an argument,
//! checks everything first, then changes the state, and cannot fail half-way. The signals that it wants sent collect in
//! [`Topic::take_notices`]. So the owner of a `Topic` gets atomic steps by calling them one after another, may log each
//! step before or after, and may keep a copy of the whole topic to return to.
//!
//! The steps are in files of their own; the list is in the module docs of [`memory`](super).

use super::broadcasts::Broadcasts;
use super::budget::Share;
use super::calls::Calls;
use super::histories::Histories;
use super::job_sets::JobSets;
use super::members::Members;
use super::now::Now;
use super::outbox::Outbox;
use super::places::Jobs;
use super::recorder::{Recorder, Statistics};
use super::roles::Roles;
use super::sequences::Sequences;
use super::signals::{Notice, Notices};
use super::taken::TakenIds;
use crate::job::{Fence, JobId, NodeId, State, TopicName};
use crate::store::{HistorySetting, LinkOptions, Moves, Rate, Signal, StoreError, TopicState};
use crate::time::Timestamp;

/// The state of one topic.
#[derive(Debug, Clone, Default)]
pub(crate) struct Topic {
    /// Its name, if it belongs to a store.
    pub(super) name: Option<TopicName>,
    pub(super) jobs: Jobs,
    pub(super) broadcasts: Broadcasts,
    pub(super) sequences: Sequences,
    pub(super) calls: Calls,
    pub(super) roles: Roles,
    pub(super) notices: Notices,
    /// Whether it is paused, drains, has a default delay, and how many of its jobs run at a time.
    pub(super) settings: TopicState,
    /// What the node of the present step says of that.
    pub(super) by_code: LinkOptions,
    /// What the code of the last node that wanted jobs says of the rate of the topic and of each group.
    pub(super) code_rates: (Option<Rate>, Option<Rate>),
    /// The order of the last job that was added to a group.
    pub(super) group_order: u64,
    /// When the first job may be claimed, at the beginning of the present step.
    pub(super) head_before: Option<Timestamp>,
    /// When the next tick was, then.
    pub(super) tick_before: Option<Timestamp>,
    /// When the rate lets the next claim come, in µs; `None`: what the last fence says.
    pub(super) opens: Option<u64>,
    /// How many jobs may be RUNNING, if due jobs wait because so many are, and nobody was told yet that a slot is free.
    pub(super) shut: Option<usize>,
    pub(super) record: Recorder,
    pub(super) statistics: Statistics,
    pub(super) histories: Histories,
    pub(super) taken: TakenIds,
    pub(super) outbox: Outbox,
    pub(super) members: Members,
    pub(super) job_sets: JobSets,
    /// The step executes follow-ups, which come in whole where there is any room.
    pub(super) passes_limit: bool,
    /// Whether the journal does not know yet the settings of the topic or of histories.
    pub(super) is_unsaved: bool,
    /// The newest fence that was given out.
    pub(super) fence: Fence,
    /// What it takes of the memory of the store.
    pub(super) memory: Share,
}

impl Topic {
    /// A step begins. `is_listened`: somebody wants its moves.
    pub(super) fn begin_step(&mut self, now: Now, is_listened: bool) {
        self.record.begin(is_listened, self.histories.are_kept(), !self.members.is_empty());
        (self.head_before, self.tick_before) = (self.jobs.head(), self.jobs.next_tick());
        self.passes_limit = false; // of a step that panicked
        self.jobs.set_now(now.micros());
    }

    pub(super) fn name(&self) -> &TopicName {
        self.name.as_ref().expect("only the topics of a store have sets")
    }

    /// The step has panicked: what it has done stays, and the topic goes on.
    pub(super) fn restore(&mut self) {
        self.jobs.restore();
        self.broadcasts.restore();
    }

    /// The step ends: what it recorded becomes part of the histories and of the statistics. Returns what to tell those who listen.
    pub(super) fn end_step(&mut self, now: Now) -> Option<Moves> {
        if self.shut.is_some_and(|limit| self.jobs.in_runs() < limit) {
            self.shut = None;
            self.signal_head(now, now.floor());
        }
        // A job that joins or leaves a group changes which others may be claimed, so only the end of the step shows the head.
        if self.jobs.have_groups()
            && let Some(head) = self.jobs.head()
            && self.head_before.is_none_or(|before| head < before)
        {
            self.signal_head(now, head);
        }
        // The watcher of a topic that waits for a gate sleeps past the head, but comes for each tick. The signal also finds out whether it lives.
        if let Some(tick) = self.jobs.next_tick()
            && self.tick_before.is_none_or(|before| tick < before)
        {
            self.signal_head(now, tick);
        }
        self.taken.forget(now);
        let (moves, counts) = self.record.take();
        if let Some(counts) = counts {
            self.statistics.add(now, &counts);
        }
        if !self.members.is_empty() && !moves.is_empty() {
            let (name, jobs) = (self.name().clone(), &self.jobs);
            let ends = self.members.ends(&name, &moves, |id| jobs.get(id).is_some());
            self.tell(now, &ends);
        }
        // A step that ends the keeping of histories has no moves.
        if self.histories.are_kept() && !moves.is_empty() {
            let (jobs, broadcasts) = (&self.jobs, &self.broadcasts);
            let is_gone = |id: &JobId| jobs.get(id).is_none() && !broadcasts.contains(id);
            self.histories.keep(now.floor(), &moves, is_gone);
        }
        self.record.told(now, moves)
    }

    /// Sets what the topic keeps of the histories of its jobs from now on.
    pub(super) fn keep_history(&mut self, setting: HistorySetting) -> Result<(), StoreError> {
        let setting = setting.check()?;
        self.is_unsaved |= setting != self.histories.setting();
        self.histories.set(setting);
        Ok(())
    }

    /// The signals that the last step wants sent.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        debug_assert_eq!(self.jobs.len(), self.jobs.in_places(), "a job is in exactly one place");
        debug_assert!(self.jobs.len() > 32 || self.jobs.is_consistent(), "slots and indexes agree");
        self.notices.take()
    }

    /// Counts what the topic takes in memory now.
    pub(super) fn count_memory(&mut self) {
        let beside = self.broadcasts.bytes + self.histories.kept.bytes + self.taken.bytes + self.outbox.bytes;
        let of_sets = self.members.bytes + self.job_sets.bytes;
        self.memory.count(self.jobs.bytes() + beside + of_sets);
    }

    /// Whether the topic keeps no job, no broadcast, no follow-up and no job set.
    pub(crate) fn is_empty(&self) -> bool {
        let has_sets = !self.job_sets.is_empty();
        self.jobs.len() == 0 && self.broadcasts.len() == 0 && self.outbox.waiting() == 0 && !has_sets
    }

    /// The state of a job. A waiting broadcast counts as DELAYED and hides a DONE job of the same id.
    pub(super) fn state(&self, id: &JobId) -> Option<State> {
        match self.jobs.state(id) {
            None | Some(State::Done) if self.broadcasts.contains(id) => Some(State::Delayed),
            state => state,
        }
    }

    /// Moves a known job to DELAYED.
    pub(super) fn delay(&mut self, now: Now, id: &JobId, due: Timestamp) {
        self.signal_earlier_head(now, due);
        self.jobs.move_to(id, State::Delayed, due);
    }

    /// This signal reached no subscriber of the node that has a role: it has just died, and loses the role (rule 23).
    pub(super) fn does_not_listen(&mut self, node: &NodeId, signal: &Signal) {
        match signal {
            Signal::Due(_) => self.roles.free_watcher(node),
            Signal::Lease(teller, _) => self.roles.told_all(node, teller),
            Signal::BroadcastDue => _ = self.roles.free_publisher(node),
            Signal::Broadcast(_)
            | Signal::Command(..)
            | Signal::Paused
            | Signal::StateChanged
            | Signal::Outbox
            | Signal::Moves(_)
            | Signal::MovesMissed(_)
            | Signal::Interrupted(_)
            | Signal::Resubscribed => {}
        }
    }

    /// If `due` is before the head, tells the watcher when to come, or signals every node if there is no watcher (rule 23).
    pub(super) fn signal_earlier_head(&mut self, now: Now, due: Timestamp) {
        if self.is_before_head(due) && !self.jobs.have_groups() {
            self.signal_head(now, due);
        }
    }

    /// Tells one other node how long the new lease of `node` lasts, so that it looks at the leases then (rule 20).
    pub(super) fn tell_lease(&mut self, now: Now, node: &NodeId, end: Timestamp) {
        if let Some(to) = self.roles.tell_lease(now, node, end) {
            self.notices.push(to, Signal::Lease(node.clone(), end.since(now.floor())));
        }
    }

    pub(super) fn is_before_head(&self, due: Timestamp) -> bool {
        self.jobs.head().is_none_or(|head| due < head)
    }

    /// Tells the watcher, or every node if there is no watcher, that the head is earlier.
    pub(super) fn signal_head(&mut self, now: Now, due: Timestamp) {
        match self.roles.expect_watcher(now, due) {
            Some(watcher) => self.notices.due_at(watcher, due),
            None => self.notices.due(),
        }
    }
}
