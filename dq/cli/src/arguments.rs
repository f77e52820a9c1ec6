//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use dq::job::TopicName;

use crate::export::ExportArguments;
use crate::failure::exit_codes;
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

/// Look at the jobs of dq, change and explain them, and move them between stores
///
/// The store and the app come from `--store` and `--app`, from the variables DQ_STORE and DQ_APP, or from `store` and `app` in
/// dq.toml; the first of these applies. For example: `dq topics --store redis://localhost --app shop`
#[derive(Debug, Parser)]
#[command(name = "dq", version, max_term_width = 100, after_help = exit_codes())]
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
    /// List the topics, each with its jobs by state, its lateness and its pause
    Topics(TopicsArguments),
    /// Show one topic: its jobs, its default delay, and the nodes that hold its jobs
    Topic {
        /// The topic
        #[arg(value_name = "TOPIC")]
        topic: TopicName,
    },
    /// List the nodes of a topic: version of dq, start, jobs and lease of each
    Nodes(NodesArguments),
    /// List the jobs of a topic in one state, in order of their time
    ///
    /// A filter looks at 10,000 jobs at most and then reports how far it looked; `--all` or the printed command continues.
    Jobs(JobsArguments),
    /// Show one job: state, failures, error and headers; `--payload` adds the payload
    Show(ShowArguments),
    /// Explain why a job has not run: every reason, with a command for each
    Why(OneJob),
    /// Find what is wrong with the topics and their store; `--repair` repairs what it can
    ///
    /// No repair loses a job. It exits with 0 if nothing is wrong, and with 5 if something is left.
    Doctor(DoctorArguments),
    /// Show how many jobs of a topic ran and fall due, by minute, hour or day
    Timeline(TimelineArguments),
    /// Show the topics live; `?` lists the keys
    Top(TopArguments),
    /// Print the events of a topic as they happen
    ///
    /// Any event may be lost, and the output reports where. A `file:` store is refused: only the process that uses its directory gets its
    /// events.
    Watch(WatchArguments),
    /// Add a job
    Add(AddArguments),
    /// Make a DEAD or UNACKED job due now with all its attempts, or all matching jobs
    Requeue(RequeueArguments),
    /// Delete a job, or all matching jobs; running ones when their run ends
    Delete(DeleteArguments),
    /// Make a waiting job due now, or all matching jobs
    RunNow(RunNowArguments),
    /// Give a waiting job another due time, or all matching jobs
    Reschedule(RescheduleArguments),
    /// Pause a topic on all its nodes; running jobs end as usual
    Pause(PauseArguments),
    /// Drain a topic: it takes no new jobs, and nodes run only jobs that are due now
    Drain(DrainArguments),
    /// Show the limits of a topic, or change them for all nodes and producers
    Limit(LimitArguments),
    /// End the pause and the drain of a topic
    Resume {
        /// The topic
        #[arg(value_name = "TOPIC")]
        topic: TopicName,
    },
    /// List, pause and resume the groups of a topic
    #[command(subcommand)]
    Groups(GroupsCommand),
    /// List the job sets of a topic, or the members that one of them waits for
    Sets(SetsArguments),
    /// List, pause, resume and remove the schedules of a topic
    #[command(subcommand)]
    Schedules(SchedulesCommand),
    /// Serve the dashboard and the JSON API until Ctrl-C or SIGTERM
    ///
    /// A line on stderr reports each change and its author.
    Serve(crate::verbs::serve::ServeArguments),
    /// Write the jobs of an app to stdout as JSON lines
    ///
    /// It changes nothing in the store. Stop the nodes of the app first and let nothing add to it: an export is no snapshot. It
    /// refuses topics with RUNNING jobs, and fails if a topic changed while it was read.
    Export(ExportArguments),
    /// Put the jobs of an export into a store
    ///
    /// Every job gets back its state, its times, its attempts and all else. An import can be repeated: jobs that are there already stay,
    /// unless `--on-duplicate` is given. An invalid line stops the import, and nothing of its batch is done.
    Import(ImportArguments),
    /// Check the directory of a `file:` store, and count its jobs
    ///
    /// Every frame, every change and the place of every job is checked. It changes nothing, and a program may use the directory
    /// meanwhile. It needs less than 300 MiB of memory, however many jobs there are.
    Check {
        /// The directory, such as `./dq-data/shop`
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// Write what is sound to this directory, which must be empty or missing, and name every job and range that is not
        #[arg(long, value_name = "TO")]
        salvage: Option<PathBuf>,
    },
    /// Shrink the directory of a `file:` store: a snapshot replaces the journal
    ///
    /// No program may use the directory. Running programs do it by themselves from time to time.
    Compact {
        /// The directory, such as `./dq-data/shop`
        #[arg(value_name = "PATH")]
        path: PathBuf,
    },
    /// Copy the directory of a `file:` store to a new one, even while a program uses it
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
    /// Write the completions of a shell to stdout
    Completions {
        /// The shell
        #[arg(value_name = "SHELL", value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write the man page of the program to stdout, or one for each verb into a directory
    Man {
        /// The directory
        #[arg(value_name = "DIRECTORY")]
        directory: Option<PathBuf>,
    },
}
