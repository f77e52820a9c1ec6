//! `dq show` and `dq why`.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use dq::Provider;
use dq::inspect::{HistoryEntry, JobSummary, NotRunReason};
use dq::job::{GroupName, KeptState, Priority, TopicName, Weight};
use dq::time::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::safe::{safe, safe_lines};
use crate::screen::grouped;
use crate::session::Session;
use crate::verbs::which::quoted;
use crate::when::beside;

/// The topic and the id of a job.
#[derive(Debug, Args)]
pub struct OneJob {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// The id
    #[arg(value_name = "ID")]
    pub id: String,
}

/// The arguments of `dq show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// Which.
    #[command(flatten)]
    pub job: OneJob,
    /// Show the payload, the kept state and the result too, which may be secret
    #[arg(long)]
    pub payload: bool,
}

/// What `--json` writes: the job, and the payload, the kept state and the result if they were asked for.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    job: &'a JobSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_state: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "<[HistoryEntry]>::is_empty")]
    history: &'a [HistoryEntry],
}

/// Shows a job.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &ShowArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let OneJob { topic, id } = &arguments.job;
    let job = provider.inspect().job(topic.as_str(), id).await?;
    let job = job.ok_or_else(|| no_such_job(topic, id))?;
    let history = provider.inspect().history(topic.as_str(), id).await?;
    let secrets = if arguments.payload { secrets_of(&provider, topic, id).await? } else { None };
    let (payload, [kept_state, result]) = secrets.map_or((None, [None, None]), |(payload, left)| (Some(payload), left));
    if session.screen.is_json() {
        let (mut json, mut bytes) = (None, None);
        if let Some(payload) = payload {
            match String::from_utf8(payload).map_err(std::string::FromUtf8Error::into_bytes).and_then(raw) {
                Ok(raw) => json = Some(raw),
                Err(odd) => bytes = Some(STANDARD.encode(odd)),
            }
        }
        let [kept_state, result] = [kept_state, result].map(|left| left.and_then(|left| raw(left).ok()));
        let shown = Shown { job: &job, payload: json, payload_base64: bytes, kept_state, result, history: &history };
        return session.screen.json(&shown);
    }
    lines(session, topic, &job)?;
    if let Some(payload) = payload {
        session.screen.line(format_args!("payload   {}", safe(&String::from_utf8_lossy(&payload))))?;
    }
    if let Some(state) = kept_state {
        session.screen.line(format_args!("kept      {}", safe(&state)))?;
    }
    if let Some(result) = result {
        session.screen.line(format_args!("result    {}", safe(&result)))?;
    }
    timeline(session, &history)
}

fn raw(text: String) -> Result<Box<RawValue>, Vec<u8>> {
    // JSON has line ends between its tokens only, and a line of output has none.
    let line = text.replace(['\n', '\r'], " ");
    RawValue::from_string(line).map_err(|_| text.into_bytes())
}

pub(super) fn no_such_job(topic: &TopicName, id: &str) -> Failure {
    Failure::Missing(format!(
        "topic `{topic}` has no job `{id}`: it has never been added, or it has run or was deleted, and was not kept"
    ))
}

/// The payload; the state that a run has kept, and the result.
type Secrets = (Vec<u8>, [Option<String>; 2]);

async fn secrets_of(provider: &Provider, topic: &TopicName, id: &str) -> Result<Option<Secrets>, Failure> {
    let Some(seen) = provider.topic(topic.as_str())?.get(id).await? else { return Ok(None) };
    let unreadable = |bad| Failure::Refused(format!("the payload cannot be read: {bad}"));
    let (_, bytes) = seen.raw_payload().map_err(unreadable)?;
    let details = seen.details.as_ref().ok();
    let left =
        [details.and_then(|details| details.state.as_ref()), details.and_then(|details| details.result.as_ref())];
    let text = |left: &KeptState| String::from_utf8_lossy(left.as_bytes()).into_owned();
    Ok(Some((bytes.to_vec(), left.map(|left| left.map(text)))))
}

fn lines(session: &mut Session<'_>, topic: &TopicName, job: &JobSummary) -> Result<(), Failure> {
    let screen = &mut session.screen;
    let (id, state, now) = (safe(job.id.as_str()), job.state, Timestamp::from(SystemTime::now()));
    let title = screen.bold(&format!("{topic} {id}"));
    screen.line(title)?;
    let at = job.at.map_or_else(String::new, |at| format!(", {} {}", word(state), beside(at, now)));
    screen.line(format_args!("state     {state}{at}"))?;
    if let Some(reason) = &job.unreadable {
        return screen.line(format_args!("record    cannot be read: {}", safe(reason)));
    }
    if let Some(group) = &job.group {
        screen.line(format_args!("group     {group}"))?;
    }
    if job.priority != Priority::Normal {
        screen.line(format_args!("priority  {}", job.priority))?;
    }
    if job.weight != Weight::ONE {
        screen.line(format_args!("weight    {}", job.weight))?;
    }
    let cause = job.cause.map_or_else(String::new, |cause| format!(", the last time by {cause}"));
    let times = if job.attempts == 1 { "time" } else { "times" };
    screen.line(format_args!("failed    {} {times}{cause}", job.attempts))?;
    if job.crashes > 0 {
        screen.line(format_args!("crashed   {} nodes since it last came back without a crash", job.crashes))?;
    }
    if let Some(progress) = &job.progress {
        screen.line(format_args!("progress  {}", safe(&progress.to_string())))?;
    }
    if let Some(error) = &job.error {
        screen.line(format_args!("error     {}", safe_lines(error).replace('\n', "\n          ")))?;
    }
    for (name, value) in &job.headers {
        screen.line(format_args!("header    {}: {}", safe(name), safe(value)))?;
    }
    if let Some(at) = job.expires_at {
        screen.line(format_args!("expires   {}", beside(at, now)))?;
    }
    screen.line(format_args!("version   {}", job.version))?;
    if job.kept_state_bytes > 0 {
        let bytes = grouped(job.kept_state_bytes);
        screen.line(format_args!("keeps     {bytes} bytes that a run has left for the next one"))?;
    }
    if job.result_bytes > 0 {
        screen.line(format_args!("result    {} bytes", grouped(job.result_bytes)))?;
    }
    screen.line(format_args!("size      {} bytes", grouped(job.bytes)))
}

/// What happened to a job, where its topic keeps that.
fn timeline(session: &mut Session<'_>, history: &[HistoryEntry]) -> Result<(), Failure> {
    for (n, past) in history.iter().enumerate() {
        let label = if n == 0 { "history" } else { "" };
        session.screen.line(format_args!("{label:<10}{} {}", past.at, safe(&past.to_string())))?;
    }
    Ok(())
}

const fn word(state: dq::job::State) -> &'static str {
    use dq::job::State;
    match state {
        State::Delayed => "due",
        State::Unacked | State::Dead | State::Running => "since",
        State::Done => "kept until",
    }
}

/// Says why a job has not run.
pub(crate) async fn run_why(session: &mut Session<'_>, arguments: &OneJob) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let why = provider.inspect().why(arguments.topic.as_str(), &arguments.id).await?;
    if session.screen.is_json() {
        session.screen.json(&why)?;
    } else {
        // What is to be said of an unknown job is the failure.
        for reason in why.reasons.iter().filter(|reason| **reason != NotRunReason::Unknown) {
            let command = command(reason, arguments).map(|words| format!("\n    dq {words}")).unwrap_or_default();
            session.screen.line(format_args!("{}{}", safe_lines(&reason.to_string()), safe_lines(&command)))?;
        }
        timeline(session, &why.history)?;
    }
    match why.job {
        Some(_) => Ok(()),
        None if !why.history.is_empty() => Ok(()),
        None => Err(no_such_job(&arguments.topic, &arguments.id)),
    }
}

/// The command that does something about a reason, or shows more of it, without its `dq`.
fn command(reason: &NotRunReason, OneJob { topic, id }: &OneJob) -> Option<String> {
    let id = quoted(id);
    let of_group = |verb: &str, group: &GroupName| format!("groups {verb} {topic} {}", quoted(&group.to_string()));
    Some(match reason {
        NotRunReason::Unknown | NotRunReason::Gone { .. } => return None,
        NotRunReason::IdTaken { .. } => format!("add {topic} PAYLOAD --id {id} --replace"),
        NotRunReason::FollowUpsWait { from, .. } => format!("doctor {from}"),
        NotRunReason::NotDueYet { .. } | NotRunReason::RetryWaits { .. } => format!("run-now {topic} {id}"),
        NotRunReason::Paused { .. } | NotRunReason::Draining { .. } => format!("resume {topic}"),
        NotRunReason::TopicFull { .. }
        | NotRunReason::NoSlot { .. }
        | NotRunReason::RateSpent { .. }
        | NotRunReason::GroupRateSpent { .. } => format!("limit {topic}"),
        NotRunReason::GroupPaused { group, .. } | NotRunReason::GroupStopped { group, .. } => of_group("resume", group),
        NotRunReason::GroupFull { .. } => format!("groups list {topic}"),
        NotRunReason::Overtaken { .. } | NotRunReason::Behind { .. } => format!("jobs {topic}"),
        NotRunReason::Unacked { .. } | NotRunReason::Dead { .. } => format!("requeue {topic} {id}"),
        NotRunReason::NoListener { .. }
        | NotRunReason::Busy { .. }
        | NotRunReason::Next { .. }
        | NotRunReason::LeaseRanOut { .. } => format!("nodes {topic}"),
        _ => format!("show {topic} {id}"),
    })
}
