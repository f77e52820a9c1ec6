//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use dq::job::TopicName;

use crate::export::ExportArguments;
pub use crate::frame::{ColorChoice, Common};
use crate::import::ImportArguments;
use crate::verbs::add::AddArguments;
use crate::verbs::change::{DeleteArguments, RequeueArguments, RescheduleArguments, RunNowArguments};
use crate::verbs::doctor::DoctorArguments;
use crate::verbs::groups::GroupsCommand;
use crate::verbs::jobs::JobsArguments;
use crate::verbs::limit::LimitArguments;
use crate::verbs::nodes::NodesArguments;
use crate::verbs::pause::{DrainArguments, PauseArguments};
use crate::verbs::schedules::SchedulesCommand;
use crate::verbs::sets::SetsArguments;
use crate::verbs::show::{OneJob, ShowArguments};
use crate::verbs::timeline::TimelineArguments;
use crate::verbs::top::TopArguments;
use crate::verbs::topics::TopicsArguments;
use crate::verbs::watch::WatchArguments;

/// Looks at the jobs of dq, changes them, says why a job has not run, and moves jobs between stores.
///
/// The store and the app come from `--store` and `--app`, from the variables DQ_STORE and DQ_APP, or from `store` and `app` in
/// dq.toml, the first of these that says it:
///
///   dq topics --store redis://localhost --app shop
///
/// Exit codes: 0 all is done; 1 it failed, and stderr says what to do; 2 the command line makes no sense, or names no store or app;
/// 3 there is no such job, schedule or topic; 4 the confirmation was refused; 5 a check found problems; 130 interrupted, and
/// stderr says how to continue; 141 the reader closed the output.
#[derive(Debug, Parser)]
#[command(name = "dq", version, verbatim_doc_comment, max_term_width = 100)]
pub struct Arguments {
    /// What all verbs have.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Lists the topics: how many jobs each has in each state, how late it is, and whether it is paused.
    Topics(TopicsArguments),
    /// Shows one topic: its jobs, what it waits for, and the nodes that hold its jobs.
    Topic {
        /// The topic
        #[arg(value_name = "TOPIC")]
        topic: TopicName,
    },
    /// Lists the nodes of a topic: version of dq, start, jobs and lease of each node that holds jobs, and those that wait for the next.
    Nodes(NodesArguments),
    /// Lists the jobs of a topic in one state, in order of their time.
    ///
    /// A filter looks at 10,000 jobs at most and then says how far it looked; `--all` or the printed command continues.
    Jobs(JobsArguments),
    /// Shows one job: state, failures, error and headers; the payload only with `--payload`.
    Show(ShowArguments),
    /// Says why a job has not run: all reasons that apply, the decisive one first.
    Why(OneJob),
    /// Finds what is wrong with the topics and their store, and repairs what can be repaired with `--repair`.
    ///
    /// No repair loses a job. It exits with 0 if nothing is wrong, and with 5 if something is left.
    Doctor(DoctorArguments),
    /// Shows how many jobs of a topic fall due when.
    Timeline(TimelineArguments),
    /// Shows the topics live: `?` lists the keys.
    Top(TopArguments),
    /// Prints what happens to the jobs of a topic, as it happens.
    ///
    /// Any event may be lost, and the output says where. A `file:` store belongs to one process, so there is nothing to see.
    Watch(WatchArguments),
    /// Adds a job.
    Add(AddArguments),
    /// Makes a DEAD or UNACKED job due now, or all that a filter lets through. DEAD jobs get all their attempts back.
    Requeue(RequeueArguments),
    /// Deletes a job, or all that a filter lets through. Running ones go when their run ends.
    Delete(DeleteArguments),
    /// Makes a job that waits due now, or all that a filter lets through.
    RunNow(RunNowArguments),
    /// Gives a job that waits another due time, or all that a filter lets through.
    Reschedule(RescheduleArguments),
    /// Pauses a topic on all its nodes: they take no more jobs until it ends. Running jobs end as usual.
    Pause(PauseArguments),
    /// Drains a topic: it takes no new jobs, and nodes run only what is due now.
    Drain(DrainArguments),
    /// Shows the limits of a topic, or changes them for all nodes and producers.
    Limit(LimitArguments),
    /// Ends the pause and the drain of a topic.
    Resume {
        /// The topic
        #[arg(value_name = "TOPIC")]
        topic: TopicName,
    },
    /// Lists, pauses and resumes the groups of a topic.
    #[command(subcommand)]
    Groups(GroupsCommand),
    /// Lists the job sets that live in a topic, or the members that one of them waits for.
    Sets(SetsArguments),
    /// Lists, pauses, resumes and removes the schedules of a topic.
    #[command(subcommand)]
    Schedules(SchedulesCommand),
    /// Serves the dashboard and the JSON API until Ctrl-C or SIGTERM. Who changed what goes to stderr.
    Serve(crate::verbs::serve::ServeArguments),
    /// Writes the jobs of an app to stdout, as JSON lines, with all that the store keeps of them.
    ///
    /// It changes nothing in the store. Stop the nodes of the app first and let nothing add to it: an export is no snapshot. It
    /// refuses topics with RUNNING jobs, and fails if a topic changed while it was read.
    Export(ExportArguments),
    /// Puts the jobs of an export into a store.
    ///
    /// Every job gets back its state, its times, its attempts and all else. An import can be repeated: a job that is there already
    /// is left alone, unless `--on-duplicate` says otherwise. A line that is not right stops it, and nothing of its batch is done.
    Import(ImportArguments),
    /// Reads the directory of a `file:` store and says whether it is sound, and how many jobs it holds.
    ///
    /// Every frame, every change and the place of every job is checked. It changes nothing, and a program may use the directory
    /// meanwhile. It needs as much memory as the store.
    Check {
        /// The directory, such as `./dq-data/shop`
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// Write what is sound to this directory, which must be empty or missing, and name every job and range that is not
        #[arg(long, value_name = "TO")]
        salvage: Option<PathBuf>,
    },
    /// Makes the directory of a `file:` store as small as it can be: a snapshot takes the place of the journal.
    ///
    /// No program may use the directory. Running programs do it by themselves from time to time.
    Compact {
        /// The directory, such as `./dq-data/shop`
        #[arg(value_name = "PATH")]
        path: PathBuf,
    },
    /// Copies the directory of a `file:` store to a new directory, even while a program uses it.
    ///
    /// The copy is a store that opens. It has everything that was confirmed before the command started. A copy that was interrupted does
    /// not open.
    Backup {
        /// The directory, such as `./dq-data/shop`
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// The directory of the copy, which must be empty or missing
        #[arg(value_name = "TO")]
        to: PathBuf,
    },
    /// Writes the completions of a shell to stdout.
    Completions {
        /// The shell
        #[arg(value_name = "SHELL", value_enum)]
        shell: clap_complete::Shell,
    },
    /// Writes the man page of the program to stdout, or those of all verbs into a directory.
    Man {
        /// The directory
        #[arg(value_name = "DIRECTORY")]
        directory: Option<PathBuf>,
    },
}
