//! The handle.

use super::filter::{JobFilter, JobsPage, MAX_JOBS};
use super::groups::{GroupSummary, GroupsPage};
use super::history::HistoryEntry;
use super::job::{JobSummary, OldestJob};
use super::reason::NotRunReason;
use super::runs::running;
use super::topic::{TopicSummary, TopicsPage, holder_of};
use super::why::{Why, missing, of_group, reasons};
use crate::job::{GroupName, JobId, JobState, State, ToJobId};
use crate::provider::{CallError, Invalid, Provider, TopicProvider};
use crate::store::step::{DEFAULT_BYTES, MAX_JOBS as MAX_RECORDS};
use crate::store::{Cursor, DueCount, GroupsRequest, MAX_GROUPS, MAX_NODES, PageRequest};
use crate::time::Timestamp;

/// The most topics in a page.
pub const MAX_TOPICS: usize = 18;

/// How many topics are asked for follow-ups of another one.
const MAX_SOURCES: usize = 12;

/// How many commands a listing of names takes at most.
const LISTING: usize = 2;

/// How many jobs a filter looks at in one page at most.
pub const MAX_LOOKED_AT: usize = 10_000;

/// How many pages of the store one read takes at most.
const MAX_READS: usize = 10;

/// Looks at the topics of an app. Made by [`Provider::inspect`]; cheap to clone. Every read is cancel safe, changes nothing, and
/// waits for the store at most `call_deadline` (10 s by default) for each of its queries.
#[derive(Debug, Clone)]
pub struct Inspector {
    pub(super) provider: Provider,
}

impl Inspector {
    pub(crate) fn new(provider: &Provider) -> Self {
        Self { provider: provider.clone() }
    }

    pub(super) fn of(&self, topic: &str) -> Result<TopicProvider, CallError> {
        Ok(self.provider.topic(topic)?)
    }

    /// Reads a page of the topics that hold anything, behind the name `after`, in the order of their names: up to
    /// [`MAX_TOPICS`]. Their nodes are left out. It costs 20 commands of the store at most, however many topics there are: one for
    /// each topic, and two for every 500 names that it looks at. On Redis each of these names also costs a short check. A page can be short, or empty, where many names hold nothing: then
    /// [`next`](TopicsPage::next) says how far it looked. On Redis the directory forgets these names. A topic that the store cannot show
    /// hides no other one: its row has the [`error`](TopicSummary::error).
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn topics(&self, after: Option<&str>) -> Result<TopicsPage, CallError> {
        self.topics_up_to(MAX_TOPICS, after).await
    }

    /// Reads a smaller page of [`topics`](Self::topics): up to `most`, 1 to [`MAX_TOPICS`], with two commands more than these at most. It
    /// leaves room for another read of whoever may take 20 commands.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn topics_up_to(&self, most: usize, after: Option<&str>) -> Result<TopicsPage, CallError> {
        let most = most.clamp(1, MAX_TOPICS);
        let (mut names, mut next) = (Vec::new(), after.map(str::to_owned));
        for listings in 1.. {
            // Each listing takes two commands from the topics of the page.
            let room = (most + LISTING).saturating_sub(names.len() + LISTING * listings);
            if room == 0 {
                break;
            }
            let page = self.provider.topic_names(next.as_deref(), room).await?;
            names.extend(page.names);
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        let mut topics = Vec::with_capacity(names.len());
        for name in names {
            topics.push(match self.of(name.as_str())?.overview(0).await {
                Ok(seen) => TopicSummary::new(name, seen),
                Err(error) => match error.of_store() {
                    Some(why) if why.may_be_of_topic() => TopicSummary::unreadable(name, why.to_string()),
                    _ => return Err(error),
                },
            });
        }
        Ok(TopicsPage { topics, next })
    }

    /// Reads one topic, with up to 100 of the nodes that hold its jobs. It costs two queries at most.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn topic(&self, topic: &str) -> Result<TopicSummary, CallError> {
        let provider = self.of(topic)?;
        Ok(TopicSummary::new(provider.name().clone(), provider.overview(MAX_NODES).await?))
    }

    /// Reads a job; `None` if there is none. It costs one query, and does not name the node that runs the job;
    /// [`why`](Self::why) does.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn job(&self, topic: &str, id: impl ToJobId) -> Result<Option<JobSummary>, CallError> {
        let stored = self.of(topic)?.stored(id.to_job_id()?).await?;
        Ok(stored.map(JobSummary::new))
    }

    /// Reads a page of the jobs in one state that `filter` lets through, behind `after`: up to [`MAX_JOBS`]. It looks at up to
    /// [`MAX_LOOKED_AT`] jobs with up to 10 queries of 1 MiB each (8 of two commands each for RUNNING jobs), and says how far it looked.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn jobs(
        &self,
        topic: &str,
        state: State,
        filter: &JobFilter,
        after: Option<Cursor>,
    ) -> Result<JobsPage, CallError> {
        let provider = self.of(topic)?;
        if state == State::Running {
            return running(&provider, filter, after).await;
        }
        let mut page = JobsPage { jobs: Vec::new(), looked_at: 0, looked_until: None, next: None };
        let mut after = after.or_else(|| filter.start(state));
        let limit = if *filter == JobFilter::default() { MAX_JOBS } else { MAX_RECORDS };
        for _ in 0..MAX_READS {
            let read = provider.page(PageRequest { state, after, limit, bytes: DEFAULT_BYTES }).await?;
            let count = read.jobs.len();
            for (n, stored) in read.jobs.into_iter().enumerate() {
                let here = cursor_of(&stored.place, &stored.id);
                let job = JobSummary::new(stored);
                if filter.is_past(&job) {
                    return Ok(page);
                }
                page.looked_at += 1;
                page.looked_until = job.at.map(Timestamp::as_millis);
                if filter.matches(&job) {
                    page.jobs.push(job);
                }
                if page.jobs.len() == MAX_JOBS && (n + 1 < count || read.next.is_some()) {
                    page.next = Some(here);
                    return Ok(page);
                }
            }
            page.next.clone_from(&read.next);
            after = read.next;
            if after.is_none() {
                break;
            }
        }
        Ok(page)
    }

    /// Reads the first job of each state of a topic that has any: the next due, the longest UNACKED and the longest DEAD, and the DONE
    /// job that the store removes next. RUNNING jobs have no order of time, so none of them is among these. It costs four commands of
    /// the store.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn oldest(&self, topic: &str) -> Result<Vec<OldestJob>, CallError> {
        let oldest = self.of(topic)?.oldest().await?.into_iter();
        Ok(oldest.filter_map(|(id, place)| Some(OldestJob { id, state: place.state(), at: place.at()? })).collect())
    }

    /// Reads what happened to a job so far, oldest first: empty where its topic keeps no histories, or has forgotten this one. The setting
    /// `history_max` of a topic makes it keep them, and `history_retention` for a time after the end of the job. It costs one query of about
    /// 4 KiB.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn history(&self, topic: &str, id: impl ToJobId) -> Result<Vec<HistoryEntry>, CallError> {
        self.history_of(&self.of(topic)?, id.to_job_id()?).await
    }

    async fn history_of(&self, provider: &TopicProvider, id: JobId) -> Result<Vec<HistoryEntry>, CallError> {
        let history = provider.history(id).await?.unwrap_or_default();
        Ok(history.into_iter().map(HistoryEntry::new).collect())
    }

    /// Reads a page of the groups of a topic that have jobs or are paused, after the group `after`, in the order of their names: up to 100, each with the
    /// jobs that have a seat. It costs two commands of the store.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn groups(&self, topic: &str, after: Option<&str>) -> Result<GroupsPage, CallError> {
        let (provider, after) = (self.of(topic)?, after.map(GroupName::new).transpose().map_err(Invalid::BadGroup)?);
        let request = GroupsRequest { after, only: None, limit: MAX_GROUPS };
        let page = provider.groups(request).await?;
        let next = page.groups.last().map(|last| last.name.clone()).filter(|_| page.more);
        let groups = page.groups.into_iter().map(GroupSummary::new).collect();
        Ok(GroupsPage { topic: provider.name().clone(), groups, next })
    }

    /// Reads one group; `None` if it has no jobs and is not paused. It costs two commands of the store.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn group(&self, topic: &str, group: &GroupName) -> Result<Option<GroupSummary>, CallError> {
        let request = GroupsRequest { after: None, only: Some(group.clone()), limit: 1 };
        Ok(self.of(topic)?.groups(request).await?.groups.pop().map(GroupSummary::new))
    }

    /// Says why a job has not run, and what happened to it, also to one that is gone. It costs up to five commands of the store; two
    /// more for a due job of a group; up to ten more for a RUNNING job, to find its node among the first 500 that hold jobs; and up to 14
    /// more for a job that is not there, for the follow-ups of the first 12 topics of the app.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn why(&self, topic: &str, id: impl ToJobId) -> Result<Why, CallError> {
        let (provider, id) = (self.of(topic)?, id.to_job_id()?);
        let mut job = provider.stored(id.clone()).await?.map(JobSummary::new);
        let mut seen = TopicSummary::new(provider.name().clone(), provider.overview(MAX_NODES).await?);
        let (mut earlier, mut grouped) = (DueCount::default(), Vec::new());
        if let Some(job) = &mut job {
            job.store_time = seen.store_time;
            match (job.state, job.at) {
                (State::Delayed, Some(due)) if due <= seen.store_time => {
                    earlier =
                        provider.due_counts(vec![Timestamp::EPOCH, due]).await?.first().copied().unwrap_or_default();
                    if let Some(group) = job.group.clone() {
                        let request = GroupsRequest { after: None, only: Some(group), limit: 1 };
                        let group = provider.groups(request).await?.groups.pop();
                        grouped = group.map(|seen| of_group(seen, &id, job.store_time)).unwrap_or_default();
                    }
                }
                (State::Running, _) => {
                    let holder = holder_of(&provider, &id).await?;
                    job.node = holder.as_ref().map(|holder| holder.node.clone());
                    seen.nodes.extend(holder.filter(|holder| seen.nodes.iter().all(|seen| seen.node != holder.node)));
                }
                _ => {}
            }
        }
        let history = self.history_of(&provider, id.clone()).await?;
        let reasons = match &job {
            Some(job) => reasons(&seen, job, earlier, grouped),
            None => {
                let taken = provider.taken(id).await?.filter(|until| *until > seen.store_time);
                missing(&seen, &history, taken, self.follow_ups_for(&provider).await?)
            }
        };
        Ok(Why { reasons, job, history })
    }

    /// Which of the first topics of the app have follow-ups for this one.
    async fn follow_ups_for(&self, target: &TopicProvider) -> Result<Vec<NotRunReason>, CallError> {
        let mut waiting = Vec::new();
        for from in self.provider.topic_names(None, MAX_SOURCES).await?.names {
            let seen = self.of(from.as_str())?.outbox(MAX_RECORDS).await?;
            if let Some(seen) = seen.into_iter().find(|seen| seen.target == *target.name()) {
                let since = Timestamp::floor_micros(seen.oldest);
                waiting.push(NotRunReason::FollowUpsWait { from, waiting: seen.waiting, since });
            }
        }
        Ok(waiting)
    }
}

/// The cursor behind a job. Pages of RUNNING jobs have cursors of the store's own.
fn cursor_of(place: &JobState, id: &JobId) -> Cursor {
    Cursor { at: place.at().unwrap_or(Timestamp::EPOCH), id: id.to_string() }
}
