//! The reference: one topic as the contract describes it, with plain maps and straight-line code.
//!
//! It is written without regard to how any store works: every query goes through all jobs, every rule is written where it is
//! needed, and jobs move only by [`State::apply`]; a move that is not in the table panics. Where the contract leaves the store
//! a choice (which of several jobs that are due in the same millisecond, which rows of a dead node first), a [`Choice`] says
//! what the store did. If the contract does not allow that choice, the answers differ.

mod adds;
mod broadcasts;
mod calls;
mod changes;
mod claims;
mod commands;
mod reclaim;
mod roles;
mod sequences;
mod set;
mod settle;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use self::calls::Calls;
use self::roles::Roles;
use dq::job::state::Event;
use dq::job::{Deliver, Fence, Isolation, JobId, Metadata, NodeId, ProducerId, Record, Sequence, State, Token};
use dq::store::step::LONGEST_LEASE;
use dq::store::{Answer, CommandKind, JobPlace, Request, Stored, TopicCounts, TopicState};
use dq::time::Timestamp;

/// One topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Topic {
    /// The store's clock, µs.
    pub(super) micros: u64,
    pub(super) jobs: BTreeMap<JobId, Job>,
    /// The waiting broadcasts: due time and record.
    pub(super) broadcasts: BTreeMap<JobId, (Timestamp, Record)>,
    /// How many broadcasts were published.
    pub(super) published: u64,
    pub(super) sequences: BTreeMap<NodeId, Sequence>,
    pub(super) leases: BTreeMap<NodeId, Timestamp>,
    /// The newest fence that was given out.
    fence: u64,
    roles: Roles,
    state: TopicState,
    calls: BTreeMap<ProducerId, Calls>,
}

/// One job.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) record: Record,
    pub(super) place: Place,
    /// Crashes since the last settled outcome.
    crashes: u32,
}

/// The place of a job, with its time.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Delayed(Timestamp),
    Running(Run),
    Unacked(Timestamp),
    Dead(Timestamp),
    Done(Timestamp),
}

/// A run with its row and its pending command (end and replacement).
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) node: NodeId,
    pub(super) token: Token,
    isolation: Option<Isolation>,
    end: Option<End>,
    replacement: Option<Replacement>,
}

/// The part of a pending command that ends the job, and the run that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    verb: CommandKind,
    fence: Option<Fence>,
}

/// The part of a pending command that takes the job's place.
#[derive(Debug, Clone)]
struct Replacement {
    job: AddedJob,
    only_if_ended: bool,
}

/// A job from an `add`, as the store keeps it.
#[derive(Debug, Clone)]
struct AddedJob {
    record: Record,
    due: Timestamp,
    deliver: Deliver,
}

/// What the store did where it had a choice: its jobs after the step. `None`: the lowest ids come first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<'a>(pub(super) Option<&'a BTreeMap<JobId, Stored>>);

impl Choice<'_> {
    /// Whether the job is in this state after the step.
    fn is(self, id: &JobId, state: State) -> bool {
        self.0.is_some_and(|jobs| jobs.get(id).is_some_and(|job| job.place.state() == state))
    }

    /// Whether the run goes on after the step.
    fn still_runs(self, id: &JobId, token: Token) -> bool {
        let place = self.0.and_then(|jobs| jobs.get(id)).map(|job| &job.place);
        matches!(place, Some(JobPlace::Running { holder: Some((_, fence)) }) if *fence == token.fence)
    }
}

impl Place {
    pub(super) const fn state(&self) -> State {
        match self {
            Self::Delayed(_) => State::Delayed,
            Self::Running(_) => State::Running,
            Self::Unacked(_) => State::Unacked,
            Self::Dead(_) => State::Dead,
            Self::Done(_) => State::Done,
        }
    }
}

impl Job {
    pub(super) fn metadata(&self) -> Metadata {
        self.record.metadata().expect("the model adds readable records")
    }

    /// Writes metadata and the parking fence, which only the store sets.
    fn write(&mut self, metadata: Option<&Metadata>, parked_by: Option<Fence>) {
        let metadata = metadata.cloned().unwrap_or_else(|| self.metadata());
        self.record = self.record.with_metadata(&Metadata { parked_by, ..metadata });
    }

    /// Moves the job; the table must have this move.
    fn go(&mut self, event: Event, place: Place) {
        assert_eq!(self.place.state().apply(event), Ok(Some(place.state())), "the reference makes only legal moves");
        self.place = place;
    }
}

impl Topic {
    /// Executes the step that a node asks for. Where the contract leaves a choice to the store, `choice` decides.
    pub(super) fn step(&mut self, by: &NodeId, request: &Request, choice: Choice<'_>) -> Answer {
        match request {
            Request::Transfer(request) => Answer::Transfer(self.transfer(by, request, choice)),
            Request::Settle(request) => Answer::Settle(self.settle(by, request)),
            Request::Renew(request) => Answer::Renew(self.renew(by, request)),
            Request::Isolate(request) => Answer::Isolate(self.isolate(by, request)),
            Request::Exhaust(request) => Answer::Exhaust(self.exhaust(by, request)),
            Request::Reconcile(request) => Answer::Reconcile(self.reconcile(by, request)),
            Request::Reclaim(request) => Answer::Reclaim(self.reclaim(request, choice)),
            Request::Release(request) => Answer::Release(self.release(by, request)),
            Request::Sweep(request) => Answer::Sweep(self.sweep(by, request, choice)),
            Request::Publish(request) => Answer::Publish(self.publish(by, request)),
            Request::Wake(_) => {
                self.wake(by);
                Answer::Wake(())
            }
            Request::Scan(_) | Request::Audit(_) | Request::Recover(_) => {
                unreachable!("the model itself asks for the scan, and no job of the model loses its place")
            }
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::floor_micros(self.micros)
    }

    /// A due time this long after now: rounded up.
    fn after(&self, delay: Duration) -> Timestamp {
        Timestamp::ceil_micros(self.micros + delay.as_micros() as u64)
    }

    /// The time until `at`.
    fn until(&self, at: Timestamp) -> Duration {
        Duration::from_micros((at.as_millis() * 1_000).saturating_sub(self.micros))
    }

    /// The state of an id for adds and commands: a waiting broadcast counts as DELAYED.
    fn state(&self, id: &JobId) -> Option<State> {
        let job = self.jobs.get(id).map(|job| job.place.state());
        match job {
            Some(State::Done) | None if self.broadcasts.contains_key(id) => Some(State::Delayed),
            state => state,
        }
    }

    /// Removes a job; the table must have this move.
    fn remove_job(&mut self, id: &JobId, event: Event) -> Option<Record> {
        let job = self.jobs.remove(id)?;
        assert_eq!(job.place.state().apply(event), Ok(None), "the reference makes only legal moves");
        Some(job.record)
    }

    pub(super) fn run(&self, id: &JobId) -> Option<&Run> {
        match self.jobs.get(id).map(|job| &job.place) {
            Some(Place::Running(run)) => Some(run),
            _ => None,
        }
    }

    fn run_mut(&mut self, id: &JobId) -> Option<&mut Run> {
        match self.jobs.get_mut(id).map(|job| &mut job.place) {
            Some(Place::Running(run)) => Some(run),
            _ => None,
        }
    }

    /// The rows of a node, in order of the ids.
    pub(super) fn rows(&self, node: &NodeId) -> Vec<(JobId, Token)> {
        let runs = self.jobs.keys().filter_map(|id| Some((id, self.run(id)?)));
        runs.filter(|(_, run)| run.node == *node).map(|(id, run)| (id.clone(), run.token)).collect()
    }

    /// The jobs in a state, in order of time, then of the key.
    fn by_time<K: Ord>(&self, state: State, key: impl Fn(&JobId) -> K) -> Vec<(Timestamp, JobId)> {
        let mut ids: Vec<_> = self.jobs.iter().filter(|(_, job)| job.place.state() == state).collect();
        ids.sort_by_key(|(id, job)| (job.place.at(), key(id)));
        ids.into_iter().map(|(id, job)| (job.place.at(), id.clone())).collect()
    }

    /// The earliest due time.
    pub(super) fn head(&self) -> Option<Timestamp> {
        self.by_time(State::Delayed, |_| ()).first().map(|(due, _)| *due)
    }

    /// All pages of a place as one.
    pub(super) fn page(&self, state: State) -> Vec<Stored> {
        let holder = |id: &JobId| self.run(id).map(|run| run.node.clone());
        let ids = self.by_time(state, |id| (holder(id), id.clone()));
        ids.iter().map(|(_, id)| self.stored(id).expect("the job is in a place")).collect()
    }

    /// A job as a page shows it.
    pub(super) fn stored(&self, id: &JobId) -> Option<Stored> {
        let job = self.jobs.get(id)?;
        let place = match &job.place {
            Place::Delayed(due) => JobPlace::Delayed { due: *due },
            Place::Running(run) => JobPlace::Running { holder: Some((run.node.clone(), run.token.fence)) },
            Place::Unacked(since) => JobPlace::Unacked { since: *since },
            Place::Dead(since) => JobPlace::Dead { since: *since },
            Place::Done(until) => JobPlace::Done { until: *until },
        };
        Some(Stored { id: id.clone(), record: job.record.clone(), place, crashes: 0 })
    }

    /// A job as a query by id shows it: a waiting broadcast counts as DELAYED and hides a DONE job.
    pub(super) fn query(&self, id: &JobId) -> Option<Stored> {
        let stored =
            self.stored(id).filter(|stored| stored.place.state() != State::Done || !self.broadcasts.contains_key(id));
        let broadcast = || {
            let (due, record) = self.broadcasts.get(id)?.clone();
            Some(Stored { id: id.clone(), record, place: JobPlace::Delayed { due }, crashes: 0 })
        };
        let crashes = self.jobs.get(id).map_or(0, |job| job.crashes);
        stored.map(|stored| Stored { crashes, ..stored }).or_else(broadcast)
    }

    pub(super) fn counts(&self) -> TopicCounts {
        let of = |state| self.jobs.values().filter(|job| job.place.state() == state).count();
        let due = |job: &&Job| matches!(job.place, Place::Delayed(due) if due <= self.now());
        TopicCounts {
            clock: self.now(),
            delayed: of(State::Delayed),
            ready: self.jobs.values().filter(due).count(),
            running: of(State::Running),
            unacked: of(State::Unacked),
            dead: of(State::Dead),
            done: of(State::Done),
            broadcasts: self.broadcasts.len(),
            head: self.head(),
        }
    }

    /// The nodes whose leases have expired.
    pub(super) fn expired(&self) -> impl Iterator<Item = (&NodeId, Timestamp)> {
        self.leases.iter().map(|(node, end)| (node, *end)).filter(|(_, end)| *end <= self.now())
    }

    /// Cuts every lease to the longest lease, as a transfer and a scan do.
    pub(super) fn cut_leases(&mut self) {
        let longest = self.now().after(LONGEST_LEASE);
        self.leases.values_mut().for_each(|end| *end = longest.min(*end));
    }

    /// Checks that exactly the nodes that hold jobs have a lease.
    pub(super) fn assert_sound(&self) {
        let runs = self.jobs.keys().filter_map(|id| self.run(id));
        let holders: BTreeSet<_> = runs.map(|run| &run.node).collect();
        assert_eq!(self.leases.keys().collect::<BTreeSet<_>>(), holders, "the reference keeps rule 8");
    }
}

impl Place {
    /// The time that pages are ordered by.
    const fn at(&self) -> Timestamp {
        match self {
            Self::Running(_) => Timestamp::EPOCH,
            Self::Delayed(at) | Self::Unacked(at) | Self::Dead(at) | Self::Done(at) => *at,
        }
    }
}
