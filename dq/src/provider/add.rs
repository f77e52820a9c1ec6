//! One add: first a builder, then a future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::added::{Added, told};
use super::call::Call;
use super::error::AddError;
use super::inbox::{Adds, Inbox};
use super::options::{Options, Terms, option_methods};
use super::root::Root;
use crate::job::{BadName, Codec, JobDefaults, JobId, Record, ToJobId};
use crate::store::{NewJob, OnDuplicate};

/// A job that is added when this is awaited. Made by [`Provider::add`](super::Provider::add) and
/// [`TopicProvider::add_json`](super::TopicProvider::add_json).
///
/// The payload is serialized already. What is wrong with it, or with what the methods were given, is the error of the
/// future; then nothing was sent.
///
/// Cancel safe in this sense: dropped before it was sent, nothing is added; dropped later, the job is added all the same.
#[must_use = "adding does nothing until it is awaited"]
pub struct Add(Step);

enum Step {
    Bad(Option<AddError>),
    Draft(Box<Draft>),
    Called { call: Call<Adds>, inbox: Arc<Inbox>, id: JobId, on_duplicate: OnDuplicate },
}

struct Draft {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    id: Option<Result<JobId, BadName>>,
    payload: Vec<u8>,
    defaults: JobDefaults,
    options: Options,
}

impl Add {
    pub(super) fn bad(error: AddError) -> Self {
        Self(Step::Bad(Some(error)))
    }

    pub(super) fn new(
        root: Arc<Root>,
        inbox: Arc<Inbox>,
        id: Option<Result<JobId, BadName>>,
        payload: Result<Vec<u8>, serde_json::Error>,
        defaults: JobDefaults,
    ) -> Self {
        match payload {
            Ok(payload) => {
                Self(Step::Draft(Box::new(Draft { root, inbox, id, payload, defaults, options: Options::default() })))
            }
            Err(source) => Self::bad(AddError::BadPayload { topic: inbox.key.topic.clone(), source }),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        if let Step::Draft(draft) = &mut self.0 {
            change(&mut draft.options);
        }
        self
    }

    /// The id, instead of the one of the payload or a generated one.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `.id(7)`")]
    pub fn id(mut self, id: impl ToJobId) -> Self {
        if let Step::Draft(draft) = &mut self.0 {
            draft.id = Some(id.to_job_id());
        }
        self
    }

    option_methods!();
}

impl Draft {
    fn start(self) -> Result<Step, AddError> {
        let Self { root, inbox, id, payload, defaults, options } = self;
        let terms = options.check(&defaults, inbox.default_delay(), &root.environment)?;
        let job = new_job(&root, &inbox, id, &payload, &terms)?;
        let (id, on_duplicate) = (job.id.clone(), job.on_duplicate);
        Ok(Step::Called { call: Call::new(&root, Arc::clone(&inbox), job), inbox, id, on_duplicate })
    }
}

/// The job that is sent.
pub(super) fn new_job(
    root: &Root,
    inbox: &Inbox,
    id: Option<Result<JobId, BadName>>,
    payload: &[u8],
    terms: &Terms,
) -> Result<NewJob, AddError> {
    let limit = root.settings.payload_limit;
    if payload.len() > limit {
        return Err(AddError::PayloadTooLarge { topic: inbox.key.topic.clone(), size: payload.len(), limit });
    }
    let generated = id.is_none();
    Ok(NewJob {
        id: id.unwrap_or_else(|| Ok(root.environment.job_id()))?,
        generated,
        due: terms.due,
        expires_after: terms.expires_after,
        record: Record::new(&terms.metadata, Codec::Json, payload),
        on_duplicate: terms.on_duplicate,
        deliver: terms.deliver,
    })
}

impl Future for Add {
    type Output = Result<Added, AddError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Step::Draft(_) = &self.0
            && let Step::Draft(draft) = std::mem::replace(&mut self.0, Step::Bad(None))
        {
            self.0 = draft.start()?;
        }
        match &mut self.0 {
            Step::Called { call, inbox, id, on_duplicate } => {
                let outcome = ready!(Pin::new(call).poll(cx));
                let told = told(&inbox.key.topic, id.clone(), *on_duplicate, outcome);
                self.0 = Step::Bad(None);
                Poll::Ready(told)
            }
            Step::Bad(error) => Poll::Ready(Err(error.take().expect("an add is not polled after it resolved"))),
            Step::Draft(_) => unreachable!("a draft was started above"),
        }
    }
}

/// Topic and id; never the payload.
impl fmt::Debug for Add {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Step::Bad(error) => f.debug_struct("Add").field("error", error).finish(),
            Step::Draft(draft) => f
                .debug_struct("Add")
                .field("topic", &draft.inbox.key.topic)
                .field("id", &draft.id)
                .finish_non_exhaustive(),
            Step::Called { inbox, id, .. } => {
                f.debug_struct("Add").field("topic", &inbox.key.topic).field("id", id).finish_non_exhaustive()
            }
        }
    }
}

const _: () = {
    const fn is_a_future_that_can_go_anywhere<T: Future + Send + Unpin + 'static>() {}
    is_a_future_that_can_go_anywhere::<Add>();
};
