//! One change, done and audited.

use dq::Provider;
use dq::provider::{
    BadLimit, Call, CallError, ChangeTopic, CommandAnswer, JobCommand, JobPlace, Limit, LimitKind, Pause, TopicProvider,
};
use dq::time::Timestamp;
use serde::Serialize;

use super::Order;
use crate::app::App;
use crate::asked::time;
use crate::audit::audit;
use crate::failure::Failure;
use crate::user::{Role, User};

/// When a job is to be due.
#[derive(Debug, Clone)]
pub(crate) enum When {
    After(String),
    At(Timestamp),
}

/// A job, and the version that it must have.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) id: String,
    pub(crate) if_version: Option<u32>,
}

/// What to do.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Pause { reason: String, lasting: Option<String> },
    Resume,
    Drain { reason: String },
    Undrain,
    Limit { limit: Limit, reason: String },
    ClearLimit(LimitKind),
    Requeue(Named),
    Delete(Named),
    Ack(Named),
    RunNow(Named),
    Reschedule(Named, When),
    PauseSchedule { name: String, reason: String },
    ResumeSchedule(String),
    RemoveSchedule(String),
    PauseGroup { name: String, reason: String, lasting: Option<String> },
    ResumeGroup(String),
}

/// What a change did.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub(crate) struct Applied {
    /// Whether anything changed. A job that is not there, or is in a state in which this does nothing, stays as it is.
    pub(crate) changed: bool,
    /// The state in which the job was found, for requeue, delete and ack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<String>,
    /// When the job was due before, ms, for run-now and reschedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) former: Option<u64>,
}

impl Applied {
    /// Something was changed, and no state of a job matters.
    const DONE: Self = Self { changed: true, found: None, former: None };

    fn if_changed(changed: bool) -> Self {
        Self { changed, ..Self::DONE }
    }
}

impl From<BadLimit> for Failure {
    fn from(bad: BadLimit) -> Self {
        Self::Bad(bad.to_string())
    }
}

impl When {
    /// A delay such as `15m`, or a time.
    pub(crate) fn read(text: &str) -> Result<Self, Failure> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Failure::Bad("say when: a delay such as 15m, or a time such as 2026-11-23T14:05:00Z".into()));
        }
        if humantime::parse_duration(text).is_ok() {
            return Ok(Self::After(text.to_owned()));
        }
        time(text).map(Self::At)
    }
}

/// The change that an order is for.
pub(crate) fn change(order: &Order) -> Result<Change, Failure> {
    let (name, reason) = (order.id.clone(), order.reason.clone());
    let lasting = Some(order.lasting.trim().to_owned()).filter(|lasting| !lasting.is_empty());
    let kind = || order.limit.parse::<LimitKind>();
    let if_version = match order.version.as_str() {
        "" => None,
        text => Some(text.parse().map_err(|_| Failure::Bad(format!("`{text}` is not a version")))?),
    };
    let job = || Named { id: order.id.clone(), if_version };
    Ok(match order.action.as_str() {
        "pause" => Change::Pause { reason, lasting },
        "resume" => Change::Resume,
        "drain" => Change::Drain { reason },
        "undrain" => Change::Undrain,
        "limit" => Change::Limit { limit: kind()?.read(&order.value)?, reason },
        "clear_limit" => Change::ClearLimit(kind()?),
        "requeue" => Change::Requeue(job()),
        "delete" => Change::Delete(job()),
        "ack" => Change::Ack(job()),
        "run_now" => Change::RunNow(job()),
        "reschedule" => Change::Reschedule(job(), When::read(&order.due)?),
        "pause_schedule" => Change::PauseSchedule { name, reason },
        "resume_schedule" => Change::ResumeSchedule(name),
        "remove_schedule" => Change::RemoveSchedule(name),
        "pause_group" => Change::PauseGroup { name, reason, lasting },
        "resume_group" => Change::ResumeGroup(name),
        word => return Err(Failure::Bad(format!("`{word}` is nothing that can be done"))),
    })
}

impl Change {
    const fn word(&self) -> &'static str {
        match self {
            Self::Pause { .. } => "pause",
            Self::Resume => "resume",
            Self::Drain { .. } => "drain",
            Self::Undrain => "undrain",
            Self::Limit { .. } => "limit",
            Self::ClearLimit(_) => "clear_limit",
            Self::Requeue(_) => "requeue",
            Self::Delete(_) => "delete",
            Self::Ack(_) => "ack",
            Self::RunNow(_) => "run_now",
            Self::Reschedule(..) => "reschedule",
            Self::PauseSchedule { .. } => "pause_schedule",
            Self::ResumeSchedule(_) => "resume_schedule",
            Self::RemoveSchedule(_) => "remove_schedule",
            Self::PauseGroup { .. } => "pause_group",
            Self::ResumeGroup(_) => "resume_group",
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Pause { .. } | Self::Resume | Self::Drain { .. } | Self::Undrain => "",
            Self::Limit { limit, .. } => limit.kind().name(),
            Self::ClearLimit(kind) => kind.name(),
            Self::Requeue(job) | Self::Delete(job) | Self::Ack(job) | Self::RunNow(job) | Self::Reschedule(job, _) => {
                &job.id
            }
            Self::PauseSchedule { name, .. }
            | Self::ResumeSchedule(name)
            | Self::RemoveSchedule(name)
            | Self::PauseGroup { name, .. }
            | Self::ResumeGroup(name) => name,
        }
    }
}

/// Does it, and says so in the audit log, whatever comes of it.
pub(crate) async fn apply(app: &App, user: &User, topic: &str, change: Change) -> Result<Applied, Failure> {
    if let Err(failure) = app.allows(user, Role::Operate) {
        audit(user, change.word(), topic, change.id(), &format!("refused: {failure}"));
        return Err(failure);
    }
    let (word, id) = (change.word(), change.id().to_owned());
    let done = perform(&app.provider, user, topic, change).await;
    match &done {
        Ok(Applied { changed: true, .. }) => audit(user, word, topic, &id, "done"),
        Ok(_) => audit(user, word, topic, &id, "nothing changed"),
        Err(failure) => audit(user, word, topic, &id, &format!("failed: {failure}")),
    }
    done
}

async fn perform(provider: &Provider, user: &User, topic: &str, change: Change) -> Result<Applied, Failure> {
    let by = || user.by();
    let topic = provider.acting_as(by()).topic(topic).map_err(CallError::from)?;
    Ok(match change {
        Change::Pause { reason, lasting } => paused(topic.pause().reason(reason).by(by()), lasting).await?,
        Change::PauseGroup { name, reason, lasting } => {
            paused(topic.pause_group(&name)?.reason(reason).by(by()), lasting).await?
        }
        Change::Resume => Applied::if_changed(topic.resume().by(by()).await?.before.is_some()),
        Change::Drain { reason } => {
            topic.drain().reason(reason).by(by()).await?;
            Applied::DONE
        }
        Change::Limit { limit, reason } => {
            topic.set_limit(limit).reason(reason).by(by()).await?;
            Applied::DONE
        }
        Change::ClearLimit(kind) => Applied::if_changed(topic.clear_limit(kind).by(by()).await?.before.is_some()),
        Change::Undrain => Applied::if_changed(topic.undrain().by(by()).await?.before.is_some()),
        Change::PauseSchedule { name, reason } => {
            topic.pause_schedule(name, reason).by(by()).await?;
            Applied::DONE
        }
        Change::ResumeSchedule(name) => {
            topic.resume_schedule(name).await?;
            Applied::DONE
        }
        Change::ResumeGroup(name) => {
            let resumed = topic.resume_group(&name).await?;
            Applied::if_changed(resumed.pause.is_some() || !resumed.passed.is_empty())
        }
        job => of_job(&topic, job).await?,
    })
}

async fn paused(pause: Call<ChangeTopic<Pause, true>>, lasting: Option<String>) -> Result<Applied, Failure> {
    match lasting {
        Some(lasting) => pause.lasting(lasting).await?,
        None => pause.await?,
    };
    Ok(Applied::DONE)
}

async fn of_job(topic: &TopicProvider, change: Change) -> Result<Applied, Failure> {
    let outcome: dq::provider::CommandOutcome = match change {
        Change::Requeue(job) => command(topic.requeue(&job.id), &job).await?.into(),
        Change::Ack(job) => command(topic.ack(&job.id), &job).await?.into(),
        Change::Delete(job) => command(topic.delete(&job.id), &job).await?,
        Change::RemoveSchedule(name) => topic.remove_schedule(&name).await?,
        Change::RunNow(job) => return moved(topic, &job, topic.run_now(&job.id)).await,
        Change::Reschedule(job, When::After(delay)) => {
            return moved(topic, &job, topic.reschedule(&job.id, delay)).await;
        }
        Change::Reschedule(job, When::At(at)) => return moved(topic, &job, topic.reschedule(&job.id, at)).await,
        _ => return Err(Failure::NotThere("such change of a job")),
    };
    let found = outcome.found.map(|state| state.to_string());
    Ok(Applied { changed: outcome.changed, found, former: None })
}

/// The command, for a job with the version that it must have.
fn command<A: CommandAnswer>(call: Call<JobCommand<A>>, job: &Named) -> Call<JobCommand<A>> {
    match job.if_version {
        Some(version) => call.if_version(version),
        None => call,
    }
}

/// Gives a job another due time.
async fn moved(topic: &TopicProvider, job: &Named, call: Call<dq::provider::Change>) -> Result<Applied, Failure> {
    let former = due(topic, &job.id).await?;
    match job.if_version {
        Some(version) => call.if_version(version).await?,
        None => call.await?,
    };
    Ok(Applied { former, ..Applied::DONE })
}

/// When a job is due, ms, so that whoever moves it can be offered the way back.
async fn due(topic: &TopicProvider, id: &str) -> Result<Option<u64>, Failure> {
    let place = topic.get(id).await?.map(|seen| seen.place);
    Ok(match place {
        Some(JobPlace::Delayed { due }) => Some(due.as_millis()),
        _ => None,
    })
}
