//! The verbs that change what waits, of both providers.

use std::sync::Arc;

use super::add::Add;
use super::add_many::AddMany;
use super::change::{ChangeJob, Wanted};
use super::change_many::ChangeMany;
use super::extend::{AddOrExtend, AddOrExtendMany};
use super::payload::IntoJson;
use super::topic::TopicProvider;
use super::typed::{Provider, draft};
use super::when::IntoWhen;
use crate::job::{BadName, DelayJob, JobDefaults, JobId, ToJobId, to_json};
use crate::store::OnDuplicate;
use crate::time::IntoDelay;

impl Provider {
    fn change<J: DelayJob>(&self, id: Result<JobId, BadName>, wanted: Wanted) -> ChangeJob {
        self.of::<J>().map_or_else(ChangeJob::bad, |topic| topic.change(id, wanted))
    }

    /// Gives a job that waits another due time, once the returned [`ChangeJob`] is awaited: a delay from now, such as `"2h"` or a
    /// `Duration`, or a time of the store's clock; a time in the past means now. At most ten years.
    ///
    /// It changes a DELAYED job, also one that waits for a retry, and a waiting broadcast. The expiry of the job keeps its distance to
    /// the due time; attempts, headers and the delay of its rejoins stay. A RUNNING job is refused, because its run has it as it was
    /// and decides what comes next; an UNACKED or DEAD one, because it waits for no time; a DONE or unknown one, because there is
    /// nothing to wait. The error is [`ChangeError::Refused`](super::ChangeError::Refused), and nothing is changed.
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "close-order")]
    /// # struct CloseOrder { #[job(id)] order: u64 }
    /// # async fn change(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// let changed = jobs.reschedule::<CloseOrder>(7, "2h").await?;
    /// jobs.reschedule::<CloseOrder>(7, "3h").if_version(changed.version).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::needless_pass_by_value, reason = "reads as `reschedule::<CloseOrder>(7, \"2h\")`")]
    pub fn reschedule<J: DelayJob>(&self, id: impl ToJobId, when: impl IntoWhen) -> ChangeJob {
        self.change::<J>(id.to_job_id(), Wanted::Reschedule(when.into_when()))
    }

    /// Makes a job that waits due this much later than it was, whatever the time is now. Otherwise as
    /// [`reschedule`](Self::reschedule).
    #[expect(clippy::needless_pass_by_value, reason = "reads as `extend_by::<Session>(7, \"30m\")`")]
    pub fn extend_by<J: DelayJob>(&self, id: impl ToJobId, by: impl IntoDelay) -> ChangeJob {
        self.change::<J>(id.to_job_id(), Wanted::ExtendBy(by.into_delay()))
    }

    /// Makes a job that waits due now. One that is due already keeps its place among those that are. Otherwise as
    /// [`reschedule`](Self::reschedule).
    #[expect(clippy::needless_pass_by_value, reason = "reads as `run_now::<CloseOrder>(7)`")]
    pub fn run_now<J: DelayJob>(&self, id: impl ToJobId) -> ChangeJob {
        self.change::<J>(id.to_job_id(), Wanted::RunNow)
    }

    /// Gives a job another payload, once the returned [`ChangeJob`] is awaited. Its due time, attempts, headers and options stay.
    ///
    /// It changes a DELAYED job, a waiting broadcast, and an UNACKED or DEAD job, which stays where it is: [`requeue`](Self::requeue)
    /// then runs it with the new payload. A RUNNING, DONE or unknown job is refused, as by [`reschedule`](Self::reschedule). A store
    /// whose memory is full refuses an update as it refuses an add.
    #[expect(clippy::needless_pass_by_value, reason = "a payload is given away")]
    pub fn update<J: DelayJob>(&self, id: impl ToJobId, payload: J) -> ChangeJob {
        self.change::<J>(id.to_job_id(), Wanted::Update(to_json(&payload)))
    }

    /// Sends up to 1,000 changes together, of any kind and topic, once the returned [`ChangeMany`] is awaited: a result for each, in
    /// order. Changes of one job take effect in their order; each of them then costs a round trip of its own.
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "close-order")]
    /// # struct CloseOrder { #[job(id)] order: u64 }
    /// # async fn change(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// let orders = [7, 8, 9];
    /// for changed in jobs.change_many(orders.map(|order| jobs.extend_by::<CloseOrder>(order, "15m"))).await? {
    ///     changed?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn change_many(&self, changes: impl IntoIterator<Item = ChangeJob>) -> ChangeMany {
        ChangeMany::new(changes)
    }

    /// Adds a job, or extends the one that has its id, once the returned [`AddOrExtend`] is awaited: a debounce.
    /// [`by`](AddOrExtend::by) is the new delay from now, and [`at_most`](AddOrExtend::at_most) bounds all of them together, counted
    /// from the first add, so that a job which is extended for ever still runs.
    ///
    /// | the job with this id | what happens | the answer |
    /// |---|---|---|
    /// | there is none, or a DONE one | the job is added | [`New`](super::Addition::New) |
    /// | DELAYED, or a waiting broadcast | it gets the new payload and due time, also an earlier one; attempts, headers and options stay | [`Extended`](super::Addition::Extended) |
    /// | RUNNING | the new job takes its place when the run ends; one that waits for that already is extended | [`ReplacementWaits`](super::Addition::ReplacementWaits), [`Extended`](super::Addition::Extended) |
    /// | UNACKED or DEAD | nothing | [`AddError::NotExtended`](super::AddError::NotExtended) |
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "session")]
    /// # struct Session { #[job(id)] user: u64 }
    /// # async fn beat(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// jobs.add_or_extend(Session { user: 7 }).by("30m").at_most("8h").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::needless_pass_by_value, reason = "a job is given away")]
    pub fn add_or_extend<J: DelayJob>(&self, job: J) -> AddOrExtend {
        AddOrExtend(match self.of::<J>() {
            Ok(topic) => extending(topic.draft(job.job_id(), to_json(&job), J::DEFAULTS)),
            Err(error) => Add::bad(error.into()),
        })
    }

    /// Adds or extends up to 1,000 jobs, as [`add_or_extend`](Self::add_or_extend) does, once the returned [`AddOrExtendMany`] is
    /// awaited: a result for each, in order.
    pub fn add_or_extend_many<J: DelayJob>(&self, jobs: impl IntoIterator<Item = J>) -> AddOrExtendMany {
        AddOrExtendMany(match self.of::<J>() {
            Ok(topic) => extending_many(topic.draft_many(jobs.into_iter().map(|job| draft(&job, None)), J::DEFAULTS)),
            Err(error) => AddMany::bad(error.into()),
        })
    }
}

fn extending(add: Add) -> Add {
    add.with(|options| options.on_duplicate = OnDuplicate::Extend { at_most: None })
}

fn extending_many(add: AddMany) -> AddMany {
    add.with(|options| options.on_duplicate = OnDuplicate::Extend { at_most: None })
}

impl TopicProvider {
    fn change(&self, id: Result<JobId, BadName>, wanted: Wanted) -> ChangeJob {
        ChangeJob::new(Arc::clone(&self.root), Arc::clone(&self.inbox), id, wanted, self.by.clone())
    }

    /// Gives a job that waits another due time, as [`Provider::reschedule`] does.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `reschedule(7, \"2h\")`")]
    pub fn reschedule(&self, id: impl ToJobId, when: impl IntoWhen) -> ChangeJob {
        self.change(id.to_job_id(), Wanted::Reschedule(when.into_when()))
    }

    /// Makes a job that waits due this much later than it was, as [`Provider::extend_by`] does.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `extend_by(7, \"30m\")`")]
    pub fn extend_by(&self, id: impl ToJobId, by: impl IntoDelay) -> ChangeJob {
        self.change(id.to_job_id(), Wanted::ExtendBy(by.into_delay()))
    }

    /// Makes a job that waits due now, as [`Provider::run_now`] does.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `run_now(7)`")]
    pub fn run_now(&self, id: impl ToJobId) -> ChangeJob {
        self.change(id.to_job_id(), Wanted::RunNow)
    }

    /// Gives a job another payload, as [`Provider::update`] does.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `update_json(7, payload)`")]
    pub fn update_json(&self, id: impl ToJobId, payload: impl IntoJson) -> ChangeJob {
        self.change(id.to_job_id(), Wanted::Update(payload.into_json()))
    }

    /// Adds a job with this payload, or extends the one that has its id, as [`Provider::add_or_extend`] does. It needs an
    /// [`id`](AddOrExtend::id).
    pub fn add_or_extend_json(&self, payload: impl IntoJson) -> AddOrExtend {
        AddOrExtend(extending(self.draft(None, payload.into_json(), JobDefaults::NONE)))
    }
}
