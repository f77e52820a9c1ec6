//! The schedules that a program's code defines: a node sends the schedules of each of its topics when `definitions` calls for it.
//!
//! Programs of different versions may define one schedule differently. A definition has a fingerprint, and names those that came before
//! it. So a node whose fingerprint the store does not know brings a newer definition, which takes the place of the other; one whose
//! fingerprint came before is older, and leaves the newer one. All of it is decided by changes that name the version they have read, so
//! of two nodes that start at the same time one decides after the other.

use std::time::Duration;

use futures_util::future::join_all;

use super::add::{DraftJob, new_job};
use super::added::added;
use super::error::{CallError, Invalid};
use super::options::Options;
use super::pages::stored;
use super::request::Request;
use super::root::Caller;
use super::schedule::{job_of_tick, kept};
use super::schedule_change::{comes_between, redefine};
use super::sending::{call_one, passed};
use super::store_now::StoreNow;
use super::typed::Provider;
use crate::job::{JobId, JobState, State, TopicName};
use crate::schedule::{Definition, Origin, PayloadOf, Periodic, Ticks, schedule_id};
use crate::store::step::MAX_JOBS;
use crate::store::{OnDuplicate, Stored};
use crate::time::Timestamp;

/// How many earlier definitions a schedule remembers.
const MAX_SUPERSEDED: usize = 32;
/// How long to wait for a node that adds the jobs of a tick just now, or that defines the same schedules.
pub(super) const AGAIN: Duration = Duration::from_millis(200);
/// How long to wait for a store that does not answer.
pub(super) const AGAIN_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// A schedule of the code, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct CodeSchedule {
    pub(crate) name: &'static str,
    pub(crate) id: JobId,
    fingerprint: u64,
    definition: Definition,
}

/// What a node does about a schedule that it found in the store.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Update(Box<Definition>),
}

impl Provider {
    /// Makes a schedule of the code ready to be sent, with this payload.
    pub(crate) fn code_schedule(&self, schedule: &Periodic, ticks: Ticks) -> Result<CodeSchedule, CallError> {
        let caller = self.caller(schedule.topic)?;
        let (payload, made) = match schedule.payload {
            PayloadOf::Start(make) => (make(), false),
            PayloadOf::Tick(_) => (Ok(b"null".to_vec()), true),
        };
        let payload = payload.map_err(|reason| Invalid::NoPayload { name: schedule.name.into(), reason })?;
        let id = schedule_id(schedule.name)?;
        let options = Options::default().check(&schedule.defaults, caller.environment())?;
        let job = new_job(&caller, DraftJob::untyped(Ok(payload)), &options)?;
        let definition = Definition {
            ticks,
            on_missed: schedule.on_missed,
            overlap: schedule.overlap,
            jitter: schedule.jitter,
            job: job_of_tick(job)?,
            tick: Timestamp::EPOCH,
            last: None,
            origin: Origin::Call,
            made,
            pause: None,
            gap: None,
        };
        let fingerprint = definition.fingerprint(schedule.revision);
        Ok(CodeSchedule { name: schedule.name, id, fingerprint, definition })
    }
}

/// Sends the schedules of a topic until the store has each of them, or a newer definition. An error says that the provider is closed.
pub(super) async fn define(caller: &Caller, schedules: &[CodeSchedule], now: &StoreNow) -> Result<(), CallError> {
    let topic = caller.topic();
    for schedules in schedules.chunks(MAX_JOBS) {
        let (mut left, mut has_failed): (Vec<_>, _) = (schedules.iter().collect(), false);
        while !left.is_empty() {
            let pause = match define_once(caller, &mut left, now).await {
                Ok(()) => AGAIN,
                Err(error) if error.is_stopped() => return Err(error),
                Err(error) => {
                    // Once is enough: the outage of the store has lines of its own.
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(%topic, %error, schedules = left.len(), "the schedules of the code are not defined yet; this node tries again");
                    }
                    AGAIN_AFTER_FAILURE
                }
            };
            if !left.is_empty() {
                passed(caller.environment(), caller.environment().now() + pause).await;
            }
        }
    }
    Ok(())
}

/// One read of the schedules that are left, and then what each of them needs, of all at the same time. Leaves those that something came
/// between and those that failed, and returns the last error.
async fn define_once(caller: &Caller, left: &mut Vec<&CodeSchedule>, now: &StoreNow) -> Result<(), CallError> {
    let ids: Vec<_> = left.iter().map(|schedule| schedule.id.clone()).collect();
    let found = stored(caller, &ids, None).await?;
    let each = left.iter().zip(&found).map(|(schedule, found)| schedule.define(caller, found.as_ref(), now.get()));
    let (mut defined, mut outcome) = (join_all(each).await.into_iter(), Ok(()));
    left.retain(|_| {
        let Some(Err(error)) = defined.next() else { return false };
        if !comes_between(&error) {
            outcome = Err(error);
        }
        true
    });
    outcome
}

impl CodeSchedule {
    /// Does what is to be done about the schedule.
    async fn define(&self, caller: &Caller, found: Option<&Stored>, now: Timestamp) -> Result<(), CallError> {
        let found = match found {
            None => return self.add(caller, OnDuplicate::Reject, now).await,
            // Another program has removed its place: the store knows no more when it is due.
            Some(found) if !matches!(found.place.state(), State::Delayed | State::Running) => {
                return self.add(caller, OnDuplicate::Replace, now).await;
            }
            Some(found) => found,
        };
        let topic = caller.topic();
        if let Step::Update(definition) = self.step(found, now, topic) {
            let due = if let JobState::Delayed { due } = found.place { due } else { definition.tick };
            let deadline = caller.root.deadline(None);
            redefine(caller, found, &definition, due, now, None, deadline).await?;
            tracing::info!(%topic, schedule = self.name, "this program has a newer definition of the schedule, which takes the place of the one in the store");
        }
        Ok(())
    }

    /// Adds the schedule. One that another node has added meanwhile is looked at again.
    async fn add(&self, caller: &Caller, on_duplicate: OnDuplicate, now: Timestamp) -> Result<(), CallError> {
        let topic = caller.topic();
        let Some(first) = self.definition.ticks.next_after(now) else {
            tracing::info!(%topic, schedule = self.name, "the schedule has no tick from now on, so it is not added");
            return Ok(());
        };
        let definition = self.with(Vec::new(), first, None);
        let request = Request::Add(kept(self.id.clone(), first, definition.to_record(0), on_duplicate));
        let (target, answer) = call_one(caller, request, caller.root.deadline(None)).await;
        added(target, answer)?;
        tracing::info!(%topic, schedule = self.name, "the schedule of the code is added");
        Ok(())
    }

    fn with(&self, superseded: Vec<u64>, tick: Timestamp, last: Option<JobId>) -> Definition {
        let origin = Origin::Code { fingerprint: self.fingerprint, superseded };
        Definition { origin, tick, last, ..self.definition.clone() }
    }

    fn step(&self, found: &Stored, now: Timestamp, topic: &TopicName) -> Step {
        // The line of the code takes the place of one that this version does not read.
        let by_code = |there: &Definition| matches!(there.origin, Origin::Code { .. });
        let unread = |error| Definition::with_unread_times(&found.record).filter(by_code).ok_or(error);
        let there = match Definition::read(&found.record).or_else(unread) {
            Ok(there) => there,
            Err(error) => {
                let advice = error.advice();
                tracing::error!(%topic, schedule = self.name, %error, "this node cannot read the schedule of this name in the store, and leaves it: {advice}");
                return Step::Nothing;
            }
        };
        let Origin::Code { fingerprint, superseded } = &there.origin else {
            tracing::warn!(%topic, schedule = self.name, "a call has added a schedule of this name, which holds; the one in the code is not used. Remove the other, and start again, to use it");
            return Step::Nothing;
        };
        if *fingerprint == self.fingerprint {
            return Step::Nothing;
        }
        if superseded.contains(&self.fingerprint) {
            tracing::warn!(%topic, schedule = self.name, "the store has a newer definition of the schedule, which holds. If this program is to replace it, for example because it went back to an earlier state, raise `revision` in its `#[periodic]`, or remove the schedule and start again");
            return Step::Nothing;
        }
        // The newest tick that has passed is still that of the old definition: missed ticks follow the new policy.
        let tick = match self.definition.ticks == there.ticks {
            true => Some(there.tick),
            false => self.definition.ticks.next_after(now),
        };
        let Some(tick) = tick else {
            tracing::warn!(%topic, schedule = self.name, "the definition of this program has no tick from now on, so the one in the store continues: remove it if it should not");
            return Step::Nothing;
        };
        let before = [*fingerprint].into_iter().chain(superseded.iter().copied()).take(MAX_SUPERSEDED).collect();
        let definition = Definition { pause: there.pause, ..self.with(before, tick, there.last) };
        Step::Update(Box::new(definition))
    }
}
