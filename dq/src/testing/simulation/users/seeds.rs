//! Seed after seed, until one finds something; then that one again, to tell it and to see whether it is the same.

use std::panic::resume_unwind;
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::finding::Finding;
use super::play::{Played, play};
use super::report::Summary;
use super::simulation::Simulation;

/// Names the one seed to run.
const VARIABLE: &str = "DQ_SEED";

impl<S: Clone + Send + Sync + 'static> Simulation<S> {
    /// As [`run`](Self::run), and gives what was found instead of a panic.
    ///
    /// # Errors
    /// The [`Finding`] of the first seed that found something.
    ///
    /// # Panics
    /// When a node cannot start, with its problems; when `DQ_SEED` is no number.
    pub fn try_run(self) -> Result<Summary, Box<Finding>> {
        let test = std::thread::current().name().filter(|name| *name != "main").map(str::to_owned);
        let runs = Builder::new().name("dq-simulation".into()).spawn(move || self.run_seeds(test));
        match runs.expect("the operating system gives a thread").join() {
            Ok(ended) => ended,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn run_seeds(&self, test: Option<String>) -> Result<Summary, Box<Finding>> {
        let named = std::env::var(VARIABLE).ok();
        let named = named.map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{VARIABLE}={text} is no seed")));
        let seeds = named.map_or(self.seeds.clone(), |seed| seed..seed + 1);
        let (start, mut summary) = (Instant::now(), Summary::default());
        for seed in seeds.clone() {
            let played = play(self, seed, seed == seeds.start);
            summary.seeds += 1;
            summary.jobs += played.jobs;
            summary.handled += played.handled;
            summary.faults += played.faults;
            summary.simulated += Duration::from_micros(played.time);
            if let Some(what) = played.found {
                return Err(Box::new(self.tell(seed, what, summary.seeds, test)));
            }
            if seed == seeds.start {
                if named.is_some() {
                    print(&format!("seed {seed} finds nothing. What happened, in simulated time:\n{}", played.account));
                }
                summary.differs = difference(&played, &play(self, seed, true));
            }
        }
        summary.took = start.elapsed();
        Ok(summary)
    }

    /// Runs a seed that found something twice more.
    fn tell(&self, seed: u64, what: String, seeds: u64, test: Option<String>) -> Finding {
        let (told, again) = (play(self, seed, true), play(self, seed, true));
        let differs = match &told.found {
            Some(found) if *found == what => difference(&told, &again),
            Some(found) => Some(format!("then it found: {found}")),
            None => Some("then it found nothing".into()),
        };
        Finding { seed, what, account: told.account, log: told.log, differs, test, seeds }
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

#[expect(clippy::print_stderr, reason = "it was asked for by a variable; a test's output is kept by cargo")]
fn print(text: &str) {
    eprintln!("{text}");
}
