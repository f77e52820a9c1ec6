//! What a seed found.

use std::fmt;

/// A seed found something: what, what happened, and how to see it again. Its `Display` is the text to read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finding {
    /// The seed.
    pub seed: u64,
    /// What is wrong.
    pub what: String,
    /// What happened, a line each: faults, runs, what became of outcomes.
    pub account: String,
    /// Everything that happened, down to each request to the store: for dq's own developers.
    pub log: Vec<String>,
    /// How a second run of the seed differed; `None`: it was the same, line by line.
    pub differs: Option<String>,
    pub(super) test: Option<String>,
    pub(super) seeds: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, what, account, differs, test, seeds, .. } = self;
        writeln!(f, "seed {seed} (run {seeds}): {what}\n\nwhat happened, in simulated time:")?;
        write!(f, "{account}")?;
        match differs {
            None => match test {
                Some(test) => writeln!(f, "\nthe same again: DQ_SEED={seed} cargo test {test}"),
                None => writeln!(f, "\nthe same again: the same command with DQ_SEED={seed}"),
            },
            Some(how) => writeln!(
                f,
                "\nNOT the same when it was run again ({how}): something here is not decided by the seed. Threads, the order \
                 of a HashMap, SystemTime, real I/O, `select!` without `biased;`: see docs/testing.md of dq."
            ),
        }
    }
}

impl std::error::Error for Finding {}
