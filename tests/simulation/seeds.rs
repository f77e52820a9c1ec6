//! Runs seeds on all cores and hands their results over in the order of the seeds, so that the
//! first finding does not depend on which thread was faster.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use dq_testing::simulation::{Options, Report, simulate};

/// How a seed ended: with a report, which may have a finding, or with a panic.
pub struct Ran {
    pub report: Option<Report>,
    pub found: Option<String>,
}

thread_local! {
    /// The first panic of the seed that this thread runs. Handlers that panic on purpose do not come here.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A panic anywhere in the simulated code is a finding, even if a task or the node itself would catch it.
pub fn watch_panics() {
    std::panic::set_hook(Box::new(|panic| {
        PANIC.with_borrow_mut(|first| *first = first.take().or_else(|| Some(format!("PANIC: {panic}"))));
    }));
}

/// Runs one seed.
pub fn run(seed: u64, options: &Options) -> Ran {
    PANIC.take();
    let report = catch_unwind(AssertUnwindSafe(|| simulate(seed, options)));
    let broken = |panic: &Box<dyn Any + Send>| format!("PANIC: {panic:?}");
    let panic = PANIC.take().or_else(|| report.as_ref().err().map(broken));
    let report = report.ok();
    let found = panic.or_else(|| report.as_ref().and_then(|report| report.found.clone()));
    Ran { report, found }
}

/// Runs `seeds` seeds from `from` on with `threads` threads, and gives each to `take` in order until it returns false.
pub fn run_all(from: u64, seeds: u64, threads: usize, options: &Options, mut take: impl FnMut(u64, Ran) -> bool) {
    let (next, stop) = (AtomicU64::new(from), AtomicBool::new(false));
    let end = from + seeds;
    thread::scope(|scope| {
        let (done, ended) = mpsc::channel();
        for _ in 0..threads {
            let (done, next, stop) = (done.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    let seed = next.fetch_add(1, Relaxed);
                    // The receiver is gone: the run was stopped.
                    if seed >= end || done.send((seed, run(seed, options))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        let (mut early, mut due) = (BTreeMap::new(), from);
        for (seed, ran) in ended {
            early.insert(seed, ran);
            while let Some(ran) = early.remove(&due) {
                if !take(due, ran) {
                    return stop.store(true, Relaxed);
                }
                due += 1;
            }
        }
    });
}
