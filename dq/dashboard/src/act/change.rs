//! One change, done and audited.

use std::time::Duration;

use dq::Provider;
use dq::job::{InvalidValue, JobState};
use dq::provider::{
    Call, CallError, Change, ChangeTopic, CommandAnswer, CommandOutcome, JobCommand, LimitKind, Pause, TopicProvider,
};
use dq::time::{Delay, Timestamp};
use serde::Serialize;

use super::Order;
use crate::app::App;
use crate::audit::audit;
use crate::failure::Failure;
use crate::user::User;

/// When a job is to be due.
#[derive(Debug, Clone)]
pub(crate) enum When {
    After(Duration),
    At(Timestamp),
}

/// What to do with a topic, or with a job, a schedule or a group of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserChange {
    /// The word for it, as forms and the audit log have it.
    pub(crate) action: String,
    /// The job, the schedule, the group or the kind of limit; empty for the topic itself.
    pub(crate) id: String,
    pub(crate) reason: String,
    /// How long a pause lasts; otherwise until somebody resumes.
    pub(crate) lasting: Option<String>,
    /// The new due time.
    pub(crate) due: String,
    /// The new value of a limit.
    pub(crate) value: String,
    /// The version that the job must have.
    pub(crate) if_version: Option<u32>,
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

    fn of(CommandOutcome { found, changed, .. }: CommandOutcome) -> Self {
        Self { changed, found: found.map(|state| state.to_string()), former: None }
    }
}

impl From<InvalidValue> for Failure {
    fn from(bad: InvalidValue) -> Self {
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
        match Delay::parse(text).duration() {
            Ok(delay) => Ok(Self::After(delay)),
            Err(_) => Ok(Self::At(text.parse()?)),
        }
    }
}

impl Order {
    /// The change of one thing that it asks for.
    pub(super) fn change(&self) -> Result<UserChange, Failure> {
        let if_version = match self.version.as_str() {
            "" => None,
            text => Some(text.parse().map_err(|_| Failure::Bad(format!("`{text}` is not a version")))?),
        };
        let id = if matches!(self.action.as_str(), "limit" | "clear_limit") { &self.limit } else { &self.id };
        Ok(UserChange {
            action: self.action.clone(),
            id: id.clone(),
            reason: self.reason.clone(),
            lasting: Some(self.lasting.trim().to_owned()).filter(|lasting| !lasting.is_empty()),
            due: self.due.clone(),
            value: self.value.clone(),
            if_version,
        })
    }
}

/// Does it, and says so in the audit log, whatever comes of it.
pub(crate) async fn apply(app: &App, user: &User, topic: &str, change: &UserChange) -> Result<Applied, Failure> {
    let done = perform(&app.provider, user, topic, change).await;
    match &done {
        Ok(Applied { changed: true, .. }) => audit(user, &change.action, topic, &change.id, "done"),
        Ok(_) => audit(user, &change.action, topic, &change.id, "nothing changed"),
        Err(failure) => audit(user, &change.action, topic, &change.id, &format!("failed: {failure}")),
    }
    done
}

async fn perform(provider: &Provider, user: &User, topic: &str, change: &UserChange) -> Result<Applied, Failure> {
    let topic = provider.by(user.by()).topic(topic).map_err(CallError::from)?;
    let (id, reason) = (change.id.as_str(), change.reason.as_str());
    let kind = || id.parse::<LimitKind>();
    Ok(match change.action.as_str() {
        "pause" => change.paused(topic.pause()).await?,
        "resume" => Applied::if_changed(topic.resume().await?.before.is_some()),
        "drain" => {
            topic.drain().reason(reason).await?;
            Applied::DONE
        }
        "undrain" => Applied::if_changed(topic.undrain().await?.before.is_some()),
        "limit" => {
            topic.set_limit(kind()?.read(&change.value)?).reason(reason).await?;
            Applied::DONE
        }
        "clear_limit" => Applied::if_changed(topic.clear_limit(kind()?).await?.before.is_some()),
        "requeue" => Applied::of(change.command(topic.requeue(id)).await?.into()),
        "delete" => Applied::of(change.command(topic.delete(id)).await?),
        "ack" => Applied::of(change.command(topic.ack(id)).await?.into()),
        "run_now" => change.moved(&topic, topic.run_now(id)).await?,
        "reschedule" => match When::read(&change.due)? {
            When::After(delay) => change.moved(&topic, topic.reschedule(id, delay)).await?,
            When::At(at) => change.moved(&topic, topic.reschedule(id, at)).await?,
        },
        "pause_schedule" => {
            topic.pause_schedule(id, reason).by(user.by()).await?;
            Applied::DONE
        }
        "resume_schedule" => {
            topic.resume_schedule(id).await?;
            Applied::DONE
        }
        "remove_schedule" => Applied::of(topic.remove_schedule(id).await?),
        "pause_group" => change.paused(topic.pause_group(id)?).await?,
        "resume_group" => {
            let resumed = topic.resume_group(id).await?;
            Applied::if_changed(resumed.pause.is_some() || !resumed.passed.is_empty())
        }
        word => return Err(Failure::Bad(format!("`{word}` is not an action"))),
    })
}

impl UserChange {
    async fn paused(&self, pause: Call<ChangeTopic<Pause, true>>) -> Result<Applied, Failure> {
        let pause = pause.reason(self.reason.as_str());
        match &self.lasting {
            Some(lasting) => pause.for_duration(lasting.as_str()).await?,
            None => pause.await?,
        };
        Ok(Applied::DONE)
    }

    /// The command, for a job with the version that it must have.
    fn command<A: CommandAnswer>(&self, call: Call<JobCommand<A>>) -> Call<JobCommand<A>> {
        match self.if_version {
            Some(version) => call.if_version(version),
            None => call,
        }
    }

    /// Gives a job another due time.
    async fn moved(&self, topic: &TopicProvider, call: Call<Change>) -> Result<Applied, Failure> {
        let former = due(topic, &self.id).await?;
        match self.if_version {
            Some(version) => call.if_version(version).await?,
            None => call.await?,
        };
        Ok(Applied { former, ..Applied::DONE })
    }
}

/// When a job is due, ms, so that whoever moves it can be offered the way back.
async fn due(topic: &TopicProvider, id: &str) -> Result<Option<u64>, Failure> {
    let place = topic.get(id).await?.map(|seen| seen.place);
    Ok(match place {
        Some(JobState::Delayed { due }) => Some(due.as_millis()),
        _ => None,
    })
}
