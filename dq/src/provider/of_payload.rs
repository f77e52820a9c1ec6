//! The verbs of a [`Provider`] that are those of a [`TopicProvider`](super::TopicProvider), for the topic of a payload type.

use super::call::Call;
use super::change::{Change, JobOptions};
use super::command::{AckedOrRequeued, JobCommand};
use super::inputs::IntoWhen;
use super::query::Query;
use super::schedule_change::ChangeSchedule;
use super::seen::ScheduleInfo;
use super::setting::ChangeTopic;
use super::typed::Provider;
use crate::job::{DelayJob, ToJobId};
use crate::store::{Drain, Limit, LimitKind, Pause, TopicCounts, TopicDelay, TopicLimit};
use crate::time::IntoDelay;

/// A row is a verb of [`TopicProvider`](super::TopicProvider), with what the documentation says of it where the type names the topic.
macro_rules! of_payload {
    ($($(#[$doc:meta])+ $verb:ident($($given:ident: $type:ty),*) -> $call:ty;)+) => {
        impl Provider {
            $($(#[$doc])+
            pub fn $verb<J: DelayJob>(&self, $($given: $type),*) -> Call<$call> {
                self.on::<J, _>(|topic| topic.$verb($($given),*))
            })+
        }
    };
}

of_payload! {
    /// Reads the schedule of this name, once the returned [`Call`] is awaited; `None` if there is none.
    schedule(name: &str) -> Query<Option<ScheduleInfo>>;

    /// Pauses the schedule of this name, for a reason that [`schedule`](Self::schedule) and the list show: from then on its ticks are
    /// missed. A tick whose job a node adds just now is the last one. Jobs that it has added stay.
    ///
    /// A pause survives restarts and newer definitions of the code. Calling again changes the reason.
    pause_schedule(name: impl Into<String>, reason: impl Into<String>) -> ChangeSchedule;

    /// Ends the pause of the schedule of this name. Its [`on_missed`](Call::on_missed) decides what becomes of the ticks that it
    /// missed. It is no error if the schedule is not paused.
    resume_schedule(name: impl Into<String>) -> ChangeSchedule;

    /// Removes the schedule of this name. Jobs that it has added stay.
    remove_schedule(name: &str) -> JobCommand;

    /// Deletes a job in any state. A running job is deleted when its run ends, whatever the run's outcome is.
    delete(id: impl ToJobId) -> JobCommand;

    /// Deletes a job as [`delete`](Self::delete) does, and asks the handler of a running one to stop through its token.
    cancel(id: impl ToJobId) -> JobCommand;

    /// Acks a job: it ends a parked or waiting job, or a running one when its run ends. It may come before the run calls
    /// `park()`. An unknown id is no error: the answer says whether anything changed.
    ack(id: impl ToJobId) -> JobCommand<AckedOrRequeued>;

    /// Makes a DEAD job due now with all its attempts again, or an UNACKED job due now as it was. An unknown id is no error: the
    /// answer says whether anything changed.
    requeue(id: impl ToJobId) -> JobCommand<AckedOrRequeued>;

    /// Counts the topic's jobs in each state, once the returned [`Call`] is awaited.
    counts() -> Query<TopicCounts>;

    /// Gives a job that waits another due time, once the returned [`Call`] is awaited: a delay from now, such as `"2h"` or a
    /// `Duration`, or a time of the store's clock; a time in the past means now. At most ten years.
    ///
    /// It changes a DELAYED job, also one that waits for a retry, and a waiting broadcast. The expiry of the job keeps its distance to
    /// the due time; attempts, headers and the delay of its rejoins stay. A RUNNING job is refused, because its run has it as it was
    /// and decides what comes next; an UNACKED or DEAD one, because it waits for no time; a DONE or unknown one, because there is
    /// nothing to wait. The error is [`CallError::Refused`](super::CallError::Refused), and nothing is changed.
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
    reschedule(id: impl ToJobId, when: impl IntoWhen) -> Change;

    /// Makes a job that waits due this much later than it was, whatever the time is now. Otherwise as
    /// [`reschedule`](Self::reschedule).
    extend_by(id: impl ToJobId, by: impl IntoDelay) -> Change;

    /// Makes a job that waits due now. One that is due already keeps its place among those that are. Otherwise as
    /// [`reschedule`](Self::reschedule).
    run_now(id: impl ToJobId) -> Change;

    /// Gives a job another retry policy, other headers or another retention, once the returned [`Call`] is awaited. Its payload, due
    /// time and attempts stay. It changes and refuses the same jobs as [`update`](Self::update).
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # use dq::provider::JobOptions;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "close-order")]
    /// # struct CloseOrder { #[job(id)] order: u64 }
    /// # async fn change(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// jobs.set_options::<CloseOrder>(7, JobOptions::new().retry("1m x 9").retain("1d")).await?;
    /// # Ok(())
    /// # }
    /// ```
    set_options(id: impl ToJobId, options: JobOptions) -> Change;

    /// Pauses the topic of `J` on all its nodes: none claims or starts a job of it any more. Handlers that run end as usual. Adds and
    /// commands go on; what becomes due waits, and so do broadcasts, which may expire meanwhile. A pause survives restarts, and
    /// `health()` and the log name it.
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "charge")]
    /// # struct Charge { #[job(id)] order: u64 }
    /// # async fn pause(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// jobs.pause::<Charge>().reason("the bank is down").for_duration("2h").by("anna").await?;
    /// jobs.resume::<Charge>().await?;
    /// # Ok(())
    /// # }
    /// ```
    pause() -> ChangeTopic<Pause, true>;

    /// Ends the pause of the topic of `J`: its nodes go on at once, earliest due first. A topic that is not paused stays as it is.
    resume() -> ChangeTopic<Pause>;

    /// Drains the topic of `J`: adds fail with [`Refusal::Draining`](super::Refusal::Draining), replacements too. Its nodes run what was due when the drain began;
    /// what waits for a later time stays, and so do retries.
    drain() -> ChangeTopic<Drain, true>;

    /// Ends the draining of the topic of `J`.
    undrain() -> ChangeTopic<Drain>;

    /// Sets the delay of jobs of `J` that any program adds from now on without `after` or `at`: a `Duration` or a text such as
    /// `"15m"`; at most ten years. The store keeps it and applies it when it adds a job. It overrides the payload's delay, and it is
    /// the delay of a later [`rejoin`](crate::listener::Channel::rejoin) too.
    set_default_delay(delay: impl IntoDelay) -> ChangeTopic<TopicDelay>;

    /// Takes the default delay of the topic of `J` away: then that of the payload counts again.
    clear_default_delay() -> ChangeTopic<TopicDelay>;

    /// Sets a limit of the topic of `J`. The store keeps it for all nodes and producers, and it overrides the setting in their code.
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "charge")]
    /// # struct Charge { #[job(id)] order: u64 }
    /// # async fn limit(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// use dq::provider::{Limit, LimitKind};
    ///
    /// jobs.set_limit::<Charge>(Limit::ClusterConcurrency(5)).reason("the bank asked").by("anna").await?;
    /// jobs.clear_limit::<Charge>(LimitKind::ClusterConcurrency).await?;
    /// # Ok(())
    /// # }
    /// ```
    set_limit(limit: Limit) -> ChangeTopic<TopicLimit, true>;

    /// Clears a limit of the topic of `J`: the setting in the code applies again.
    clear_limit(kind: LimitKind) -> ChangeTopic<TopicLimit>;
}
