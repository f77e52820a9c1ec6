//! One run, from its seed to what it found.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Instant;

use tokio::runtime::Builder;

use super::super::cluster::ClusterState;
use super::super::process::Process;
use super::super::settings::RunSettings;
use super::super::sim::{InjectedFault, Sim, Workload};
use super::super::store::FaultyStore;
use super::super::sync::lock;
use super::super::tokio_time::Idle;
use super::super::units::SECOND;
use super::choose::{Choosing, Chosen};
use super::clock::Running;
use super::only::How;
use super::panics::{Print, caught};
use super::program::{APP, Program, WORK};
use super::report::Ended;
use super::simulation::Simulation;
use dq::config::NodeSettings;
use dq::environment::Runtime;
use dq::job::{AppName, State};
use dq::provider::Provider;

/// How often to ask whether the run is over.
const POLL_INTERVAL: u64 = 5 * SECOND;

/// The run is over when nothing has waited or run for this long: no request is delayed, and no node paused, for longer.
const QUIET: u64 = 60 * SECOND;

/// The result of a run.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) found: Option<String>,
    /// The faults that happened, and the jobs that the work added.
    pub(super) injected: Vec<InjectedFault>,
    pub(super) added: BTreeSet<String>,
    pub(super) nodes: u64,
    pub(super) chosen: Chosen,
    pub(super) account: String,
    pub(super) log: Vec<String>,
    pub(super) jobs: u64,
    pub(super) handled: u64,
    pub(super) faults: u64,
    pub(super) time: u64,
}

/// Runs a seed.
pub(super) fn play<S: Clone + Send + Sync + 'static>(of: &Simulation<S>, seed: u64, how: How<'_>) -> Played {
    let idle = Arc::new(Idle::default());
    let parks = Arc::clone(&idle);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || parks.parks())
        .build()
        .expect("a runtime without input and output is given");
    runtime.block_on(async {
        let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let cluster = ClusterState::with_tokio(seed, how.traced);
        let _running = Running::start();
        let choosing = Choosing::start(seed, &how.only.chosen);
        let state = (of.state)();
        let nodes = how.only.nodes.unwrap_or(of.nodes);
        let settings = RunSettings { only_faults: how.only.faults.clone(), ..RunSettings::of_program(&cluster, nodes) };
        let program = Program::new(of, &state, &cluster, how);
        let sim = Sim::new(&cluster, settings, Arc::clone(&program) as Arc<dyn Workload>);
        program.begin(&sim);
        for _ in 0..nodes {
            sim.start_node();
        }
        start_work(&sim, &program, of, state.clone());
        let ended = let_all_happen(&sim, &program, of, &idle, how.until).await;
        let found = program.wrong(&sim).or_else(|| ended.then(|| check(&sim, of, state, how.print)).flatten());
        let played = played(&sim, &program, found, choosing.chosen());
        sim.end();
        played
    })
}

fn start_work<S: Clone + Send + Sync + 'static>(sim: &Arc<Sim>, program: &Arc<Program>, of: &Simulation<S>, state: S) {
    let process = Process::new(WORK.into(), &sim.cluster);
    let store = Arc::new(FaultyStore { sim: Arc::clone(sim), process: Arc::clone(&process) });
    let app = AppName::new(APP).expect("it is a good name");
    let environment = process.environment();
    let provider = Provider::root(app, store, environment.clone(), NodeSettings::default());
    let (sim, program, work) = (Arc::clone(sim), Arc::clone(program), Arc::clone(&of.work));
    environment.spawn(Runtime::Own, async move {
        let mut doing = None;
        let done = poll_fn(|cx| {
            let step = || doing.get_or_insert_with(|| work(provider.clone(), state.clone())).as_mut().poll(cx);
            match caught(program.print, step) {
                Ok(polled) => polled.map(Ok),
                Err(panic) => Poll::Ready(Err(panic)),
            }
        });
        match done.await {
            Ok(Ok(())) => sim.note(|| "work is done".into()),
            Ok(Err(error)) => program.fail(format!("the work failed: {error}")),
            Err(panic) => program.fail(format!("the work panicked{panic}")),
        }
        program.work_is_done();
    });
}

/// Runs events until the run is over; returns false if it was abandoned.
async fn let_all_happen<S>(
    sim: &Arc<Sim>,
    program: &Program,
    of: &Simulation<S>,
    idle: &Idle,
    until: Option<Instant>,
) -> bool {
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let mut quiet_since = None;
    loop {
        let now = sim.cluster.now();
        let ends = micros(of.ends_after.unwrap_or(of.longest));
        run_until(sim, (now + POLL_INTERVAL).min(ends), idle).await;
        let now = sim.cluster.now();
        if sim.is_over() || of.ends_after.is_some() && now >= ends {
            return true;
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            return false;
        }
        let left = program.what_is_left(sim);
        match (&left, quiet_since) {
            (None, None) => quiet_since = Some(now),
            (None, Some(since)) if now >= since + QUIET && of.ends_after.is_none() => return true,
            (None, Some(_)) => {}
            (Some(_), _) => quiet_since = None,
        }
        if let Some(left) = left
            && now >= ends
        {
            let longest = humantime::format_duration(of.longest);
            program.fail(format!("not over after {longest}: {left} (for jobs that repeat forever: `.ends_after(..)`)"));
            return true;
        }
    }
}

/// Runs events until `end`, or until something is found.
async fn run_until(sim: &Arc<Sim>, end: u64, idle: &Idle) {
    let cluster = &sim.cluster;
    let Some(tokio) = &cluster.tokio else { return };
    loop {
        idle.wait().await;
        if sim.is_over() {
            return;
        }
        let next = cluster.next_at().map_or(end, |next| next.min(end));
        if !tokio.is_near(next) {
            tokio.approach(next).await;
        } else if !cluster.step(end) {
            return;
        }
    }
}

fn check<S: Clone + Send + Sync + 'static>(
    sim: &Arc<Sim>,
    of: &Simulation<S>,
    state: S,
    print: Print,
) -> Option<String> {
    let mut ended = Ended::default();
    sim.for_topics(|key, checker| {
        for (id, job) in &checker.before.jobs {
            if matches!(job.state, State::Dead | State::Unacked | State::Done | State::Delayed) {
                let place = ended.jobs.entry((key.topic.to_string(), job.state)).or_default();
                place.push(id.to_string());
            }
        }
    });
    match caught(print, || (of.check)(state, &ended)) {
        Ok(Ok(())) => None,
        Ok(Err(wrong)) => Some(wrong),
        Err(panic) => Some(format!("the check panicked{panic}")),
    }
}

fn played(sim: &Sim, program: &Program, found: Option<String>, chosen: Chosen) -> Played {
    Played {
        found,
        injected: std::mem::take(&mut lock(&sim.injected)),
        added: std::mem::take(&mut lock(&program.added)),
        nodes: sim.settings().nodes,
        chosen,
        account: program.account(),
        log: sim.cluster.take_log(),
        jobs: program.jobs(),
        handled: sim.handled(),
        faults: sim.faults.load(Relaxed),
        time: sim.cluster.now(),
    }
}
