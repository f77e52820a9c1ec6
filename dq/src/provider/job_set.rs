//! Job sets: members in any topics, and a job that is added once when all of them have ended (rule 18).
//!
//! Each call goes through the queue of the topic of that job, so it is repeated until it is answered. A member counts once, by its topic and id, so a
//! caller that was interrupted may also repeat it with the same ids.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::add::{Add, Adding, DraftJob, limited, new_job};
use super::added::Once;
use super::call::{Call, Started, Verb};
use super::error::{CallError, Invalid, Refusal};
use super::options::{Adds, Options};
use super::query::Query;
use super::request::{Outcome, Request, member_bytes};
use super::root::Caller;
use super::sending::call_one;
use super::topic::TopicProvider;
use super::typed::{Provider, draft};
use crate::job::{DelayJob, Delivery, InvalidName, JobId, TopicName};
use crate::store::{
    FOLLOW_UP_BYTES, JobSetSummary, MAX_MEMBERS_AT_ONCE, MAX_WAITED_FOR, MemberEnd, NewJob, OnDead, OnDuplicate,
    SetChange, SetOutcome, SetVerb, SetsRequest,
};

/// A set of jobs whose last one is a `J`. Made by [`Provider::job_set`]. Cheap to clone.
pub struct JobSet<J> {
    provider: Provider,
    name: Result<JobId, InvalidName>,
    on_dead: OnDead,
    job: PhantomData<fn() -> J>,
}

impl Provider {
    /// A set of jobs, and a job that is added once when all of them have ended: a `J`, in whose topic the set lives. The name is that of the
    /// set in this topic, 1 to 256 bytes, and stays taken for a day after the set has ended.
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "import-row")]
    /// # struct Row { #[job(id)] row: u64 }
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "import-done")]
    /// # struct Done { #[job(id)] import: u64 }
    /// # async fn import(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// let set = jobs.job_set::<Done>("import-7");
    /// set.add_many((0..1_000).map(|row| Row { row })).await?;
    /// set.then(Done { import: 7 }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn job_set<J: DelayJob>(&self, name: impl AsRef<str>) -> JobSet<J> {
        let name = JobId::new(name);
        JobSet { provider: self.clone(), name, on_dead: OnDead::Count, job: PhantomData }
    }
}

impl TopicProvider {
    /// Reads the set of this name that lives in this topic, with up to 1,000 of the members that have not ended; `None` if there is none.
    pub fn job_set(&self, name: impl AsRef<str>) -> Call<Query<Option<JobSetSummary>>> {
        let one = |name| {
            Call::query(
                self.0.clone(),
                SetsRequest::One(name, MAX_WAITED_FOR),
                |store, key, request, _| store.job_sets(key, request),
                |mut sets| sets.pop(),
            )
        };
        JobId::new(name).map_or_else(Call::bad, one)
    }

    /// Lists the sets that live in this topic, those first that have not ended: at most 1,000 after the first `from`.
    pub fn job_sets(&self, from: usize, limit: usize) -> Call<Query<Vec<JobSetSummary>>> {
        self.asks(SetsRequest::Page { from, limit }, |store, key, request, _| store.job_sets(key, request))
    }
}

impl TopicProvider {
    /// Counts members in one topic as left.
    pub(crate) async fn members_left(&self, set: &JobId, topic: TopicName, ids: Vec<JobId>) -> Result<(), CallError> {
        let ends = ids.into_iter().map(|id| (id, MemberEnd::Left)).collect();
        change(&self.0, set, SetVerb::End(topic, ends), None).await.map(drop)
    }
}

impl<J: DelayJob> JobSet<J> {
    /// Says what members that are added from now on do to the set if they become DEAD; they count as ended by default.
    #[must_use]
    pub fn on_dead(self, on_dead: OnDead) -> Self {
        Self { on_dead, ..self }
    }

    /// Adds a job as a member, once the returned [`Call`] is awaited, unless one with its id in its topic is a member already. The set adds
    /// the job to its topic, usually within milliseconds: a job with its id that exists there keeps the member out, and counts it as
    /// left.
    pub fn add<M: DelayJob>(&self, job: M) -> Call<AddMembers> {
        self.add_many([job])
    }

    /// Adds up to 1,000 jobs as members, as [`add`](Self::add) does. They go to the store in requests of 128 members and 1 MiB, one after
    /// the other.
    pub fn add_many<M: DelayJob>(&self, jobs: impl IntoIterator<Item = M>) -> Call<AddMembers> {
        let members = || {
            let (home, set, on_dead) = (self.provider.caller(J::TOPIC)?, self.name.clone()?, self.on_dead);
            let adding = Adding::new(self.provider.caller(M::TOPIC)?, M::DEFAULTS, OnDuplicate::Reject);
            let drafts = limited(jobs.into_iter().map(|job| draft(&job, None)))?;
            Ok::<_, Invalid>(AddMembers { home, set, on_dead, adding, drafts })
        };
        members().map_or_else(Call::bad, Call::new)
    }

    /// Closes the set: once all its members have ended, this job is added, with what became of them in the headers `dq-set-acked`,
    /// `dq-set-dead` and `dq-set-left`. A set without members has none to wait for. Called again, it changes nothing.
    ///
    /// A delay of the job counts from the end of the last member.
    #[expect(clippy::needless_pass_by_value, reason = "a job is given away")]
    pub fn then(&self, job: J) -> Call<CloseSet> {
        let close = || {
            let adding = Adding::new(self.provider.caller(J::TOPIC)?, J::DEFAULTS, OnDuplicate::Reject);
            Ok::<_, InvalidName>(CloseSet { set: self.name.clone()?, adding, draft: draft(&job, None) })
        };
        close().map_or_else(Call::bad, Call::new)
    }

    /// Reads the set, once the returned [`Call`] is awaited, with up to 1,000 of the members that have not ended; `None` if there is none.
    pub fn seen(&self) -> Call<Query<Option<JobSetSummary>>> {
        match (self.provider.of::<J>(), &self.name) {
            (Ok(topic), Ok(name)) => topic.job_set(name.as_str()),
            (Err(error), _) => Call::bad(error),
            (_, Err(error)) => Call::bad(error.clone()),
        }
    }
}

impl Call<Add> {
    /// Makes the job a member of the [set](Provider::job_set) of this name that lives in the topic `home`, as [`JobSet::add`] does. For tools,
    /// which know no payload types; and with [`replace_existing`](Self::replace_existing) before it, a job that exists joins the set.
    ///
    /// # Panics
    /// When the call was polled before.
    pub fn member_of(self, home: &TopicProvider, set: impl AsRef<str>) -> Call<AddMembers> {
        let home = home.0.clone();
        let member = |add: Add, set| {
            let (adding, draft) = add.into_parts();
            AddMembers { home, set, on_dead: OnDead::Count, adding, drafts: vec![draft] }
        };
        JobId::new(set).map_or_else(Call::bad, |set| self.map(|add| member(add, set)))
    }

    /// Makes the job the last one of the [set](Provider::job_set) of this name that lives in its topic, as [`JobSet::then`] does.
    ///
    /// # Panics
    /// When the call was polled before.
    pub fn last_of(self, set: impl AsRef<str>) -> Call<CloseSet> {
        let last = |add: Add, set| {
            let (adding, draft) = add.into_parts();
            CloseSet { set, adding, draft }
        };
        JobId::new(set).map_or_else(Call::bad, |set| self.map(|add| last(add, set)))
    }
}

impl Call<AddMembers> {
    /// Says what the members do to the set if they become DEAD; they count as ended by default.
    pub fn on_dead(self, on_dead: OnDead) -> Self {
        self.with(|verb| verb.on_dead = on_dead)
    }
}

impl<J> Clone for JobSet<J> {
    fn clone(&self) -> Self {
        Self { provider: self.provider.clone(), name: self.name.clone(), on_dead: self.on_dead, job: PhantomData }
    }
}

/// Adds members to a set. Made by [`JobSet::add`], [`JobSet::add_many`] and [`Call::member_of`]; takes the options of an add.
///
/// Resolves to the set as it is then.
pub struct AddMembers {
    home: Caller,
    set: JobId,
    on_dead: OnDead,
    adding: Adding,
    drafts: Vec<DraftJob>,
}

/// Closes a set. Made by [`JobSet::then`] and [`Call::last_of`]; takes the options of an add.
///
/// Resolves to the set as it is then.
pub struct CloseSet {
    set: JobId,
    adding: Adding,
    draft: DraftJob,
}

/// The jobs as a set takes them, and their topic.
fn jobs_of(adding: Adding, drafts: Vec<DraftJob>) -> Result<(Caller, Vec<NewJob>), Invalid> {
    let (topic, options) = adding.checked()?;
    if options.deliver != Delivery::Queue {
        return Err(Invalid::NotInASet { topic: topic.topic().clone() });
    }
    let (mut jobs, mut known) = (Vec::with_capacity(drafts.len()), HashSet::new());
    for draft in drafts {
        let job = new_job(&topic, draft, &options)?;
        if !known.insert(job.id.clone()) {
            return Err(Invalid::RepeatedInBatch { id: job.id });
        }
        jobs.push(job);
    }
    Ok((topic, jobs))
}

impl Verb for AddMembers {
    type Output = JobSetSummary;

    fn start(self, within: Option<Duration>) -> Result<Started<JobSetSummary>, CallError> {
        let Self { home, set, on_dead, adding, drafts } = self;
        let (topic, jobs) = jobs_of(adding, drafts)?;
        let parts = in_parts(topic.topic(), jobs);
        Ok(Started::work(async move {
            let mut seen = None;
            for part in parts {
                seen = Some(change(&home, &set, SetVerb::Add(on_dead, part), within).await?);
            }
            Ok(seen.expect("there is a part"))
        }))
    }
}

/// The members in parts that a store takes at once; one part at least.
fn in_parts(topic: &TopicName, jobs: Vec<NewJob>) -> Vec<Vec<(TopicName, NewJob)>> {
    let (mut parts, mut bytes) = (vec![Vec::new()], 0);
    for job in jobs {
        let size = member_bytes(&job);
        let last = parts.last_mut().expect("there is a part");
        bytes += size;
        if last.len() == MAX_MEMBERS_AT_ONCE || bytes > FOLLOW_UP_BYTES && !last.is_empty() {
            bytes = size;
            parts.push(vec![(topic.clone(), job)]);
        } else {
            last.push((topic.clone(), job));
        }
    }
    parts
}

impl Verb for CloseSet {
    type Output = JobSetSummary;

    fn start(self, within: Option<Duration>) -> Result<Started<JobSetSummary>, CallError> {
        let Self { set, adding, draft } = self;
        let (home, mut jobs) = jobs_of(adding, vec![draft])?;
        let then = jobs.pop().expect("there is one job");
        Ok(Started::work(async move { change(&home, &set, SetVerb::Close(Box::new(then)), within).await }))
    }
}

/// Sends a change of a set until it is answered.
async fn change(
    home: &Caller,
    set: &JobId,
    what: SetVerb,
    within: Option<Duration>,
) -> Result<JobSetSummary, CallError> {
    let request = Request::JobSet(SetChange { set: set.clone(), what });
    let (target, answer) = call_one(home, request, home.root.deadline(within)).await;
    match answer {
        Ok(Outcome::JobSet(SetOutcome::Done(seen))) => Ok(seen),
        Ok(Outcome::JobSet(SetOutcome::Refused(refusal))) => {
            Err(CallError::Refused { target, refusal: Refusal::JobSet { set: set.clone(), refusal } })
        }
        Ok(_) => unreachable!("the outcome of a change of a set is of its kind"),
        Err(failed) => Err(CallError::failed(target, failed)),
    }
}

impl Adds for AddMembers {
    type Timing = Once;

    fn options(&mut self) -> &mut Options {
        &mut self.adding.options
    }
}

impl Adds for CloseSet {
    type Timing = Once;

    fn options(&mut self) -> &mut Options {
        &mut self.adding.options
    }
}

/// Shows the set and its topic.
impl<J> fmt::Debug for JobSet<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobSet").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Shows the set and the topic of the members, never a payload.
impl fmt::Debug for AddMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddMembers").field("set", &self.set).field("topic", &self.adding.caller).finish_non_exhaustive()
    }
}

/// Shows the set and its topic, never a payload.
impl fmt::Debug for CloseSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloseSet").field("set", &self.set).field("topic", &self.adding.caller).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Codec, Metadata, Record};

    fn jobs(many: usize, bytes: usize) -> Vec<NewJob> {
        let record = Record::new(&Metadata::default(), Codec::Json, &vec![b'1'; bytes]);
        (0..many).map(|n| NewJob::new(JobId::new(n.to_string()).unwrap(), record.clone())).collect()
    }

    #[test]
    fn a_request_is_bounded_by_members_and_by_bytes() {
        let topic = TopicName::new("t").unwrap();
        let parts = |many, bytes| in_parts(&topic, jobs(many, bytes)).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(parts(0, 1), [0], "a set may be made without members");
        assert_eq!(parts(300, 1), [MAX_MEMBERS_AT_ONCE, MAX_MEMBERS_AT_ONCE, 300 - 2 * MAX_MEMBERS_AT_ONCE]);
        assert_eq!(parts(5, 400 << 10), [2, 2, 1]);
        assert_eq!(parts(2, 2 << 20), [1, 1], "a large one goes alone");
    }
}
