//! Ticks: a claimed job that is a schedule needs no handler. Its outcome adds the jobs of the tick and makes it due at the next.
//!
//! If a function of the program makes the payload, it runs on the user's runtime first, and the outcome waits for it.

use std::time::Duration;

use super::Outcomes;
use crate::context::topic::held::Held;
use crate::context::topic::moment::{Effect, Moment};
use crate::context::topic::stage::Stage;
use crate::job::{Codec, JobId, Record, Token};
use crate::schedule::{Definition, Made, Origin, PayloadOf, Periodic, schedule_name};
use crate::store::step::{Change, Claim, RejoinDue, Tick};
use crate::time::Timestamp;

/// When a schedule that this version of dq cannot read is due again: a node that can may take it.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(60);
/// When a schedule is due again whose function this program does not have: a node that has it may take it.
const NO_FUNCTION_PAUSE: Duration = Duration::from_secs(5);
/// When a schedule is due again whose function has failed.
const FAILED_PAUSE: Duration = Duration::from_secs(60);
/// When a schedule is due again during whose function processes died.
const CRASHED_PAUSE: Duration = Duration::from_secs(3_600);
/// How many processes may die during a function before it rests.
const MAX_CRASHES: u32 = 3;
/// How often the log names a schedule that no code of this program defines.
const STRANGER_PAUSE: Duration = Duration::from_secs(24 * 3_600);
/// How many such schedules a node remembers.
const MAX_STRANGERS: usize = 1_000;

impl Outcomes {
    /// What becomes of a claimed schedule at `clock`, the time of the store.
    pub(super) fn tick(&mut self, name: &str, claim: &Claim, clock: Timestamp, moment: &mut Moment) -> Stage {
        let topic = &self.parts.key.topic;
        // A tick is a change, so one that was begun before it does nothing behind it (rule 30).
        let version = claim.record.fixed().version.saturating_add(1);
        let read = Definition::read(&claim.record);
        let run = read.and_then(|schedule| {
            let run = schedule.run(name, claim.token.due, clock, version)?;
            Ok((schedule, run))
        });
        let (schedule, (tick, has_missed)) = match run {
            Ok(run) => run,
            Err(error) => {
                let advice = error.advice();
                tracing::error!(%topic, schedule = name, %error, "this node cannot read the schedule, and gives it back for a minute: {advice}");
                return again_after(UNREADABLE_PAUSE);
            }
        };
        let code = self.parts.schedules.iter().find(|code| code.name == name).copied();
        if code.is_none() && matches!(schedule.origin, Origin::Code { .. }) {
            self.name_stranger(name, moment.now);
        }
        let topic = &self.parts.key.topic;
        if has_missed {
            let (since, jobs) = (schedule.tick, tick.jobs.len());
            tracing::info!(%topic, schedule = name, %since, jobs, "ticks were missed; `on_missed` of the schedule decides what becomes of them");
        }
        if tick.next.is_none() {
            tracing::info!(%topic, schedule = name, "the schedule had its last tick, and is removed");
        }
        if schedule.made && !tick.jobs.is_empty() {
            return self.make(claim, name, code, tick, moment);
        }
        Stage::settling(Change::Tick(Box::new(tick)))
    }

    /// Calls the function that makes the payload.
    fn make(&self, claim: &Claim, name: &str, code: Option<Periodic>, tick: Tick, moment: &mut Moment) -> Stage {
        let topic = &self.parts.key.topic;
        let Some(PayloadOf::Tick(function)) = code.map(|code| code.payload) else {
            tracing::warn!(%topic, schedule = name, "a function makes the payload of the schedule, and this program does not have it: a node that has it may take the tick");
            return again_after(NO_FUNCTION_PAUSE);
        };
        if claim.crashes >= MAX_CRASHES {
            tracing::error!(%topic, schedule = name, crashes = claim.crashes, "processes died while this function made the payload of the schedule: the tick is tried again in an hour");
            return again_after(CRASHED_PAUSE);
        }
        moment.push(Effect::Make(claim.id.clone(), claim.token, function));
        Stage::Making(Box::new(tick))
    }

    /// A function has made a payload: the tick can go out. After a failure the tick stays, and is tried again.
    pub(crate) fn on_made(&self, id: &JobId, token: Token, made: Made, held: &mut Held) {
        let Some(job) = held.under(id, token) else { return };
        let Some(Stage::Making(tick)) = held.at(job).map(|job| &job.stage) else { return };
        let (topic, name) = (&self.parts.key.topic, schedule_name(id).unwrap_or_default());
        let stage = match made {
            Ok(payload) if payload.len() <= self.parts.node.max_payload => {
                let mut tick = tick.clone();
                for job in &mut tick.jobs {
                    job.record = Record::new(&job.record.metadata().unwrap_or_default(), Codec::Json, &payload);
                }
                Stage::settling(Change::Tick(tick))
            }
            Ok(payload) => {
                let (size, limit) = (payload.len(), self.parts.node.max_payload);
                tracing::error!(%topic, schedule = name, size, limit, "the payload that the function of the schedule made is too large: the tick is tried again in a minute");
                again_after(FAILED_PAUSE)
            }
            Err(error) => {
                tracing::error!(%topic, schedule = name, error, "the function of the schedule made no payload: the tick is tried again in a minute");
                again_after(FAILED_PAUSE)
            }
        };
        held.set(job, stage);
    }

    /// Names a schedule that no code of this program defines, once a day.
    fn name_stranger(&mut self, name: &str, now: Duration) {
        let topic = &self.parts.key.topic;
        if self.strangers.get(name).is_none_or(|at| now >= *at + STRANGER_PAUSE) && self.strangers.len() < MAX_STRANGERS
        {
            self.strangers.insert(name.to_owned(), now);
            tracing::warn!(%topic, schedule = name, "the schedule belongs to another program, or to another version of this one: no code here defines it. It continues; `remove_schedule` removes it");
        }
    }
}

const fn again_after(pause: Duration) -> Stage {
    Stage::settling(Change::Rejoin(RejoinDue::After(pause)))
}
