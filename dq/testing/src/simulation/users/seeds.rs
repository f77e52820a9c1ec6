//! Runs seed after seed until one finds something, then runs that one again and shrinks it.

use std::panic::resume_unwind;
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::finding::Finding;
use super::only::{How, Only};
use super::panics::Print;
use super::play::{Played, play};
use super::progress::Progress;
use super::report::Summary;
use super::shrink::{is_same, shrink};
use super::simulation::Simulation;

/// Names the one seed to run.
const SEED: &str = "DQ_SEED";

/// Names the parts of its run that happen; with this variable, even with `all`, a finding is not shrunk.
const ONLY: &str = "DQ_ONLY";

/// What the variables ask for.
#[derive(Debug, Clone)]
struct Named {
    seed: u64,
    only: Option<Only>,
}

impl Named {
    /// # Panics
    /// If a variable is malformed.
    fn read() -> Option<Self> {
        let only = std::env::var(ONLY).ok().map(|text| text.parse().unwrap_or_else(|wrong| panic!("{ONLY}: {wrong}")));
        match std::env::var(SEED) {
            Ok(text) => {
                let seed = text.trim().parse().unwrap_or_else(|_| panic!("{SEED}={text} is not a seed"));
                Some(Self { seed, only })
            }
            Err(_) if only.is_some() => panic!("{ONLY} names parts of the run of a seed: set {SEED} as well"),
            Err(_) => None,
        }
    }
}

impl<S: Clone + Send + Sync + 'static> Simulation<S> {
    /// Runs the seeds one after the other on a thread of its own. It blocks the caller, also in an async test.
    ///
    /// # Panics
    /// With the [`Finding`] as the message, if a seed finds something; if a node has no [`node`](Self::node) closure; if
    /// `DQ_SEED` is not a number, or `DQ_ONLY` is malformed.
    #[track_caller]
    pub fn run(self) -> Summary {
        match self.try_run() {
            Ok(summary) => summary,
            Err(finding) => panic!("{finding}"),
        }
    }

    /// Like [`run`](Self::run), but returns the finding instead of a panic.
    ///
    /// # Errors
    /// The [`Finding`] of the first seed that found something.
    ///
    /// # Panics
    /// If a node has no [`node`](Self::node) closure; if `DQ_SEED` is not a number, or `DQ_ONLY` is malformed.
    pub fn try_run(self) -> Result<Summary, Box<Finding>> {
        let test = std::thread::current().name().filter(|name| *name != "main").map(str::to_owned);
        let runs = Builder::new().name("dq-simulation".into()).spawn(move || self.run_seeds(test));
        match runs.expect("the operating system gives a thread").join() {
            Ok(ended) => ended,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn run_seeds(&self, test: Option<String>) -> Result<Summary, Box<Finding>> {
        let named = Named::read();
        let seeds = named.as_ref().map_or(self.seeds.clone(), |named| named.seed..named.seed + 1);
        let only = named.as_ref().and_then(|named| named.only.clone()).unwrap_or_default();
        let print = if named.is_some() { Print::Yes } else { Print::No };
        let (start, mut summary) = (Instant::now(), Summary::default());
        let mut progress = Progress::of(test.as_deref());
        for seed in seeds.clone() {
            progress.report(|| format!("nothing found in {} of {} seeds", summary.seeds, seeds.end - seeds.start));
            let first = seed == seeds.start;
            let how = How { traced: first, only: &only, print, until: None };
            let played = play(self, seed, how);
            summary.seeds += 1;
            summary.jobs += played.jobs;
            summary.handled += played.handled;
            summary.faults += played.faults;
            summary.simulated += Duration::from_micros(played.time);
            if played.found.is_some() {
                let as_it_is = named.is_some_and(|named| named.only.is_some());
                let mut finding = self.finding(seed, played, &only, (!as_it_is).then_some(&mut progress));
                (finding.seeds, finding.test) = (summary.seeds, test);
                return Err(Box::new(finding));
            }
            if first {
                if named.is_some() {
                    print_account(seed, &played);
                }
                let again = play(self, seed, How { print: Print::No, ..how });
                summary.differs = difference(&played, &again);
            }
        }
        summary.took = start.elapsed();
        Ok(summary)
    }

    /// Runs a seed that found something again, and shrinks its run. The finding stays even if shrinking fails.
    fn finding(&self, seed: u64, found: Played, only: &Only, shrinks: Option<&mut Progress>) -> Finding {
        let what = found.found.clone().unwrap_or_default();
        let (whole, differs) = self.twice(seed, &what, only);
        let small = match (&differs, shrinks) {
            (None, Some(progress)) => shrink(self, seed, found, progress),
            _ => None,
        };
        let finding = |traced: Played, only: &Only, smaller| Finding {
            seed,
            only: if *only == Only::default() { "all".into() } else { only.to_string() },
            what: traced.found.unwrap_or(what.clone()),
            account: traced.account,
            log: traced.log,
            differs,
            smaller,
            test: None,
            seeds: 0,
        };
        let Some(small) = small else { return finding(whole, only, None) };
        match self.twice(seed, &what, &small.only) {
            (traced, None) => {
                let first = if traced.found.as_ref() == Some(&what) {
                    String::new()
                } else {
                    format!("; at first: {}", what.lines().next().unwrap_or_default())
                };
                finding(traced, &small.only, Some(format!("{small}{first}")))
            }
            _ => finding(whole, only, None),
        }
    }

    /// Runs a seed that found this twice, and returns how the second run differs from the first.
    fn twice(&self, seed: u64, what: &str, only: &Only) -> (Played, Option<String>) {
        let run = || play(self, seed, How { traced: true, only, print: Print::No, until: None });
        let (traced, again) = (run(), run());
        let other = [&traced.found, &again.found].into_iter().find_map(|found| match found {
            Some(found) if is_same(found, what) => None,
            Some(found) => Some(format!("then it found: {found}")),
            None => Some("then it found nothing".into()),
        });
        let differs = other.or_else(|| difference(&traced, &again));
        (traced, differs)
    }
}

fn difference(first: &Played, second: &Played) -> Option<String> {
    let differs = |(first, second): (&String, &String)| first != second;
    let line = first.log.iter().zip(&second.log).position(differs);
    let line = line.or((first.log.len() != second.log.len()).then_some(first.log.len().min(second.log.len())))?;
    let of = |played: &Played| {
        played.log.get(line).map_or("nothing".into(), |text| text.chars().take(200).collect::<String>())
    };
    Some(format!("first in line {}: `{}`, then `{}`", line + 1, of(first), of(second)))
}

#[expect(
    clippy::print_stderr,
    reason = "`DQ_SEED` asked for this account; cargo hides the output of a test that passes"
)]
fn print_account(seed: u64, played: &Played) {
    eprintln!("seed {seed} finds nothing. What happened, in simulated time:\n{}", played.account);
}
