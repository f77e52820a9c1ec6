//! What the nodes said of their runs, and whether that is right.

use std::collections::BTreeMap;

use crate::life::Failed;

/// A run of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    job: u64,
    fence: u64,
    is_early: bool,
    /// The node that ran it: the first, second or third.
    life: u32,
}

impl Run {
    /// Reads a line of a node: `ran JOB FENCE early` or `ran JOB FENCE on-time`.
    pub(crate) fn parse(life: u32, line: &str) -> Result<Self, Failed> {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["ran", job, fence, when] => {
                Ok(Self { job: job.parse()?, fence: fence.parse()?, is_early: when == "early", life })
            }
            _ => Err(format!("the node says `{line}`").into()),
        }
    }
}

/// All runs, by job, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Runs(BTreeMap<u64, Vec<Run>>);

impl Runs {
    pub(crate) fn note(&mut self, run: Run) {
        self.0.entry(run.job).or_default().push(run);
    }

    /// How many jobs ran.
    pub(crate) fn jobs(&self) -> u64 {
        self.0.len() as u64
    }

    /// How many runs there were.
    pub(crate) fn count(&self) -> u64 {
        self.0.values().map(|runs| runs.len() as u64).sum()
    }

    /// Checks that all jobs ran, none early, and none twice in one life. A later run must have a larger fence.
    pub(crate) fn check(&self, jobs: u64) -> Result<(), Failed> {
        let lost = (0..jobs).filter(|job| !self.0.contains_key(job)).count();
        let early = self.0.values().flatten().filter(|run| run.is_early).count();
        let pairs = || self.0.values().flat_map(|runs| runs.windows(2));
        let twice = pairs().filter(|pair| pair[0].life == pair[1].life).count();
        let unordered = pairs().filter(|pair| pair[0].fence >= pair[1].fence).count();
        match (lost, early, twice, unordered) {
            (0, 0, 0, 0) => Ok(()),
            _ => Err(format!(
                "WRONG: {lost} jobs did not run, {early} ran early, {twice} ran twice although no kill interrupted them, \
                 {unordered} ran again under a smaller fence"
            )
            .into()),
        }
    }
}
