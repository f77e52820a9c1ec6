//! Pause and resume of one schedule: a change of its definition that names the version it was read with.

use std::sync::Arc;
use std::time::Duration;

use super::call::{Call, Started, Verb};
use super::change::changed;
use super::error::{CallError, Doing, Invalid, Refusal, Target};
use super::pages::stored;
use super::request::{Deadline, Request};
use super::root::Caller;
use super::seen::ScheduleInfo;
use super::sending::{call_one, passed};
use super::setting::{this_process, within_limits};
use super::store_now::store_now;
use crate::job::{JobId, JobState, State};
use crate::schedule::{Definition, SchedulePause, schedule_id};
use crate::store::{ChangeKind, Due, JobChange, Stored, check_said};
use crate::time::Timestamp;

/// How long to wait for a node that adds the jobs of a tick just now.
const TICKING: Duration = Duration::from_millis(50);

/// Pauses a schedule, or ends its pause. Made by [`Provider::pause_schedule`](super::Provider::pause_schedule) and
/// [`resume_schedule`](super::Provider::resume_schedule).
///
/// Resolves to the schedule as it is now. Calling again is safe.
#[derive(Debug)]
pub struct ChangeSchedule {
    caller: Caller,
    name: String,
    pause: Option<SchedulePause>,
}

impl Call<ChangeSchedule> {
    pub(super) fn change_schedule(caller: Caller, name: String, pause: Option<SchedulePause>) -> Self {
        Self::new(ChangeSchedule { caller, name, pause })
    }

    /// Says who pauses it, in at most 256 bytes; the [details](super::ScheduleDetails::pause) of the schedule show it. Defaults to the host,
    /// the program and the number of its process. The end of a pause leaves nothing, so it says nothing there.
    pub fn by(self, name: impl Into<String>) -> Self {
        self.with(|verb| {
            if let Some(SchedulePause { by, .. }) = &mut verb.pause {
                *by = name.into();
            }
        })
    }
}

impl Verb for ChangeSchedule {
    type Output = ScheduleInfo;

    fn start(mut self, within: Option<Duration>) -> Result<Started<ScheduleInfo>, CallError> {
        let id = schedule_id(&self.name)?;
        if let Some(SchedulePause { reason, by }) = &mut self.pause {
            if reason.trim().is_empty() {
                return Err(Invalid::NoReason { what: "the pause of a schedule".to_owned() }.into());
            }
            if by.is_empty() {
                *by = this_process();
            }
            within_limits(check_said(reason, by))?;
        }
        Ok(Started::work(self.send(id, within)))
    }
}

impl ChangeSchedule {
    /// Reads the schedule and changes it, until nothing came between.
    async fn send(self, id: JobId, within: Option<Duration>) -> Result<ScheduleInfo, CallError> {
        let Self { caller, name, pause } = self;
        let deadline = caller.root.deadline(within);
        let refused = |refusal| {
            let target = Target { topic: caller.topic().clone(), id: Some(id.clone()), doing: Doing::Change };
            CallError::Refused { target, refusal }
        };
        loop {
            let found = stored(&caller, std::slice::from_ref(&id), within).await?.pop().flatten();
            let found = found.ok_or_else(|| refused(Refusal::NoSuchSchedule))?;
            let definition =
                Definition::read(&found.record).map_err(|bad| refused(Refusal::Unreadable(bad.to_string())))?;
            let mut definition = Definition { pause: pause.clone(), ..definition };
            let due = if let JobState::Delayed { due } = found.place { due } else { definition.tick };
            let mut now = Timestamp::EPOCH;
            if pause.is_none() {
                now = store_now(&caller, within).await?;
                definition.tick = definition.tick_from_now(definition.tick, now).unwrap_or(definition.tick);
            }
            match redefine(&caller, &found, &definition, due, now, caller.by.as_ref(), deadline).await {
                Ok(()) => return Ok(ScheduleInfo::of(&caller, name, definition)),
                Err(error) if comes_between(&error) && caller.environment().now() < deadline.at => {
                    passed(caller.environment(), caller.environment().now() + TICKING).await;
                }
                Err(error) if error.refusal() == Some(&Refusal::NoSuchJob) => {
                    return Err(refused(Refusal::NoSuchSchedule));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether another try may do it: a tick, another change or another add came between.
pub(super) fn comes_between(error: &CallError) -> bool {
    matches!(error.refusal(), Some(Refusal::OtherVersion(_) | Refusal::State(State::Running) | Refusal::Exists(_)))
}

/// Sends a change that names a version, and its caller.
async fn send(
    caller: &Caller,
    id: &JobId,
    what: ChangeKind,
    version: u32,
    by: Option<&Arc<str>>,
    deadline: Deadline,
) -> Result<(), CallError> {
    let change = JobChange { id: id.clone(), what, if_version: Some(version), by: by.cloned() };
    let (target, answer) = call_one(caller, Request::of_change(change), deadline).await;
    // A schedule is no broadcast, so no change of it is left for a later batch.
    changed(target, answer).map_or(Ok(()), |changed| changed.map(drop))
}

/// Writes a definition in place of the one that was found, and makes the schedule due at its tick. It was due at `due`, and the store's clock
/// shows `now`. An earlier due time in the future is written first: a program that dies in between leaves a schedule that is due before its
/// tick, and that then waits for it. So only another hand makes a schedule due later than its tick.
pub(super) async fn redefine(
    caller: &Caller,
    found: &Stored,
    definition: &Definition,
    due: Timestamp,
    now: Timestamp,
    by: Option<&Arc<str>>,
    deadline: Deadline,
) -> Result<(), CallError> {
    let (id, version) = (&found.id, found.record.fixed().version);
    let (update, tick) = (ChangeKind::Update(definition.to_record(0)), definition.tick);
    let due_at_tick = ChangeKind::Reschedule(Due::At(tick));
    if now < tick && tick < due && definition.pause.is_none() {
        send(caller, id, due_at_tick, version, None, deadline).await?;
        return send(caller, id, update, version + 1, by, deadline).await;
    }
    send(caller, id, update, version, by, deadline).await?;
    // A paused schedule is not due at its tick: it looks once an hour.
    if definition.pause.is_some() || tick == due {
        return Ok(());
    }
    match send(caller, id, due_at_tick, version + 1, None, deadline).await {
        // The definition is there by now, so no error may say that nothing was done.
        Err(CallError::NotDone { target, reason }) => Err(CallError::Unknown { target, reason }),
        Err(error) if error.refusal().is_none() => Err(error),
        // If something came between, a node has it, or another change: either sees to that.
        _ => Ok(()),
    }
}
