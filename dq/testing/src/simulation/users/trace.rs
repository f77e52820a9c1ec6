//! The trace of a run: what happened, as an account for people.
//!
//! The trace keeps every line; the account leaves some out. A job that was added, ran once and was acked has one line
//! beside jobs with more events, and none in a long account. An account that is still too long keeps its first and last
//! lines.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

use super::super::sync::lock;
use super::super::units::{MS, SECOND};
use dq::job::{JobId, TopicName};

/// An account of at most this many lines has all jobs.
const WHOLE: usize = 80;

/// A job: its topic and id.
pub(in super::super) type Named = (TopicName, JobId);

/// What happens to a job that runs once and is acked, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Usual {
    Added,
    /// Which node runs which job.
    Runs(String),
    Returns,
    Acked,
}

#[derive(Debug, Clone)]
struct TraceLine {
    at: u64,
    job: Option<Named>,
    usual: Option<Usual>,
    text: String,
}

/// Everything that happened, in order.
#[derive(Debug, Default)]
pub(super) struct Trace {
    lines: Mutex<Vec<TraceLine>>,
    runs: Mutex<BTreeMap<Named, u64>>,
}

impl Trace {
    pub(super) fn push(&self, at: u64, job: Option<Named>, usual: Option<Usual>, text: String) {
        lock(&self.lines).push(TraceLine { at, job, usual, text });
    }

    /// A handler is called: returns which run of its job this is.
    pub(super) fn next_run(&self, job: &Named) -> u64 {
        let mut runs = lock(&self.runs);
        let run = runs.entry(job.clone()).or_default();
        *run += 1;
        *run
    }

    /// The account of the run.
    pub(super) fn account(&self) -> String {
        let (lines, runs) = (lock(&self.lines), lock(&self.runs));
        let mut of_jobs: BTreeMap<&Named, Vec<&TraceLine>> = BTreeMap::new();
        for line in lines.iter() {
            if let Some(job) = &line.job {
                of_jobs.entry(job).or_default().push(line);
            }
        }
        let jobs = of_jobs.len();
        // When the run starts, and when it is acked.
        let smooth: BTreeMap<&Named, (u64, u64)> =
            of_jobs.into_iter().filter_map(|(job, lines)| Some((job, smooth(&lines)?))).collect();
        let is_smooth = |job: &Option<Named>| job.as_ref().and_then(|job| smooth.get(job)).copied();
        if smooth.len() == jobs && lines.len() <= WHOLE {
            return written(lines.iter().map(|line| (line.at, line.text.clone())));
        }
        let short = |line: &TraceLine| match (&line.usual, is_smooth(&line.job)) {
            (_, None) => Some((line.at, line.text.clone())),
            (Some(Usual::Runs(who)), Some((start, end))) => {
                Some((line.at, format!("{who}, once, and it is acked {} ms later", (end - start) / MS)))
            }
            _ => None,
        };
        let account: Vec<_> = lines.iter().filter_map(short).collect();
        if account.len() <= WHOLE {
            return written(account.into_iter());
        }
        let again = |job: &Named| runs.get(job).is_some_and(|runs| *runs > 1);
        let kept: Vec<_> = lines.iter().filter(|line| line.job.as_ref().is_none_or(again)).collect();
        let line = |line: &&TraceLine| (line.at, line.text.clone());
        let left_out = lines.len() - kept.len();
        let mut account = if kept.len() <= WHOLE {
            written(kept.iter().map(line))
        } else {
            let (begin, end) = (&kept[..WHOLE / 2], &kept[kept.len() - WHOLE / 2..]);
            let between = kept.len() - WHOLE;
            format!("{}  (.. {between} lines ..)\n{}", written(begin.iter().map(line)), written(end.iter().map(line)))
        };
        if left_out > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(account, "  ({left_out} more lines are of jobs that ran once)");
        }
        account
    }
}

/// For a job that runs once and is acked: when its run starts, and when it is acked.
fn smooth(lines: &[&TraceLine]) -> Option<(u64, u64)> {
    let [added, runs, returns, acked] = lines else { return None };
    let usual = matches!(runs.usual, Some(Usual::Runs(_)))
        && [added, returns, acked].map(|line| &line.usual)
            == [&Some(Usual::Added), &Some(Usual::Returns), &Some(Usual::Acked)];
    usual.then_some((runs.at, acked.at))
}

fn written(lines: impl Iterator<Item = (u64, String)>) -> String {
    let mut account = String::new();
    for (at, text) in lines {
        let (seconds, millis) = (at / SECOND, at % SECOND / MS);
        // Writing to a string cannot fail.
        let _ = writeln!(account, "{seconds:>6}.{millis:03} s  {text}");
    }
    account
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: u64) -> Option<Named> {
        Some((TopicName::new("t").unwrap(), JobId::new(id.to_string()).unwrap()))
    }

    fn runs_once(trace: &Trace, id: u64) {
        trace.push(MS, job(id), Some(Usual::Added), format!("t/{id} is added"));
        trace.next_run(&job(id).unwrap());
        trace.push(2 * MS, job(id), Some(Usual::Runs(format!("n1 runs t/{id}"))), format!("n1 runs t/{id}: run 1"));
        trace.push(5 * MS, job(id), Some(Usual::Returns), format!("n1 t/{id}: returns ack"));
        trace.push(6 * MS, job(id), Some(Usual::Acked), format!("the store has the ack of t/{id}"));
    }

    #[test]
    fn an_account_without_trouble_has_every_line() {
        let trace = Trace::default();
        (0..3).for_each(|id| runs_once(&trace, id));
        assert_eq!(trace.account().lines().count(), 12);
    }

    #[test]
    fn a_job_without_trouble_has_one_line_beside_others() {
        let trace = Trace::default();
        runs_once(&trace, 1);
        trace.push(MS, job(2), Some(Usual::Added), "t/2 is added".into());
        trace.push(3 * MS, None, None, "n1 IS KILLED".into());
        let account: Vec<_> = trace.account().lines().map(str::to_owned).collect();
        let kept = ["n1 runs t/1, once, and it is acked 4 ms later", "t/2 is added", "n1 IS KILLED"];
        assert!(
            account.len() == 3 && kept.iter().zip(&account).all(|(text, line)| line.ends_with(text)),
            "{account:?}"
        );
    }

    #[test]
    fn a_long_account_leaves_out_jobs_that_ran_once() {
        let trace = Trace::default();
        (0..100).for_each(|id| runs_once(&trace, id));
        trace.next_run(&job(7).unwrap());
        let account = trace.account();
        assert_eq!(account.lines().count(), 5, "{account}");
        assert!(account.ends_with("(396 more lines are of jobs that ran once)\n"), "{account}");
    }

    #[test]
    fn an_endless_account_keeps_its_first_and_last_lines() {
        let trace = Trace::default();
        for run in 1..=1_000 {
            trace.next_run(&job(1).unwrap());
            trace.push(run * MS, job(1), None, format!("run {run} of t/1"));
        }
        let account = trace.account();
        assert_eq!(account.lines().count(), WHOLE + 1, "{account}");
        for kept in ["run 1 of", "run 40 of", "\n  (.. 920 lines ..)\n", "run 961 of", "run 1000 of"] {
            assert!(account.contains(kept), "{kept}: {account}");
        }
        assert!(!account.contains("ran once"), "{account}");
    }
}
