//! Adds: one job, or many with one call.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::added::{AddMode, Added, AddedMany, AddedOrKept, Extending, Once, added};
use super::call::{Call, Started, Verb};
use super::error::{CallError, Invalid, Target};
use super::inputs::When;
use super::options::{Adds, CheckedOptions, Options};
use super::request::{Answer, Request};
use super::root::Caller;
use super::sending::Calls;
use crate::config::NodeSettings;
use crate::job::{Codec, GroupName, InvalidName, InvalidValue, JobDefaults, JobId, Metadata, Record, ToJobId, Weight};
use crate::schedule::check_reserved;
use crate::store::{NewJob, OnDuplicate};

/// How many jobs beyond the limit are counted for the error.
const MAX_COUNTED: usize = 1_000_000;

/// How many jobs of a large call go to the store first, if it has nothing to do: it works on them while the others are made.
const FIRST_PART: usize = 250;

/// Adds a job. Made by [`Provider::add`](super::Provider::add), [`TopicProvider::add_json`](super::TopicProvider::add_json) and, as
/// `Add<Extending>`, by [`Provider::add_or_extend`](super::Provider::add_or_extend). The payload is serialized when the call is made.
///
/// Resolves to an [`Added`]; after `keep_existing` to an [`AddedOrKept`].
pub struct Add<A = Added> {
    adding: Adding,
    job: DraftJob,
    mode: PhantomData<fn() -> A>,
}

/// Adds jobs, all with the same options. Made by [`Provider::add_many`](super::Provider::add_many), by
/// [`Provider::add_many_after`](super::Provider::add_many_after) and [`Provider::add_many_at`](super::Provider::add_many_at) with a due
/// time for each, and as `AddMany<Extending>` by [`Provider::add_or_extend_many`](super::Provider::add_or_extend_many).
///
/// Resolves to an [`AddedMany`]: a result for each job, in order; or to an error of all of them, and then nothing was sent. A job with
/// an error of its own does not keep the others from being added. The call is no transaction: jobs of more than 1 MiB together, or
/// 500 and more jobs, go to the store as several requests.
pub struct AddMany<A = Added> {
    adding: Adding,
    jobs: Vec<DraftJob>,
    mode: PhantomData<fn() -> A>,
}

/// What the jobs of a call share.
pub(super) struct Adding {
    pub(super) caller: Caller,
    defaults: JobDefaults,
    pub(super) options: Options,
}

/// A job of a call.
pub(super) struct DraftJob {
    pub(super) payload: Result<Vec<u8>, serde_json::Error>,
    /// If it has one.
    pub(super) id: Option<Result<JobId, InvalidName>>,
    /// When it is due, if it is not as the options of the call say.
    pub(super) when: Option<When>,
    /// The group that the payload says.
    pub(super) group: Option<Result<GroupName, InvalidValue>>,
    /// The weight that the payload says.
    pub(super) weight: Option<Result<Weight, InvalidValue>>,
}

impl DraftJob {
    /// A job of which the payload says nothing but itself.
    pub(super) const fn untyped(payload: Result<Vec<u8>, serde_json::Error>) -> Self {
        Self { payload, id: None, when: None, group: None, weight: None }
    }
}

impl Adding {
    pub(super) fn new(caller: Caller, defaults: JobDefaults, on_duplicate: OnDuplicate) -> Self {
        Self { caller, defaults, options: Options { on_duplicate, ..Options::default() } }
    }

    /// Checks the options.
    pub(super) fn checked(mut self) -> Result<(Caller, CheckedOptions), Invalid> {
        self.options.carry_trace();
        let options = self.options.check(&self.defaults, self.caller.environment())?;
        Ok((self.caller, options))
    }
}

impl Add {
    /// What it adds, and where, with which options.
    pub(super) fn into_parts(self) -> (Adding, DraftJob) {
        (self.adding, self.job)
    }
}

impl<A: AddMode> Call<Add<A>> {
    pub(super) fn add(caller: Caller, job: DraftJob, defaults: JobDefaults) -> Self {
        Self::new(Add { adding: Adding::new(caller, defaults, A::KNOWN), job, mode: PhantomData })
    }

    /// Sets the id, instead of the payload's own or a generated one.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `.id(7)`")]
    pub fn id(self, id: impl ToJobId) -> Self {
        self.with(|add| add.job.id = Some(id.to_job_id()))
    }

    fn known<B: AddMode>(self, known: OnDuplicate) -> Call<Add<B>> {
        let add = self.set(|options| options.on_duplicate = known);
        add.map(|Add { adding, job, .. }| Add { adding, job, mode: PhantomData })
    }
}

impl<A: AddMode<Timing = Once>> Call<Add<A>> {
    /// If a job with this id exists, keeps it and succeeds. This makes an add safe to repeat.
    ///
    /// The answer is then an [`AddedOrKept`], because a job that is kept may be DEAD: it never runs, and the add has changed
    /// nothing. [`or_error_if_dead`](AddedOrKept::or_error_if_dead) makes an error of that.
    ///
    /// # Panics
    /// When the call was polled before.
    pub fn keep_existing(self) -> Call<Add<AddedOrKept>> {
        self.known(OnDuplicate::Keep)
    }

    /// If a job with this id exists, replaces it with the new one; a running job is replaced when its run ends.
    ///
    /// # Panics
    /// When the call was polled before.
    pub fn replace_existing(self) -> Call<Add> {
        self.known(OnDuplicate::Replace)
    }
}

impl<A: AddMode> Call<AddMany<A>> {
    pub(super) fn add_many(caller: Caller, jobs: impl IntoIterator<Item = DraftJob>, defaults: JobDefaults) -> Self {
        let adding = Adding::new(caller, defaults, A::KNOWN);
        limited(jobs).map_or_else(Self::bad, |jobs| Self::new(AddMany { adding, jobs, mode: PhantomData }))
    }

    fn known<B: AddMode>(self, known: OnDuplicate) -> Call<AddMany<B>> {
        let add = self.set(|options| options.on_duplicate = known);
        add.map(|AddMany { adding, jobs, .. }| AddMany { adding, jobs, mode: PhantomData })
    }
}

impl<A: AddMode<Timing = Once>> Call<AddMany<A>> {
    /// Where a job with the id of one of these exists, keeps it and succeeds. This makes the call safe to repeat.
    ///
    /// The results are then [`AddedOrKept`]s, because a job that is kept may be DEAD: it never runs.
    /// [`or_error_if_dead`](AddedMany::or_error_if_dead) makes an error of each such job.
    ///
    /// # Panics
    /// When the call was polled before.
    pub fn keep_existing(self) -> Call<AddMany<AddedOrKept>> {
        self.known(OnDuplicate::Keep)
    }

    /// Where a job with the id of one of these exists, replaces it with the new one; a running job is replaced when its run ends.
    ///
    /// # Panics
    /// When the call was polled before.
    pub fn replace_existing(self) -> Call<AddMany> {
        self.known(OnDuplicate::Replace)
    }
}

/// The jobs of a call, unless there are too many.
pub(super) fn limited(jobs: impl IntoIterator<Item = DraftJob>) -> Result<Vec<DraftJob>, Invalid> {
    let limit = NodeSettings::MAX_BATCH;
    let mut jobs = jobs.into_iter();
    let drafts = jobs.by_ref().take(limit).collect();
    match jobs.take(MAX_COUNTED).count() {
        0 => Ok(drafts),
        more => Err(Invalid::BatchTooLarge { what: "jobs", size: limit + more, limit }),
    }
}

/// The payload, unless it is too large or could not be written.
pub(super) fn checked_payload(
    caller: &Caller,
    payload: Result<Vec<u8>, serde_json::Error>,
) -> Result<Vec<u8>, Invalid> {
    let topic = || caller.topic().clone();
    let payload = payload.map_err(|source| Invalid::BadPayload { topic: topic(), source })?;
    let (size, limit) = (payload.len(), caller.root.settings.max_payload);
    if size > limit { Err(Invalid::PayloadTooLarge { topic: topic(), size, limit }) } else { Ok(payload) }
}

/// The job as the store gets it.
pub(super) fn new_job(caller: &Caller, job: DraftJob, options: &CheckedOptions) -> Result<NewJob, Invalid> {
    let (root, topic) = (&caller.root, || caller.topic().clone());
    let payload = checked_payload(caller, job.payload)?;
    let own_options = job.when.map(|when| options.due(when, &root.environment)).transpose()?;
    let options = own_options.as_ref().unwrap_or(options);
    let generated = job.id.is_none();
    let needs = match options.on_duplicate {
        OnDuplicate::Extend { .. } => Some("it could extend none"),
        _ => options.unique_for.map(|_| "`unique_for` needs one"),
    };
    if let Some(needs) = needs.filter(|_| generated) {
        return Err(Invalid::NoId { topic: topic(), needs });
    }
    let group = job.group.filter(|_| options.metadata.group.is_none());
    let group = group.transpose().map_err(Invalid::BadGroup)?;
    let weight = job.weight.filter(|_| !options.is_weighed).transpose().map_err(Invalid::BadWeight)?;
    let of_payload = (group.is_some() || weight.is_some()).then(|| {
        let shared = options.metadata.clone();
        Metadata { group: group.or_else(|| shared.group.clone()), weight: weight.unwrap_or(shared.weight), ..shared }
    });
    let id = job.id.unwrap_or_else(|| Ok(root.environment.job_id()))?;
    check_reserved(&id)?;
    Ok(NewJob {
        id,
        generated,
        due: options.due,
        expires_after: options.expires_after,
        record: Record::new(of_payload.as_ref().unwrap_or(&options.metadata), Codec::Json, &payload),
        on_duplicate: options.on_duplicate,
        deliver: options.deliver,
        max_waiting: options.max_waiting,
        unique_for: options.unique_for,
    })
}

impl<A: AddMode> Verb for Add<A> {
    type Output = A::Answer;

    fn start(self, within: Option<Duration>) -> Result<Started<A::Answer>, CallError> {
        let (caller, options) = self.adding.checked()?;
        let job = new_job(&caller, self.job, &options)?;
        Ok(Started::request(caller, Request::Add(job), within, answer_of::<A>))
    }
}

impl<A: AddMode> Verb for AddMany<A> {
    type Output = AddedMany<A::Answer>;

    fn start(self, within: Option<Duration>) -> Result<Started<Self::Output>, CallError> {
        let (caller, options) = self.adding.checked()?;
        Ok(Started::work(add_many::<A>(caller, self.jobs, options, within)))
    }
}

fn answer_of<A: AddMode>(target: Target, answer: Answer) -> Result<A::Answer, CallError> {
    let topic = target.topic.clone();
    added(target, answer).map(|added| A::answer(topic, added))
}

async fn add_many<A: AddMode>(
    caller: Caller,
    jobs: Vec<DraftJob>,
    options: CheckedOptions,
    within: Option<Duration>,
) -> Result<AddedMany<A::Answer>, CallError> {
    let (mut known, mut calls) = (HashSet::new(), Calls::default());
    let mut checked: Vec<Result<(), Invalid>> = Vec::with_capacity(jobs.len());
    let is_large = jobs.len() >= 2 * FIRST_PART && caller.inbox.sends_at_once();
    let mut part = if is_large { FIRST_PART } else { jobs.len() };
    let deadline = caller.root.deadline(within);
    let mut jobs = jobs.into_iter();
    while jobs.len() > 0 {
        let mut requests = Vec::with_capacity(part);
        checked.extend(jobs.by_ref().take(part).map(|job| {
            let job = new_job(&caller, job, &options)?;
            if !job.generated && !known.insert(job.id.clone()) {
                return Err(Invalid::RepeatedInBatch { id: job.id });
            }
            requests.push(Request::Add(job));
            Ok(())
        }));
        calls.post(&caller, requests, deadline).await;
        part = jobs.len();
        if part > 0 {
            tokio::task::yield_now().await; // so that the first part leaves while this task makes the rest
        }
    }
    let mut answers = calls.answers().await.into_iter();
    let result = |checked: Result<(), Invalid>| {
        checked?;
        let (target, answer) = answers.next().expect("there is an answer to each request");
        answer_of::<A>(target, answer)
    };
    Ok(AddedMany::new(checked.into_iter().map(result).collect()))
}

impl<A: AddMode> Adds for Add<A> {
    type Timing = A::Timing;

    fn options(&mut self) -> &mut Options {
        &mut self.adding.options
    }
}

impl<A: AddMode> Adds for AddMany<A> {
    type Timing = A::Timing;

    fn options(&mut self) -> &mut Options {
        &mut self.adding.options
    }
}

/// Shows the topic and the id, never the payload.
impl<A> fmt::Debug for Add<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Add").field("topic", &self.adding.caller).field("id", &self.job.id).finish_non_exhaustive()
    }
}

/// Shows the topic, never a payload.
impl<A> fmt::Debug for AddMany<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddMany").field("topic", &self.adding.caller).finish_non_exhaustive()
    }
}

const _: () = {
    const fn is_a_future_for_any_executor<T: Future + Send + Unpin + 'static>() {}
    is_a_future_for_any_executor::<Call<Add>>();
    is_a_future_for_any_executor::<Call<AddMany<AddedOrKept>>>();
    is_a_future_for_any_executor::<Call<Add<Extending>>>();
};
