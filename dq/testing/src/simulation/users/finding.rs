//! What a seed found.

use std::fmt;

/// A seed found something: what, what happened, and how to see it again. Its `Display` is the text to read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finding {
    /// The seed.
    pub seed: u64,
    /// What is left of the run of that seed, as the variable `DQ_ONLY` takes it; `all`: nothing was left out.
    pub only: String,
    /// What is wrong.
    pub what: String,
    /// What happened, a line each: faults, runs, what became of outcomes.
    pub account: String,
    /// Everything that happened, down to each request to the store: for dq's own developers.
    pub log: Vec<String>,
    /// How a second run of the seed differed; `None`: it was the same, line by line. A run that differs is not made smaller.
    pub differs: Option<String>,
    /// How the run was made smaller.
    pub(super) smaller: Option<String>,
    pub(super) test: Option<String>,
    pub(super) seeds: u64,
}

impl Finding {
    /// The command that runs this again.
    fn command(&self, only: &str) -> String {
        let only = match only {
            "all" if self.smaller.is_none() => String::new(),
            "all" => " DQ_ONLY=all".into(),
            parts => format!(" DQ_ONLY='{parts}'"),
        };
        let variables = format!("DQ_SEED={}{only}", self.seed);
        // Cargo says to what it runs which package it is of.
        let package = std::env::var("CARGO_PKG_NAME").map(|name| format!(" -p {name}")).unwrap_or_default();
        match &self.test {
            Some(test) => format!("{variables} cargo test{package} {test} -- --exact"),
            None => format!("the same command with {variables}"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, only, what, account, differs, smaller, seeds, .. } = self;
        writeln!(f, "seed {seed} (run {seeds}): {what}\n")?;
        if let Some(smaller) = smaller {
            writeln!(f, "{smaller}\n")?;
        }
        writeln!(f, "what happened, in simulated time:\n{account}")?;
        if let Some(how) = differs {
            return writeln!(
                f,
                "NOT the same when it was run again ({how}): something here is not decided by the seed. Threads, the order \
                 of a HashMap, SystemTime, real I/O, `select!` without `biased;`: see docs/guide/testing.md of dq."
            );
        }
        writeln!(f, "the same again: {}", self.command(only))?;
        if smaller.is_some() {
            writeln!(f, "the whole run:  {}", self.command("all"))?;
        }
        Ok(())
    }
}

impl std::error::Error for Finding {}
