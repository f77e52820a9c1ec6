//! Calls that change the state of a topic as a whole: pause, resume, drain, undrain, the default delay and the limits (rule 29).
//!
//! Each goes through the queue of the topic, in a batch of its own, so it comes after the adds before it, is repeated until it is answered, and done
//! once.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::call::{Call, Started, Verb};
use super::error::{CallError, Invalid, Target};
use super::inputs::read;
use super::request::{Answer, Outcome, Request};
use super::root::Caller;
use crate::job::limits::cut;
use crate::store::{
    Drain, Due, MAX_AUTHOR, Pause, SetTopic, StoreError, TopicChange, TopicDelay, TopicLimit, TopicSet, TopicState,
};
use crate::time::{Delay, IntoDelay, Timestamp};

/// Changes a setting of a topic: a [`Pause`], a [`Drain`], a [`TopicDelay`] or a [`TopicLimit`]. Made by [`Provider::pause`](super::Provider::pause),
/// [`resume`](super::Provider::resume), [`pause_group`](super::TopicProvider::pause_group), [`drain`](super::Provider::drain), [`undrain`](super::Provider::undrain),
/// [`set_default_delay`](super::Provider::set_default_delay), [`clear_default_delay`](super::Provider::clear_default_delay),
/// [`set_limit`](super::Provider::set_limit) and [`clear_limit`](super::Provider::clear_limit).
/// With `REASON` it takes a [`reason`](Call::reason); a pause and a drain need one.
///
/// Resolves to the setting before and now. Calling again is safe: a second pause replaces reason and end of the first.
pub struct ChangeTopic<T, const REASON: bool = false> {
    caller: Caller,
    change: TopicChange,
    by: Option<String>,
    /// The end of a pause, or the default delay, as the caller gave it.
    delay: Option<Delay>,
    setting: PhantomData<fn() -> T>,
}

/// One of the settings of a topic, as a change answers it.
pub trait TopicSetting: Sized + Send + 'static {
    #[doc(hidden)]
    fn of(state: TopicState) -> Option<Self>;
}

impl TopicSetting for Pause {
    fn of(state: TopicState) -> Option<Self> {
        state.pause
    }
}

impl TopicSetting for Drain {
    fn of(state: TopicState) -> Option<Self> {
        state.drain
    }
}

impl TopicSetting for TopicLimit {
    fn of(state: TopicState) -> Option<Self> {
        state.limits.into_iter().next()
    }
}

impl TopicSetting for TopicDelay {
    fn of(state: TopicState) -> Option<Self> {
        state.delay
    }
}

/// What a change of a topic found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicChanged<T> {
    /// What was there before.
    pub before: Option<T>,
    /// What is there now.
    pub now: Option<T>,
}

impl<T: TopicSetting, const REASON: bool> Call<ChangeTopic<T, REASON>> {
    pub(super) fn change_topic(caller: Caller, change: TopicChange, delay: Option<Delay>) -> Self {
        let by = caller.by.as_ref().map(ToString::to_string);
        Self::new(ChangeTopic { caller, change, by, delay, setting: PhantomData })
    }

    /// Says who makes the change, in at most 256 bytes: `health()`, the log and later answers show it. Defaults to the name of
    /// [`by`](crate::Provider::by), and without one to the host, the program and the number of its process.
    pub fn by(self, name: impl Into<String>) -> Self {
        self.with(|verb| verb.by = Some(name.into()))
    }
}

impl<T: TopicSetting> Call<ChangeTopic<T, true>> {
    /// Says why, in at most 1 KiB. A pause and a drain need it.
    pub fn reason(self, text: impl Into<String>) -> Self {
        self.with(|verb| match &mut verb.change {
            TopicChange::Pause { reason, .. } | TopicChange::Drain { reason } | TopicChange::Limit { reason, .. } => {
                *reason = text.into();
            }
            TopicChange::Resume { .. } | TopicChange::Undrain | TopicChange::Delay(_) | TopicChange::ClearLimit(_) => {}
        })
    }
}

impl Call<ChangeTopic<Pause, true>> {
    /// Ends the pause at this time of the store's clock. Without it, and without [`for_duration`](Self::for_duration), it ends with a
    /// [`resume`](super::Provider::resume). A time that is past means no pause at all.
    pub fn until(self, time: impl Into<Timestamp>) -> Self {
        self.with(|verb| {
            if let TopicChange::Pause { until, .. } = &mut verb.change {
                *until = Some(Due::At(time.into()));
            }
            verb.delay = None;
        })
    }

    /// Ends the pause after this long, counted by the store: a `Duration`, or a text such as `"2h"`; at most ten years.
    pub fn for_duration(self, time: impl IntoDelay) -> Self {
        self.with(|verb| verb.delay = Some(time.into_delay()))
    }
}

impl<T: TopicSetting, const REASON: bool> Verb for ChangeTopic<T, REASON> {
    type Output = TopicChanged<T>;

    fn start(self, within: Option<Duration>) -> Result<Started<Self::Output>, CallError> {
        let Self { caller, mut change, by, delay, .. } = self;
        match &mut change {
            TopicChange::Pause { reason, .. } | TopicChange::Drain { reason } if reason.trim().is_empty() => {
                let what = format!("a pause or a drain of topic `{}`", caller.topic());
                return Err(Invalid::NoReason { what }.into());
            }
            TopicChange::Pause { until, .. } => {
                *until = delay.map(|time| read("lasting", time)).transpose()?.map(Due::After).or(*until);
            }
            TopicChange::Delay(set) => *set = delay.map(|delay| read("delay", delay)).transpose()?,
            TopicChange::Drain { .. }
            | TopicChange::Resume { .. }
            | TopicChange::Undrain
            | TopicChange::Limit { .. }
            | TopicChange::ClearLimit(_) => {}
        }
        let set = SetTopic { by: by.unwrap_or_else(this_process), change };
        within_limits(set.check())?;
        Ok(Started::request(caller, Request::Set(set), within, changed::<T>))
    }
}

fn changed<T: TopicSetting>(target: Target, answer: Answer) -> Result<TopicChanged<T>, CallError> {
    match answer {
        Ok(Outcome::Set(set)) => {
            let TopicSet { before, now } = *set;
            Ok(TopicChanged { before: T::of(before), now: T::of(now) })
        }
        Ok(_) => unreachable!("the outcome of a change of a topic is of its kind"),
        Err(failed) => Err(CallError::failed(target, failed)),
    }
}

/// What a store would refuse as too large is not sent.
pub(super) fn within_limits(checked: Result<(), StoreError>) -> Result<(), Invalid> {
    checked.or_else(|error| match error {
        StoreError::OverLimit { what, size, limit } => Err(Invalid::TooLarge { what, size, limit }),
        _ => Ok(()),
    })
}

/// Who changes a topic or a schedule, if the caller does not say: host, program and process.
pub(super) fn this_process() -> String {
    let host = ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok());
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_stem()).map(|name| name.to_string_lossy().into_owned());
    let process = std::process::id().to_string();
    let parts: Vec<_> = host.into_iter().chain(program).chain([process]).collect();
    cut(&parts.join("/"), MAX_AUTHOR).to_owned()
}

impl<T, const REASON: bool> fmt::Debug for ChangeTopic<T, REASON> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeTopic").field("topic", &self.caller).field("change", &self.change).finish_non_exhaustive()
    }
}
