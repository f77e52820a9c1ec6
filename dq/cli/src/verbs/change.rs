//! `dq requeue`, `dq delete`, `dq run-now` and `dq reschedule`: one job, or all that a filter lets through.

use std::time::Duration;

use clap::Args;
use dq::Provider;
use dq::inspect::{Bulk, BulkAction, Inspector};
use dq::job::State;
use dq::provider::{BulkResult, CallError, CommandOutcome, Refusal};
use dq::time::Timestamp;
use serde::Serialize;

use super::show::no_such_job;
use super::topics::known;
use super::which::{STATES, Target, count, quoted};
use crate::cursor;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::safe::safe;
use crate::screen::grouped;
use crate::session::Session;
use crate::when;
use crate::words::{one_of, word_of};

/// The arguments of `dq requeue`.
#[derive(Debug, Args)]
pub struct RequeueArguments {
    /// Which.
    #[command(flatten)]
    pub target: Target,
    /// The state of the jobs: dead or unacked
    #[arg(long, short, value_name = "STATE", value_parser = one_of(STATES), default_value = "dead")]
    pub state: State,
}

/// The arguments of `dq delete`.
#[derive(Debug, Args)]
pub struct DeleteArguments {
    /// Which.
    #[command(flatten)]
    pub target: Target,
    /// The state of the jobs, if no id is given
    #[arg(long, short, value_name = "STATE", value_parser = one_of(STATES), required_unless_present = "id")]
    pub state: Option<State>,
}

/// The arguments of `dq run-now`.
#[derive(Debug, Args)]
pub struct RunNowArguments {
    /// Which.
    #[command(flatten)]
    pub target: Target,
    // A filter of jobs that wait has no other state; the argument keeps the four verbs alike.
    /// The state of the jobs: delayed
    #[arg(long, short, value_name = "STATE", value_parser = one_of(STATES), default_value = "delayed")]
    pub state: State,
}

/// The arguments of `dq reschedule`.
#[derive(Debug, Args)]
pub struct RescheduleArguments {
    /// Which.
    #[command(flatten)]
    pub target: Target,
    /// The state of the jobs: delayed
    #[arg(long, short, value_name = "STATE", value_parser = one_of(STATES), default_value = "delayed")]
    pub state: State,
    /// How long from now the jobs are due
    #[arg(long, value_name = "TIME", value_parser = when::duration, required_unless_present = "at", conflicts_with = "at")]
    pub delay: Option<Duration>,
    /// When the jobs are due: `+15m`, or 2026-11-23T03:00:00Z
    #[arg(long, value_name = "TIME", value_parser = when::time, allow_hyphen_values = true)]
    pub at: Option<Timestamp>,
}

/// A change, as the four verbs make it of their arguments.
#[derive(Debug)]
pub(crate) struct VerbChange {
    verb: &'static str,
    /// `requeued`.
    done: &'static str,
    state: State,
    action: BulkAction,
    /// The words of the command line besides the target.
    words: String,
}

impl VerbChange {
    pub(crate) fn requeue(arguments: &RequeueArguments) -> Self {
        Self::new("requeue", "requeued", arguments.state, BulkAction::Requeue)
    }

    pub(crate) fn delete(arguments: &DeleteArguments) -> Self {
        let state = arguments.state.unwrap_or(State::Dead);
        Self::new("delete", "deleted", state, BulkAction::Delete)
    }

    pub(crate) fn run_now(arguments: &RunNowArguments) -> Self {
        Self::new("run-now", "made due now", arguments.state, BulkAction::RunNow)
    }

    pub(crate) fn reschedule(arguments: &RescheduleArguments) -> Self {
        let due = match (arguments.at, arguments.delay) {
            (Some(at), _) => at,
            (None, delay) => Timestamp::from(std::time::SystemTime::now()).after(delay.unwrap_or_default()),
        };
        let change = Self::new("reschedule", "rescheduled", arguments.state, BulkAction::Reschedule(due));
        Self { words: format!(" --at {due}"), ..change }
    }

    const fn new(verb: &'static str, done: &'static str, state: State, action: BulkAction) -> Self {
        Self { verb, done, state, action, words: String::new() }
    }

    fn fits(&self) -> Result<(), Failure> {
        let states: &[State] = match self.action {
            BulkAction::Requeue => &[State::Dead, State::Unacked],
            BulkAction::RunNow | BulkAction::Reschedule(_) => &[State::Delayed],
            _ => return Ok(()),
        };
        if states.contains(&self.state) {
            return Ok(());
        }
        let names: Vec<_> = states.iter().map(|state| word_of(STATES, state)).collect();
        Err(Failure::Usage(format!("`dq {}` changes {} jobs only", self.verb, names.join(" and "))))
    }
}

#[derive(Debug, Serialize)]
struct OneChanged<'a> {
    id: &'a str,
    /// The state in which it was found.
    found: Option<String>,
    changed: bool,
}

#[derive(Debug, Serialize)]
struct ManyChanged {
    #[serde(flatten)]
    progress: BulkResult,
    is_done: bool,
    next: Option<String>,
}

/// Changes one job or many.
pub(crate) async fn run(session: &mut Session<'_>, target: &Target, change: &VerbChange) -> Result<(), Failure> {
    change.fits()?;
    if target.says_nothing() {
        let verb = change.verb;
        return Err(Failure::Usage(format!(
            "`dq {verb}` needs the id of a job, a filter such as `--error TEXT`, or `--all`; `dq {verb} --help` lists the filters"
        )));
    }
    match &target.id {
        Some(id) => one(session, target, id, change).await,
        None => many(session, target, change).await,
    }
}

async fn one(session: &mut Session<'_>, target: &Target, id: &str, change: &VerbChange) -> Result<(), Failure> {
    let topic = &target.topic;
    if change.action == BulkAction::Delete {
        session.screen.confirm(&format!("delete job {id} of topic {topic}"))?;
    }
    let provider = session.provider().await?;
    let found = apply(&provider, target, id, change).await?;
    if session.screen.is_json() {
        return session.screen.json(&OneChanged { id, found: found.map(|state| state.to_string()), changed: true });
    }
    let later = match (change.action, found) {
        (BulkAction::Delete | BulkAction::Requeue, Some(State::Running)) => ", as soon as its run ends",
        _ => "",
    };
    session.screen.line(format_args!("{} {}{later}", change.done, safe(id)))
}

/// Changes a job. Returns the state in which it was found.
async fn apply(provider: &Provider, target: &Target, id: &str, change: &VerbChange) -> Result<Option<State>, Failure> {
    let (jobs, topic) = (provider.topic(target.topic.as_str())?, &target.topic);
    let call = match change.action {
        BulkAction::RunNow => jobs.run_now(id),
        BulkAction::Reschedule(due) => jobs.reschedule(id, due),
        _ => {
            let CommandOutcome { found, changed, .. } = match (change.action, target.if_version) {
                (BulkAction::Delete, Some(version)) => jobs.delete(id).if_version(version).await?,
                (BulkAction::Delete, None) => jobs.delete(id).await?,
                (_, Some(version)) => jobs.requeue(id).if_version(version).await?.into(),
                (_, None) => jobs.requeue(id).await?.into(),
            };
            let state = found.ok_or_else(|| no_such_job(topic, id))?;
            let refused =
                || Failure::Refused(format!("job `{id}` of topic `{topic}` was not {}: it is {state}", change.done));
            return if changed { Ok(found) } else { Err(refused()) };
        }
    };
    let call = match target.if_version {
        Some(version) => call.if_version(version),
        None => call,
    };
    match call.await {
        Ok(changed) => Ok(Some(changed.state)),
        Err(CallError::Refused { refusal: Refusal::NoSuchJob, .. }) => Err(no_such_job(topic, id)),
        Err(error) => Err(error.into()),
    }
}

async fn many(session: &mut Session<'_>, target: &Target, change: &VerbChange) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let inspector = provider.inspect();
    let (name, state) = (target.topic.as_str(), change.state);
    let all = count(&known(&provider, &target.topic).await?, state);
    let how_many = how_many(&inspector, target, state, all).await?;
    session.screen.confirm(&format!("{} {how_many} of topic {name}", change.verb))?;
    let mut bulk = inspector.bulk(name, state, target.filters.filter(), change.action)?;
    if let Some(after) = &target.cursor {
        bulk = bulk.starting_after(after.clone());
    }
    let progress = if session.screen.is_json() { Progress::hidden() } else { Progress::of_jobs() };
    progress.expect_jobs(all as u64);
    let done = steps(&mut bulk, &progress).await;
    progress.end();
    report(session, target, change, &bulk, done)
}

/// How many jobs it is going to change, as far as one page says.
async fn how_many(inspector: &Inspector, target: &Target, state: State, all: usize) -> Result<String, Failure> {
    if target.filters.is_empty() && target.cursor.is_none() {
        return Ok(format!("all {} {state} jobs", grouped(all)));
    }
    let page = inspector.jobs(target.topic.as_str(), state, &target.filters.filter(), target.cursor.clone()).await?;
    let found = grouped(page.jobs.len());
    Ok(match page.next {
        None => format!("{found} {state} jobs"),
        Some(_) => {
            let looked_at = grouped(page.looked_at);
            format!("{found} or more {state} jobs ({looked_at} of {} looked at)", grouped(all))
        }
    })
}

/// Takes all steps, until the user interrupts it. Returns whether all are taken.
async fn steps(bulk: &mut Bulk, progress: &Progress) -> Result<bool, Failure> {
    let mut looked_at = 0;
    loop {
        let interrupt = tokio::signal::ctrl_c();
        tokio::select! {
            step = bulk.step() => match step? {
                None => return Ok(true),
                Some(so_far) => {
                    progress.jobs((so_far.looked_at - looked_at) as u64);
                    looked_at = so_far.looked_at;
                }
            },
            // The next command starts with this page again, which changes no job twice.
            _ = interrupt => return Ok(false),
        }
    }
}

fn report(
    session: &mut Session<'_>,
    target: &Target,
    change: &VerbChange,
    bulk: &Bulk,
    done: Result<bool, Failure>,
) -> Result<(), Failure> {
    let (progress, is_done) = (bulk.progress(), matches!(done, Ok(true)));
    let next = bulk.cursor().filter(|_| !is_done).map(cursor::word);
    if session.screen.is_json() {
        session.screen.json(&ManyChanged { progress, is_done, next: next.clone() })?;
    } else {
        let untouched = match progress.untouched {
            0 => String::new(),
            n => format!("; {} have ended or moved meanwhile", grouped(n)),
        };
        let (changed, looked_at) = (grouped(progress.changed), grouped(progress.looked_at));
        session.screen.line(format_args!("{} {changed} jobs of {looked_at} looked at{untouched}", change.done))?;
    }
    let go_on = || {
        let (verb, topic, state) = (change.verb, quoted(target.topic.as_str()), word_of(STATES, &change.state));
        let all = if target.filters.is_empty() { " --all" } else { "" };
        let after = next.map_or_else(String::new, |next| format!(" --cursor {next}"));
        let words = format!("{}{all}{}{after}", target.filters.words(), change.words);
        format!("continue with: dq {verb} {topic} --state {state}{words}")
    };
    match done {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Interrupted(format!("interrupted; {}", go_on()))),
        Err(failure) => Err(Failure::Refused(format!("{failure}; {}", go_on()))),
    }
}
