//! Defects: what the machine is at, and what a panic of dq there does to that (rule 34).
//!
//! A panic in the task of a topic is a defect of dq, and mostly one job shows it: a record that no step expected. The machine notes its
//! step and the job before it touches one, the note outlives the panic, and the panic is *charged* to that job. If a request was about
//! many jobs, all of them are suspects, which are then sent one by one. A charged job waits, so that the others go first. It is
//! *convicted* if the task panics at it again, and the step was done for another job meanwhile: then it becomes DEAD. A step that
//! panics for every job convicts none. It rests for growing pauses, and the rest of the topic goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::environment::Environment;
use crate::job::{Cause, JobId, Metadata};
use crate::listener::Failure;

/// How many panics convict a job, if the step was done for another one meanwhile.
const PROVEN: u32 = 2;
/// How many panics convict a job, if no other one has shown whether the step works.
const PRESUMED: u32 = 5;
/// How long a charged job or a step rests at first, and at most.
const FIRST_REST: Duration = Duration::from_millis(500);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// How many suspects the topic remembers.
const MOST_SUSPECTS: usize = 1_000;

/// What the machine is at, and what panics were charged to.
#[derive(Default)]
pub(super) struct Defects {
    at: Place,
    suspects: BTreeMap<JobId, Suspect>,
    /// How often each step was done for a job that is no suspect, since there is one.
    passed: BTreeMap<&'static str, u64>,
    /// Steps that have panicked for no job: until when each rests, and how often it has panicked.
    resting: BTreeMap<&'static str, (Duration, u32)>,
    #[cfg(any(test, feature = "testing"))]
    watch: Option<crate::environment::Watch>,
}

impl std::fmt::Debug for Defects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Defects").field("at", &self.at).field("suspects", &self.suspects).finish_non_exhaustive()
    }
}

/// A step, and the job that it touches.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    pub(super) step: &'static str,
    pub(super) job: Option<JobId>,
}

/// A job at which the task may have panicked.
#[derive(Debug, Default)]
struct Suspect {
    /// How often the task has panicked at this job and no other.
    panics: u32,
    step: &'static str,
    /// How often that step had passed then.
    passed: u64,
    /// Until when it rests.
    rests_until: Duration,
    /// Why it is convicted, once it is.
    convicted: Option<String>,
}

/// What a panic means for the job that it was charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charge {
    /// It is tried again at that time.
    Rests(Duration),
    /// It becomes DEAD now.
    Convicted,
}

impl Defects {
    pub(super) fn new(environment: &Environment) -> Self {
        #[cfg(any(test, feature = "testing"))]
        return Self { watch: environment.watch(), ..Self::default() };
        #[cfg(not(any(test, feature = "testing")))]
        {
            let _ = environment;
            Self::default()
        }
    }

    /// The machine begins a step.
    pub(super) fn begin(&mut self, step: &'static str) {
        self.pass();
        self.at = Place { step, job: None };
        #[cfg(any(test, feature = "testing"))]
        self.tell();
    }

    /// The machine touches this job.
    pub(super) fn at(&mut self, id: &JobId) {
        self.pass();
        self.at.job = Some(id.clone());
        #[cfg(any(test, feature = "testing"))]
        self.tell();
    }

    /// A test may let the task panic here.
    #[cfg(any(test, feature = "testing"))]
    fn tell(&self) {
        if let Some(watch) = &self.watch {
            watch(self.at.step, self.at.job.as_ref());
        }
    }

    /// What the machine was at has passed.
    fn pass(&mut self) {
        if !self.resting.is_empty() {
            self.resting.remove(self.at.step);
        }
        if !self.suspects.is_empty() && self.at.job.as_ref().is_some_and(|job| !self.suspects.contains_key(job)) {
            *self.passed.entry(self.at.step).or_default() += 1;
        }
    }

    /// The present step is done, for no job if none was noted.
    pub(super) fn end(&mut self) {
        self.pass();
        if !self.suspects.is_empty() && self.at.job.is_none() {
            *self.passed.entry(self.at.step).or_default() += 1;
        }
        self.at = Place::default();
    }

    /// What the machine was at when its task panicked.
    pub(super) fn take_place(&mut self) -> Place {
        std::mem::take(&mut self.at)
    }

    /// Whether the task may have panicked at this job.
    pub(super) fn suspects(&self, id: &JobId) -> bool {
        !self.suspects.is_empty() && self.suspects.contains_key(id)
    }

    /// Whether there is a job at which the task may have panicked.
    pub(super) fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// Until when this job rests, if a panic was charged to it and it is not convicted.
    pub(super) fn rest_of(&self, id: &JobId) -> Option<Duration> {
        let suspect = self.suspects.get(id)?;
        (suspect.panics > 0 && suspect.convicted.is_none()).then_some(suspect.rests_until)
    }

    /// The task may have panicked at one of these.
    pub(super) fn suspect(&mut self, ids: impl IntoIterator<Item = JobId>) {
        for id in ids {
            self.make_room();
            self.suspects.entry(id).or_default();
        }
    }

    /// Forgets the suspect that says least, if there are too many.
    fn make_room(&mut self) {
        if self.suspects.len() >= MOST_SUSPECTS
            && let Some(least) =
                self.suspects.iter().min_by_key(|(_, suspect)| suspect.panics).map(|(id, _)| id.clone())
        {
            self.suspects.remove(&least);
        }
    }

    /// The task has panicked at this job.
    pub(super) fn charge(
        &mut self,
        id: &JobId,
        step: &'static str,
        panic: &str,
        now: Duration,
        environment: &Environment,
    ) -> Charge {
        self.make_room();
        let passed = self.passed.get(step).copied().unwrap_or_default();
        let others =
            self.suspects.iter().any(|(other, suspect)| other != id && suspect.panics > 0 && suspect.step == step);
        let suspect = self.suspects.entry(id.clone()).or_default();
        if suspect.panics == 0 || suspect.step != step {
            (suspect.step, suspect.passed) = (step, passed);
        }
        suspect.panics = suspect.panics.saturating_add(1);
        let is_proven = suspect.panics >= PROVEN && passed > suspect.passed;
        if suspect.convicted.is_none() && (is_proven || (suspect.panics >= PRESUMED && !others)) {
            suspect.convicted = Some(Failure::new(Cause::Defect, format!("dq panicked at `{step}`: {panic}")).message);
            return Charge::Convicted;
        }
        suspect.rests_until = now + environment.growing_pause(FIRST_REST, LONGEST_REST, suspect.panics - 1, 2);
        Charge::Rests(suspect.rests_until)
    }

    /// The metadata with which a convicted job becomes DEAD: without the texts, which may be what no step expected, or with nothing of
    /// `known` if that is not enough. `None`: it is not convicted.
    pub(super) fn sentence(&self, id: &JobId, known: impl FnOnce() -> Metadata) -> Option<Metadata> {
        if self.suspects.is_empty() {
            return None;
        }
        let suspect = self.suspects.get(id)?;
        let (cause, error) = (Some(Cause::Defect), Some(suspect.convicted.clone()?));
        let (retry, headers, expires_at) = (None, Vec::new(), None);
        let known = if suspect.panics > PRESUMED { Metadata::default() } else { known() };
        Some(Metadata { cause, error, retry, headers, expires_at, exhausted: true, ..known })
    }

    /// The job is gone, or has moved on without a panic.
    pub(super) fn absolve(&mut self, id: &JobId) {
        if self.suspects.is_empty() {
            return;
        }
        self.suspects.remove(id);
        if self.suspects.is_empty() {
            self.passed.clear();
        }
    }

    /// A step has panicked at no job. Returns when it is tried again.
    pub(super) fn rest(&mut self, step: &'static str, now: Duration, environment: &Environment) -> Duration {
        let (until, panics) = self.resting.entry(step).or_default();
        *until = now + environment.growing_pause(FIRST_REST, LONGEST_REST, *panics, 2);
        *panics = panics.saturating_add(1);
        *until
    }

    /// Until when a step rests; `None`: it does not.
    pub(super) fn rests(&self, step: &'static str, now: Duration) -> Option<Duration> {
        if self.resting.is_empty() {
            return None;
        }
        self.resting.get(step).map(|(until, _)| *until).filter(|until| now < *until)
    }
}
