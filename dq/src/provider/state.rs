//! What a [`Provider`] changes of the topic of a payload type as a whole: [`setting`](super::setting) does it.

use super::call::Call;
use super::setting::ChangeTopic;
use super::typed::Provider;
use crate::job::DelayJob;
use crate::store::{Drain, Limit, LimitKind, Pause, TopicDelay, TopicLimit};
use crate::time::IntoDelay;

impl Provider {
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
    /// jobs.pause::<Charge>().reason("the bank is down").lasting("2h").by("anna").await?;
    /// jobs.resume::<Charge>().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn pause<J: DelayJob>(&self) -> Call<ChangeTopic<Pause, true>> {
        self.on::<J, _>(|topic| topic.pause())
    }

    /// Ends the pause of the topic of `J`: its nodes go on at once, earliest due first. A topic that is not paused stays as it is.
    pub fn resume<J: DelayJob>(&self) -> Call<ChangeTopic<Pause>> {
        self.on::<J, _>(|topic| topic.resume())
    }

    /// Drains the topic of `J`: adds fail with [`Refusal::Draining`](super::Refusal::Draining), replacements too. Its nodes run what was due when the drain began;
    /// what waits for a later time stays, and so do retries.
    pub fn drain<J: DelayJob>(&self) -> Call<ChangeTopic<Drain, true>> {
        self.on::<J, _>(|topic| topic.drain())
    }

    /// Ends the draining of the topic of `J`.
    pub fn undrain<J: DelayJob>(&self) -> Call<ChangeTopic<Drain>> {
        self.on::<J, _>(|topic| topic.undrain())
    }

    /// Sets the delay of jobs of `J` that any program adds from now on without `after` or `at`: a `Duration` or a text such as
    /// `"15m"`; at most ten years. The store keeps it and applies it when it adds a job. It overrides the payload's delay, and it is
    /// the delay of a later [`rejoin`](crate::listener::Channel::rejoin) too.
    pub fn set_default_delay<J: DelayJob>(&self, delay: impl IntoDelay) -> Call<ChangeTopic<TopicDelay>> {
        self.on::<J, _>(|topic| topic.set_default_delay(delay))
    }

    /// Takes the default delay of the topic of `J` away: then that of the payload counts again.
    pub fn clear_default_delay<J: DelayJob>(&self) -> Call<ChangeTopic<TopicDelay>> {
        self.on::<J, _>(|topic| topic.clear_default_delay())
    }

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
    /// jobs.set_limit::<Charge>(Limit::Concurrency(5)).reason("the bank asked").by("anna").await?;
    /// jobs.clear_limit::<Charge>(LimitKind::Concurrency).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_limit<J: DelayJob>(&self, limit: Limit) -> Call<ChangeTopic<TopicLimit, true>> {
        self.on::<J, _>(|topic| topic.set_limit(limit))
    }

    /// Clears a limit of the topic of `J`: the setting in the code applies again.
    pub fn clear_limit<J: DelayJob>(&self, kind: LimitKind) -> Call<ChangeTopic<TopicLimit>> {
        self.on::<J, _>(|topic| topic.clear_limit(kind))
    }
}
