//! What is fuzzed, and what is counted.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::draw::Draw;

/// The panics of all threads, those that dq catches included.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Where the last one was.
static LAST: Mutex<String> = Mutex::new(String::new());

/// No run may take longer: an input that does is a way to keep dq busy.
const LONGEST: Duration = Duration::from_secs(30);

/// Something that takes input from outside.
pub struct Target {
    pub name: &'static str,
    /// What it generates, and what it does with it.
    pub about: &'static str,
    /// How many inputs a short run has.
    pub short: u64,
    /// Generates some inputs, and gives them to dq.
    pub run: fn(&Draw, &mut Found),
}

/// What the inputs of some runs led to.
#[derive(Debug, Default)]
pub struct Found {
    /// How many inputs there were.
    pub executions: u64,
    /// How many of them dq accepted.
    pub accepted: u64,
    pub panics: u64,
    /// Jobs that dq had accepted, and that neither ran nor are in the store; innocent jobs that did not run once.
    pub lost: u64,
    /// Inputs over a limit that were accepted, and requests without the right to that did something.
    pub let_in: u64,
    /// The longest run, and its seed.
    pub slowest: (Duration, u64),
    /// What went wrong in the last run, in words.
    pub what: Vec<String>,
}

impl Found {
    pub fn lost(&mut self, what: impl Into<String>) {
        self.lost += 1;
        self.what.push(what.into());
    }

    pub fn let_in(&mut self, what: impl Into<String>) {
        self.let_in += 1;
        self.what.push(what.into());
    }

    /// Counts an input.
    pub fn input(&mut self, is_accepted: bool) {
        self.executions += 1;
        self.accepted += u64::from(is_accepted);
    }
}

/// Counts panics instead of printing them.
pub fn count_panics() {
    std::panic::set_hook(Box::new(|panic| {
        PANICS.fetch_add(1, Relaxed);
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text")
}

impl Target {
    /// Runs the inputs of a seed. Returns what went wrong.
    pub fn run(&self, seed: u64, found: &mut Found) -> Vec<String> {
        let (before, start) = (PANICS.load(Relaxed), Instant::now());
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.run)(&Draw::new(seed), found))) {
            found.what.push(message(&*panic).to_owned());
        }
        let time = start.elapsed();
        if time > LONGEST {
            found.what.push(format!("it took {time:?}"));
        }
        found.slowest = found.slowest.max((time, seed));
        let panics = PANICS.load(Relaxed) - before;
        found.panics += panics;
        if panics > 0 {
            let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            // First: what follows may come from them.
            found.what.insert(0, format!("{panics} panics, the last at {last}"));
        }
        std::mem::take(&mut found.what)
    }
}
