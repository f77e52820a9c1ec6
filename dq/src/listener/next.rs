//! Follow-ups, as a handler writes them: jobs that are added, broadcast or deleted in the step that settles its own job.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dq_grammar::InvalidValue;

use crate::environment::Environment;
use crate::job::{
    Codec, DelayJob, Delivery, GroupName, JobDefaults, JobId, Metadata, Record, ToJobId, TopicName, Weight, limits,
    to_json,
};
use crate::store::{
    Due, FOLLOW_UP_BYTES, FollowUpBatch, FollowUpBatches, MAX_FOLLOW_UPS, MAX_MEMBERS_AT_ONCE, MaxWaiting, NewJob,
    OnDead, OnDuplicate, SetChange, SetVerb,
};
use crate::telemetry;
use crate::time::{IntoDelay, MAX_DELAY, Timestamp};

/// Why a run cannot have these follow-ups. Nothing of them is kept, and the handler may decide otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FollowUpError {
    /// There are too many.
    #[error("the run has {count} follow-ups; the limit is {limit}. Add one job that adds the others in parts")]
    TooMany {
        /// How many there are.
        count: usize,
        /// The most.
        limit: usize,
    },
    /// They are too large.
    #[error(
        "the follow-ups of the run have {size} bytes; the limit is {limit}. Keep the data in a store of your own, and only its keys in \
         the payloads"
    )]
    TooLarge {
        /// Their size.
        size: usize,
        /// The most bytes.
        limit: usize,
    },
    /// The decision does not end the job.
    #[error(
        "only `ack` and `dead` have follow-ups: the job runs again after any other decision. Add the jobs when it ends"
    )]
    NotEnded,
    /// The topic acks on claim.
    #[error(
        "the topic acks on claim, so the job was settled before it ran: add the jobs with the provider, or take `ack = \"manual\"`"
    )]
    Acked,
    /// The channel is that of the rest of a batch.
    #[error("the channel of `Batch::rest` has no job of its own: give the follow-ups to the decision for one job")]
    NoJob,
    /// One of them is not valid.
    #[error("a follow-up for the topic `{topic}` is not valid: {reason}")]
    Invalid {
        /// The topic that it is for.
        topic: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// What follows a run, in order. Made by [`Decided::then`](crate::Decided::then).
#[derive(Default)]
pub struct FollowUps {
    follow_ups: Vec<(String, What)>,
}

/// One follow-up.
enum What {
    Add(Box<FollowUp>),
    Delete(Result<JobId, String>),
}

/// A job that follows; the methods change how it is added. Made by [`FollowUps::add`] and [`FollowUps::broadcast`].
pub struct FollowUp {
    payload: Result<Vec<u8>, String>,
    id: Option<Result<JobId, String>>,
    group: Option<Result<GroupName, String>>,
    weight: Option<Result<Weight, String>>,
    defaults: JobDefaults,
    when: When,
    on_duplicate: OnDuplicate,
    deliver: Delivery,
    headers: Vec<(String, String)>,
    set: Option<(String, Result<JobId, String>)>,
    on_dead: OnDead,
}

enum When {
    Usual,
    After(Result<Duration, InvalidValue>),
    At(Timestamp),
}

/// Shows how many there are, never a payload.
impl fmt::Debug for FollowUps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FollowUps({} follow-ups)", self.follow_ups.len())
    }
}

/// Shows the id, never the payload.
impl fmt::Debug for FollowUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowUp").field("id", &self.id).finish_non_exhaustive()
    }
}

impl FollowUps {
    /// Adds this job to its topic, as [`Provider::add`](crate::Provider::add) does: after the usual delay of the topic or of the payload,
    /// unless [`after`](FollowUp::after) or [`at`](FollowUp::at) says otherwise. If a job with its id exists, that one stays.
    #[expect(clippy::needless_pass_by_value, reason = "a job is given away")]
    pub fn add<J: DelayJob>(&mut self, job: J) -> &mut FollowUp {
        let next = FollowUp {
            payload: to_json(&job).map_err(|error| error.to_string()),
            id: job.job_id().map(|id| id.map_err(|bad| bad.to_string())),
            group: job.job_group().map(|group| group.map_err(|bad| bad.to_string())),
            weight: job.job_weight().map(|weight| weight.map_err(|bad| bad.to_string())),
            defaults: J::DEFAULTS,
            when: When::Usual,
            on_duplicate: OnDuplicate::Reject,
            deliver: J::DEFAULTS.deliver,
            headers: Vec::new(),
            set: None,
            on_dead: OnDead::Count,
        };
        self.follow_ups.push((J::TOPIC.to_owned(), What::Add(Box::new(next))));
        match self.follow_ups.last_mut() {
            Some((_, What::Add(next))) => next,
            _ => unreachable!("it was pushed just now"),
        }
    }

    /// Delivers this job to every node that listens to the broadcast channel of its topic.
    pub fn broadcast<J: DelayJob>(&mut self, job: J) -> &mut FollowUp {
        let next = self.add(job);
        next.deliver = Delivery::Broadcast;
        next
    }

    /// Deletes the job of this id in the topic of `J`. One that is not there is no error.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `.delete::<J>(7)`")]
    pub fn delete<J: DelayJob>(&mut self, id: impl ToJobId) {
        let id = id.to_job_id().map_err(|bad| bad.to_string());
        self.follow_ups.push((J::TOPIC.to_owned(), What::Delete(id)));
    }

    /// Checks all of it, and makes what a store takes. Generated ids come from `ids`.
    pub(crate) fn check(self) -> Result<Drafts, FollowUpError> {
        let count = self.follow_ups.len();
        if count > MAX_FOLLOW_UPS {
            return Err(FollowUpError::TooMany { count, limit: MAX_FOLLOW_UPS });
        }
        let (mut drafts, mut size) = (Vec::with_capacity(count), 0);
        for (topic, what) in self.follow_ups {
            let invalid = |reason: String| FollowUpError::Invalid { topic: topic.clone(), reason };
            let target = TopicName::new(topic.as_str()).map_err(|bad| invalid(bad.to_string()))?;
            let draft = match what {
                What::Delete(id) => Draft::Delete(id.map_err(invalid)?),
                What::Add(mut next) => {
                    let (set, on_dead) = (next.set.take(), next.on_dead);
                    let job = Box::new(next.check().map_err(invalid)?);
                    match set {
                        None => Draft::Add(job),
                        Some(_) if job.deliver != Delivery::Queue => {
                            return Err(invalid("a broadcast is not a member of a job set".to_owned()));
                        }
                        Some((home, set)) => {
                            let set = set.map_err(invalid)?;
                            let home = TopicName::new(home).map_err(|bad| invalid(bad.to_string()))?;
                            let draft = Draft::Member(set, on_dead, target, job);
                            size += home.as_str().len() + draft.size();
                            drafts.push((home, draft));
                            continue;
                        }
                    }
                }
            };
            size += target.as_str().len() + draft.size();
            drafts.push((target, draft));
        }
        if size > FOLLOW_UP_BYTES {
            return Err(FollowUpError::TooLarge { size, limit: FOLLOW_UP_BYTES });
        }
        Ok(Drafts(drafts.into()))
    }
}

impl FollowUp {
    /// Makes the job due this long after its own run has ended: a `Duration`, or a text such as `"15m"`; at most ten years.
    pub fn after(&mut self, delay: impl IntoDelay) -> &mut Self {
        self.when = When::After(delay.into_delay().duration());
        self
    }

    /// Makes the job due at this time of the store's clock; a time in the past means at once.
    pub fn at(&mut self, time: impl Into<Timestamp>) -> &mut Self {
        self.when = When::At(time.into());
        self
    }

    /// Sets the id, instead of the payload's own or a generated one.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `.id(7)`")]
    pub fn id(&mut self, id: impl ToJobId) -> &mut Self {
        self.id = Some(id.to_job_id().map_err(|bad| bad.to_string()));
        self
    }

    /// Replaces a job with this id.
    pub const fn replace_existing(&mut self) -> &mut Self {
        self.on_duplicate = OnDuplicate::Replace;
        self
    }

    /// Keeps a job with this id, and does not count that as a refusal.
    pub const fn keep_existing(&mut self) -> &mut Self {
        self.on_duplicate = OnDuplicate::Keep;
        self
    }

    /// Sets a header, which the handler reads with `job.header(name)`.
    pub fn header(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds the job as a member of the [set](crate::Provider::job_set) of this name whose last job is an `S`. A handler of a member adds to a
    /// set that is closed, too: its own job ends after that.
    pub fn member_of<S: DelayJob>(&mut self, set: impl AsRef<str>) -> &mut Self {
        self.set = Some((S::TOPIC.to_owned(), JobId::new(set).map_err(|bad| bad.to_string())));
        self
    }

    /// Says what the job does to its set if it becomes DEAD; it counts as ended by default.
    pub const fn on_dead(&mut self, on_dead: OnDead) -> &mut Self {
        self.on_dead = on_dead;
        self
    }

    fn check(mut self) -> Result<NewJob, String> {
        let defaults = self.defaults;
        let bounded = |delay: Duration| match delay > MAX_DELAY {
            true => Err(format!("the delay {} is longer than ten years", humantime::format_duration(delay))),
            false => Ok(delay),
        };
        let usual = bounded(defaults.delay)?;
        let (due, delay) = match self.when {
            When::Usual => (Due::Usual(usual), usual),
            When::After(delay) => {
                let delay = bounded(delay.map_err(|bad| bad.to_string())?)?;
                (Due::After(delay), delay)
            }
            When::At(at) => (Due::At(at), usual),
        };
        telemetry::carry(&mut self.headers, limits::HEADERS.most as usize);
        let metadata = Metadata {
            delay,
            retain: bounded(defaults.retain)?,
            priority: defaults.priority,
            group: self.group.transpose()?,
            weight: self.weight.transpose()?.unwrap_or_default(),
            headers: self.headers,
            ..Metadata::default()
        };
        metadata.check_new().map_err(|over| over.to_string())?;
        let payload = self.payload?;
        limits::PAYLOAD.check(payload.len() as u64).map_err(|over| over.to_string())?;
        let generated = self.id.is_none();
        let id = self.id.unwrap_or_else(|| Ok(JobId::generated(0, 0)))?;
        if id.schedule_name().is_some() {
            return Err(format!("the id `{id}` belongs to a schedule"));
        }
        Ok(NewJob {
            id,
            generated,
            due,
            expires_after: defaults.expires_after,
            record: Record::new(&metadata, Codec::Json, &payload),
            on_duplicate: self.on_duplicate,
            deliver: self.deliver,
            max_waiting: MaxWaiting::of(&defaults),
            unique_for: defaults.unique_for.filter(|_| !generated),
        })
    }
}

/// Checked follow-ups. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drafts(Arc<[(TopicName, Draft)]>);

/// A checked follow-up; an id that is generated comes later.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Draft {
    Add(Box<NewJob>),
    Delete(JobId),
    /// A member of this set, whose target is the home of the set, and the topic of the job.
    Member(JobId, OnDead, TopicName, Box<NewJob>),
}

impl Draft {
    fn size(&self) -> usize {
        /// About what an outbox keeps beside the texts.
        const BESIDE: usize = 64;
        match self {
            Self::Add(job) => BESIDE + job.id.as_str().len() + job.record.as_bytes().len(),
            Self::Delete(id) => BESIDE + id.as_str().len(),
            Self::Member(set, _, topic, job) => {
                let names = set.as_str().len() + topic.as_str().len() + job.id.as_str().len();
                BESIDE + names + job.record.as_bytes().len()
            }
        }
    }
}

impl Drafts {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// What a store takes: a batch for each topic, or several where a job is deleted and added, or an id occurs twice. Within a topic the
    /// order stays.
    pub(crate) fn packed(&self, environment: &Environment) -> FollowUpBatches {
        let mut targets: Vec<(&TopicName, Vec<FollowUpBatch>)> = Vec::new();
        for (target, draft) in self.0.iter() {
            let at = targets.iter().position(|(known, _)| *known == target).unwrap_or_else(|| {
                targets.push((target, Vec::new()));
                targets.len() - 1
            });
            let batches = &mut targets[at].1;
            let job_of = |job: &NewJob| {
                let id = if job.generated { environment.job_id() } else { job.id.clone() };
                NewJob { id, ..job.clone() }
            };
            match (draft, batches.last_mut()) {
                (Draft::Member(set, on_dead, topic, job), last) => {
                    let member = (topic.clone(), job_of(job));
                    match last {
                        Some(FollowUpBatch::Set(SetChange {
                            set: known,
                            what: SetVerb::Add(known_on_dead, members),
                        })) if known == set && known_on_dead == on_dead && members.len() < MAX_MEMBERS_AT_ONCE => {
                            members.push(member);
                        }
                        _ => {
                            let what = SetVerb::Add(*on_dead, vec![member]);
                            batches.push(FollowUpBatch::Set(SetChange { set: set.clone(), what }));
                        }
                    }
                }
                (Draft::Add(job), last) => {
                    let job = job_of(job);
                    match last {
                        Some(FollowUpBatch::Add(jobs)) if jobs.iter().all(|other| other.id != job.id) => jobs.push(job),
                        _ => batches.push(FollowUpBatch::Add(vec![job])),
                    }
                }
                (Draft::Delete(id), Some(FollowUpBatch::Delete(ids))) => ids.push(id.clone()),
                (Draft::Delete(id), _) => batches.push(FollowUpBatch::Delete(vec![id.clone()])),
            }
        }
        let mut follow_ups = FollowUpBatches::default();
        for (target, batches) in targets {
            batches.iter().for_each(|batch| follow_ups.push(target.clone(), batch));
        }
        follow_ups
    }
}
