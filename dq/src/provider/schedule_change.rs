//! Pause and resume of one schedule: a change of its definition that names the version it was read with.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::call::{Calls, passed};
use super::change::changed;
use super::change_error::{ChangeError, ChangeRefusal};
use super::deferred::Deferred;
use super::inbox::Inbox;
use super::limit;
use super::request::{Deadline, Request};
use super::root::Root;
use super::schedule_error::ScheduleError;
use super::schedule_pages::stored;
use super::seen_schedule::SeenSchedule;
use super::setting::this_process;
use crate::job::{BadName, JobId, State};
use crate::schedule::{Definition, SchedulePause, schedule_id};
use crate::store::{ChangeKind, Due, JobChange, LONGEST_AUTHOR, LONGEST_REASON};
use crate::time::{Delay, IntoDelay, Timestamp};

/// How long to wait for a node that adds the jobs of a tick just now.
const TICKING: Duration = Duration::from_millis(50);

type Answer = Result<SeenSchedule, ScheduleError>;

/// Pauses a schedule, or ends its pause, when this is awaited. Made by
/// [`Provider::pause_schedule`](super::Provider::pause_schedule) and
/// [`resume_schedule`](super::Provider::resume_schedule).
///
/// Resolves to the schedule as it is now, or to a [`ScheduleError`]. Cancel safe until it is polled for the first time; dropped later,
/// the change may take effect or not. Calling again is safe.
///
/// # Panics
/// When it is polled again after it resolved.
#[must_use = "nothing changes until this is awaited"]
pub struct ChangeSchedule(Deferred<Draft, ScheduleError, BoxFuture<'static, Answer>>);

struct Draft {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    name: String,
    pause: Option<SchedulePause>,
    within: Option<Delay>,
    by: Option<Arc<str>>,
}

impl ChangeSchedule {
    pub(super) fn bad(error: BadName) -> Self {
        Self(Deferred::new(Err(error.into())))
    }

    pub(super) const fn new(
        root: Arc<Root>,
        inbox: Arc<Inbox>,
        name: String,
        pause: Option<SchedulePause>,
        by: Option<Arc<str>>,
    ) -> Self {
        Self(Deferred::new(Ok(Draft { root, inbox, name, pause, within: None, by })))
    }

    /// Says who pauses it, in at most 256 bytes; the [details](super::ScheduleDetails::pause) of the schedule show it. Defaults to the host,
    /// the program and the number of its process. The end of a pause leaves nothing, so it says nothing there.
    pub fn by(mut self, name: impl Into<String>) -> Self {
        if let Some(SchedulePause { by, .. }) = self.0.draft().and_then(|draft| draft.pause.as_mut()) {
            *by = name.into();
        }
        self
    }

    /// Sets how long this call may wait for the store, instead of the setting `call_total` (10 s by default): a `Duration` or a text
    /// such as `"500ms"`, at most an hour.
    pub fn within(mut self, time: impl IntoDelay) -> Self {
        if let Some(draft) = self.0.draft() {
            draft.within = Some(time.into_delay());
        }
        self
    }
}

impl Draft {
    fn start(mut self) -> Result<BoxFuture<'static, Answer>, ScheduleError> {
        let id = schedule_id(&self.name)?;
        if let Some(SchedulePause { reason, by }) = &mut self.pause {
            let size = reason.len();
            if reason.trim().is_empty() || size > LONGEST_REASON {
                return Err(ScheduleError::BadReason { size, limit: LONGEST_REASON });
            }
            if by.is_empty() {
                *by = this_process();
            }
            if by.len() > LONGEST_AUTHOR {
                return Err(ScheduleError::LongAuthor { size: by.len(), limit: LONGEST_AUTHOR });
            }
        }
        let within = limit::read(self.within.clone()).map_err(super::AddError::BadWithin)?;
        Ok(Box::pin(self.send(id, within)))
    }

    /// Reads the schedule and changes it, until nothing came between.
    async fn send(self, id: JobId, within: Option<Duration>) -> Answer {
        let Self { root, inbox, name, pause, by, .. } = self;
        let deadline = root.deadline(within);
        loop {
            let found = stored(&root, &inbox.key, std::slice::from_ref(&id), within).await?;
            let Some(found) = found.into_iter().next().flatten() else {
                return Err(ScheduleError::NoSuchSchedule { name });
            };
            let version = found.record.fixed().version;
            let definition = Definition::read(&found.record)
                .map_err(|reason| ScheduleError::Unreadable { name: name.clone(), reason })?;
            let definition = Definition { pause: pause.clone(), ..definition };
            let update = ChangeKind::Update(definition.to_record(0));
            match send(&root, &inbox, &id, update, (version, by.as_ref()), deadline).await {
                Ok(()) => {
                    if pause.is_none() {
                        align(&root, &inbox, &id, definition.tick, version + 1, deadline).await?;
                    }
                    return Ok(SeenSchedule::of(&root, &inbox, name, definition));
                }
                Err(error) if comes_between(&error) && root.environment.now() < deadline.at => {
                    passed(&root.environment, root.environment.now() + TICKING).await;
                }
                Err(error) if error.refusal() == Some(ChangeRefusal::NoSuchJob) => {
                    return Err(ScheduleError::NoSuchSchedule { name });
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Whether another try may do it: a tick or another change came between.
pub(super) fn comes_between(error: &ChangeError) -> bool {
    matches!(error.refusal(), Some(ChangeRefusal::OtherVersion(_) | ChangeRefusal::State(State::Running)))
}

/// Sends a change that names a version, and its caller.
pub(super) async fn send(
    root: &Arc<Root>,
    inbox: &Arc<Inbox>,
    id: &JobId,
    what: ChangeKind,
    (version, by): (u32, Option<&Arc<str>>),
    deadline: Deadline,
) -> Result<(), ChangeError> {
    let is_update = matches!(what, ChangeKind::Update(_));
    let change = JobChange { id: id.clone(), what, if_version: Some(version), by: by.cloned() };
    let request = if is_update { Request::Update(change) } else { Request::Change(change) };
    let mut calls = Calls::default();
    calls.post(root, inbox, vec![request], deadline).await;
    let answer = calls.answers().await.pop().expect("there is an answer to each request");
    // A schedule is no broadcast, so no change of it is left for a later batch.
    changed(&inbox.key.topic, id, answer).map_or(Ok(()), |changed| changed.map(drop))
}

/// Makes the schedule due at its tick. If something came between, a node has it, or another change: either sees to that.
pub(super) async fn align(
    root: &Arc<Root>,
    inbox: &Arc<Inbox>,
    id: &JobId,
    tick: Timestamp,
    version: u32,
    deadline: Deadline,
) -> Result<(), ChangeError> {
    match send(root, inbox, id, ChangeKind::Reschedule(Due::At(tick)), (version, None), deadline).await {
        Err(error) if error.refusal().is_none() => Err(error),
        _ => Ok(()),
    }
}

impl Future for ChangeSchedule {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        self.0.started(Draft::start)?.as_mut().poll(cx)
    }
}

/// Shows the topic and the name.
impl fmt::Debug for ChangeSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("ChangeSchedule");
        if let Deferred::Draft(Some(Ok(draft))) = &self.0 {
            f.field("topic", &draft.inbox.key.topic).field("name", &draft.name).field("pause", &draft.pause);
        }
        f.finish_non_exhaustive()
    }
}
