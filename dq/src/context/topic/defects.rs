//! Defects: what the machine is at, and what a panic of dq there does to that (rule 34).
//!
//! A panic in the task of a topic is a defect of dq, and mostly one job shows it: a record that no step expected. The machine notes its
//! step and the job before it touches one, the note outlives the panic, and the panic is *charged* to that job. If a request was about
//! many jobs, all of them are *accused*, and then sent one by one. A charged job waits, so that the others go first. It is
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
const MAX_REST: Duration = Duration::from_secs(60);
/// How many accused jobs the topic remembers, and for how long after the last panic.
const MAX_ACCUSED: usize = 1_000;
const REMEMBERED: Duration = Duration::from_secs(600);

/// What the machine is at, and what panics were charged to.
#[derive(Default)]
pub(super) struct Defects {
    at: DefectPlace,
    accused: BTreeMap<JobId, Accused>,
    /// How often each step was done for a job that is not accused, since there is one.
    passed: BTreeMap<&'static str, u64>,
    /// Steps that have panicked for no job: until when each rests, and how often it has panicked.
    resting: BTreeMap<&'static str, (Duration, u32)>,
    /// When the accused jobs are forgotten.
    forgotten_at: Duration,
    #[cfg(any(test, feature = "testing"))]
    watch: Option<crate::environment::Watch>,
}

/// A step, and the job that it touches.
#[derive(Debug, Clone, Default)]
pub(super) struct DefectPlace {
    pub(super) step: &'static str,
    pub(super) job: Option<JobId>,
}

/// A job at which the task may have panicked.
#[derive(Debug, Default)]
struct Accused {
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
        self.at = DefectPlace { step, job: None };
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
        if !self.accused.is_empty() && self.at.job.as_ref().is_some_and(|job| !self.accused.contains_key(job)) {
            *self.passed.entry(self.at.step).or_default() += 1;
        }
    }

    /// The present step is done, for no job if none was noted.
    pub(super) fn end(&mut self) {
        self.pass();
        if !self.accused.is_empty() && self.at.job.is_none() {
            *self.passed.entry(self.at.step).or_default() += 1;
        }
        self.at = DefectPlace::default();
    }

    /// What the machine was at when its task panicked.
    pub(super) fn take_place(&mut self) -> DefectPlace {
        std::mem::take(&mut self.at)
    }

    /// Whether the task may have panicked at this job.
    pub(super) fn accuses(&self, id: &JobId) -> bool {
        !self.accused.is_empty() && self.accused.contains_key(id)
    }

    /// Whether there is a job at which the task may have panicked.
    pub(super) fn has_accused(&self) -> bool {
        !self.accused.is_empty()
    }

    /// Until when this job rests, if a panic was charged to it and it is not convicted.
    pub(super) fn rest_of(&self, id: &JobId) -> Option<Duration> {
        let accused = self.accused.get(id)?;
        (accused.panics > 0 && accused.convicted.is_none()).then_some(accused.rests_until)
    }

    /// The task may have panicked at one of these.
    pub(super) fn accuse(&mut self, ids: impl IntoIterator<Item = JobId>, now: Duration) {
        self.forgotten_at = now + REMEMBERED;
        for id in ids {
            self.make_room();
            self.accused.entry(id).or_default();
        }
    }

    /// Forgets the accused job that says least, if there are too many.
    fn make_room(&mut self) {
        if self.accused.len() >= MAX_ACCUSED
            && let Some(least) = self.accused.iter().min_by_key(|(_, accused)| accused.panics).map(|(id, _)| id.clone())
        {
            self.accused.remove(&least);
        }
    }

    /// The task has panicked at this job. Returns until when it rests before it is tried again; `None`: it is convicted, and becomes DEAD.
    pub(super) fn charge(
        &mut self,
        id: &JobId,
        step: &'static str,
        panic: &str,
        now: Duration,
        environment: &Environment,
    ) -> Option<Duration> {
        self.make_room();
        self.forgotten_at = now + REMEMBERED;
        let passed = self.passed.get(step).copied().unwrap_or_default();
        let others =
            self.accused.iter().any(|(other, accused)| other != id && accused.panics > 0 && accused.step == step);
        let accused = self.accused.entry(id.clone()).or_default();
        if accused.panics == 0 || accused.step != step {
            (accused.step, accused.passed) = (step, passed);
        }
        accused.panics = accused.panics.saturating_add(1);
        let is_proven = accused.panics >= PROVEN && passed > accused.passed;
        if accused.convicted.is_none() && (is_proven || (accused.panics >= PRESUMED && !others)) {
            accused.convicted = Some(Failure::new(Cause::Defect, format!("dq panicked at `{step}`: {panic}")).message);
            return None;
        }
        accused.rests_until = now + environment.growing_pause(FIRST_REST, MAX_REST, accused.panics - 1, 2);
        Some(accused.rests_until)
    }

    /// The metadata with which a convicted job becomes DEAD: without the texts, which may be what no step expected, or with nothing of
    /// `known` if that is not enough. `None`: it is not convicted.
    pub(super) fn sentence(&self, id: &JobId, known: impl FnOnce() -> Metadata) -> Option<Metadata> {
        if self.accused.is_empty() {
            return None;
        }
        let accused = self.accused.get(id)?;
        let (cause, error) = (Some(Cause::Defect), Some(accused.convicted.clone()?));
        let (retry, headers, expires_at) = (None, Vec::new(), None);
        let known = if accused.panics > PRESUMED { Metadata::default() } else { known() };
        Some(Metadata { cause, error, retry, headers, expires_at, exhausted: true, ..known })
    }

    /// Forgets the accused jobs if there was no panic for long: some are with other nodes.
    pub(super) fn forget(&mut self, now: Duration) {
        if !self.accused.is_empty() && now >= self.forgotten_at {
            self.accused.clear();
            self.passed.clear();
        }
    }

    /// The job is gone, or has moved on without a panic.
    pub(super) fn absolve(&mut self, id: &JobId) {
        if self.accused.is_empty() {
            return;
        }
        self.accused.remove(id);
        if self.accused.is_empty() {
            self.passed.clear();
        }
    }

    /// A step has panicked at no job. Returns when it is tried again.
    pub(super) fn rest(&mut self, step: &'static str, now: Duration, environment: &Environment) -> Duration {
        let (until, panics) = self.resting.entry(step).or_default();
        *until = now + environment.growing_pause(FIRST_REST, MAX_REST, *panics, 2);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::environment::Seeded;

    const NOW: Duration = Duration::from_secs(1_000);

    fn id(name: &str) -> JobId {
        JobId::new(name).unwrap()
    }

    fn setup() -> (Environment, Defects) {
        let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
        let defects = Defects::new(&environment);
        (environment, defects)
    }

    /// The task panics at this job so often, at `step`, and returns whether that convicts it.
    fn panics(defects: &mut Defects, environment: &Environment, name: &str, step: &'static str, times: u32) -> bool {
        (0..times).any(|_| defects.charge(&id(name), step, "no", NOW, environment).is_none())
    }

    #[tokio::test]
    async fn a_second_panic_convicts_a_job_if_the_step_has_passed_for_another_one_between() {
        let (environment, mut defects) = setup();
        assert!(!panics(&mut defects, &environment, "a", "step", 1));
        defects.begin("another step");
        defects.at(&id("b"));
        defects.begin("step");
        defects.at(&id("a")); // it is accused itself
        defects.begin("step");
        assert!(!panics(&mut defects, &environment, "a", "step", 1));
        defects.at(&id("b"));
        defects.begin("step");
        assert!(panics(&mut defects, &environment, "a", "step", 1));
        let sentence = defects.sentence(&id("a"), || Metadata { attempts: 3, ..Metadata::default() }).unwrap();
        assert_eq!((sentence.attempts, sentence.cause, sentence.exhausted), (3, Some(Cause::Defect), true));
        assert_eq!(sentence.error.as_deref(), Some("dq panicked at `step`: no"));
        defects.absolve(&id("a"));
        assert!(defects.sentence(&id("a"), Metadata::default).is_none());
    }

    #[tokio::test]
    async fn a_step_that_panics_at_several_jobs_and_passes_for_none_convicts_none() {
        let (environment, mut defects) = setup();
        assert!(!panics(&mut defects, &environment, "a", "step", PRESUMED - 1));
        assert!(!panics(&mut defects, &environment, "b", "step", 100));
        assert!(!panics(&mut defects, &environment, "a", "step", 100));
        assert!(panics(&mut defects, &environment, "c", "another step", PRESUMED), "no other job comes there");
    }

    #[tokio::test]
    async fn accused_jobs_are_bounded_and_forgotten_after_a_while() {
        let (environment, mut defects) = setup();
        assert!(!panics(&mut defects, &environment, "charged", "step", 1));
        defects.accuse((0..2 * MAX_ACCUSED).map(|n| id(&n.to_string())), NOW);
        assert_eq!(defects.accused.len(), MAX_ACCUSED);
        assert!(defects.accuses(&id("charged")), "it says more than the others");
        defects.forget(NOW + REMEMBERED / 2);
        assert!(defects.has_accused());
        defects.forget(NOW + REMEMBERED);
        assert!(!defects.has_accused());
    }

    #[tokio::test]
    async fn a_step_rests_ever_longer_until_it_passes() {
        let (environment, mut defects) = setup();
        let rests: Vec<_> = (0..10).map(|_| defects.rest("step", NOW, &environment) - NOW).collect();
        assert!(rests[0] <= FIRST_REST && rests[9] >= MAX_REST / 2 && rests[9] <= MAX_REST, "{rests:?}");
        assert!(defects.rests("step", NOW).is_some() && defects.rests("another", NOW).is_none());
        defects.begin("step");
        defects.begin("another");
        assert!(defects.rests("step", NOW).is_none());
    }
}
