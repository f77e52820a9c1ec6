//! The finding of a seed.

use std::fmt;

/// A finding: what is wrong in the run of a seed, what happened, and how to run it again. Read its `Display` text.
///
/// ```
/// use dq_testing::simulate;
///
/// let simulation = simulate(|| ()).node(|factory, ()| factory.without_listeners());
/// let finding = simulation.check(|(), _| Err("the ledger is empty")).try_run().unwrap_err();
/// assert_eq!(finding.what, "the ledger is empty");
/// println!("{finding}");                               // the account, and the command that runs this again
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finding {
    /// The seed.
    pub seed: u64,
    /// What is left of the run of this seed, in the form of the variable `DQ_ONLY`; `all` if nothing was left out.
    pub only: String,
    /// What is wrong.
    pub what: String,
    /// The account: what happened in simulated time, one line each, with faults, runs and the outcomes of jobs.
    pub account: String,
    /// Every event down to each request to the store, for the developers of dq.
    pub log: Vec<String>,
    /// How a second run of the seed differed; `None` if it was the same, line by line. A run that differs is not shrunk.
    pub differs: Option<String>,
    /// How the run was shrunk.
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
        // Cargo tells the tests it runs the name of their package.
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
                "NOT the same when it was run again ({how}): the seed does not decide everything here. Look for threads, the \
                 order of a HashMap, SystemTime, real I/O, `select!` without `biased;`: see docs/guide/testing.md of dq."
            );
        }
        writeln!(f, "run it again:  {}", self.command(only))?;
        if smaller.is_some() {
            writeln!(f, "the whole run: {}", self.command("all"))?;
        }
        Ok(())
    }
}

impl std::error::Error for Finding {}
