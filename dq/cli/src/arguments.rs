//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dq::job::{AppName, TopicName};
use dq::store::{CopyPlace, ExportPart, OnDuplicate};
use dq::time::Delay;

/// Moves the jobs of dq between stores, and checks the directories of `file:` stores.
///
/// `dq export` writes the jobs of an app to stdout as JSON lines, and `dq import` puts such lines into a store of any kind:
///
///   dq export redis://old --app shop | dq import redis://new
///
/// Exit codes: 0 if all is done, 1 if not, 2 for a command line that makes no sense.
#[derive(Debug, Parser)]
#[command(name = "dq", version, verbatim_doc_comment, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
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
    },
    /// Makes the directory of a `file:` store as small as it can be: a snapshot takes the place of the journal.
    ///
    /// No program may use the directory. Running programs do it by themselves from time to time.
    Compact {
        /// The directory, such as `./dq-data/shop`
        #[arg(value_name = "PATH")]
        path: PathBuf,
    },
}

/// The arguments of `dq export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The store: `redis://HOST:PORT/DATABASE`, `rediss://..` or `file:DIRECTORY`
    #[arg(value_name = "URL")]
    pub url: String,
    /// Which jobs.
    #[command(flatten)]
    pub choice: Choice,
    /// For how long a request is repeated while the store does not answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub wait: Duration,
}

/// Which jobs to export.
#[derive(Debug, Clone, Args)]
pub struct Choice {
    /// The app
    #[arg(long, value_name = "APP", value_parser = app)]
    pub app: AppName,
    /// Only this topic; may be given several times. Otherwise all topics of the app
    #[arg(long = "topic", value_name = "TOPIC", value_parser = topic)]
    pub topics: Vec<TopicName>,
    /// Only jobs in this state; may be given several times. Otherwise all
    #[arg(long = "state", value_name = "STATE", value_enum)]
    pub states: Vec<Chosen>,
    /// Also RUNNING jobs: as DELAYED at the time at which they were due, or as UNACKED if they were parked. Such a job may run
    /// in both stores. Topics may change while they are read: what moves may be missing
    #[arg(long)]
    pub running: bool,
}

impl Choice {
    /// The parts of an export of this choice.
    pub fn parts(&self) -> Vec<ExportPart> {
        let is_chosen = |part: &ExportPart| match Chosen::of(*part) {
            None => self.running,
            Some(chosen) => self.states.is_empty() || self.states.contains(&chosen),
        };
        ExportPart::ALL.into_iter().filter(is_chosen).collect()
    }

    /// Whether RUNNING jobs would be missed.
    pub const fn misses_running(&self) -> bool {
        !self.running && self.states.is_empty()
    }
}

/// A state to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Chosen {
    /// Jobs that wait until they are due
    Delayed,
    /// Parked jobs
    Unacked,
    /// Jobs that were given up
    Dead,
    /// Jobs that are kept after their ack
    Done,
    /// Broadcasts that wait
    Broadcast,
}

impl Chosen {
    /// The state of a part; `None` for RUNNING.
    fn of(part: ExportPart) -> Option<Self> {
        use dq::job::State;
        Some(match part {
            ExportPart::State(State::Delayed) => Self::Delayed,
            ExportPart::State(State::Unacked) => Self::Unacked,
            ExportPart::State(State::Dead) => Self::Dead,
            ExportPart::State(State::Done) => Self::Done,
            ExportPart::State(State::Running) => return None,
            ExportPart::Broadcasts => Self::Broadcast,
        })
    }
}

/// The arguments of `dq import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// The store: `redis://HOST:PORT/DATABASE`, `rediss://..` or `file:DIRECTORY`
    #[arg(value_name = "URL")]
    pub url: String,
    /// The file with the lines of the export; otherwise stdin
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The app that gets the jobs; otherwise the app of the export
    #[arg(long, value_name = "APP", value_parser = app)]
    pub app: Option<AppName>,
    /// What to do with a job whose id the topic already has
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Duplicates::Keep)]
    pub on_duplicate: Duplicates,
    /// Accepts an export without its last line: one that was cut off, or that you filtered
    #[arg(long)]
    pub partial: bool,
    /// For how long a request is repeated while the store does not answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub wait: Duration,
}

/// What to do with a job whose id the topic already has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Duplicates {
    /// Stop, and do nothing of the batch with this job
    Reject,
    /// Leave the job that is there
    Keep,
    /// Take the place of the job that is there, unless it is RUNNING
    Replace,
}

impl From<Duplicates> for OnDuplicate {
    fn from(duplicates: Duplicates) -> Self {
        match duplicates {
            Duplicates::Reject => Self::Reject,
            Duplicates::Keep => Self::Keep,
            Duplicates::Replace => Self::Replace,
        }
    }
}

/// The word for a place, in lines and reports.
pub const fn word(place: CopyPlace) -> &'static str {
    match place {
        CopyPlace::Delayed => "delayed",
        CopyPlace::Unacked => "unacked",
        CopyPlace::Dead => "dead",
        CopyPlace::Done => "done",
        CopyPlace::Broadcast => "broadcast",
    }
}

fn app(text: &str) -> Result<AppName, String> {
    AppName::new(text).map_err(|bad| bad.to_string())
}

fn topic(text: &str) -> Result<TopicName, String> {
    TopicName::new(text).map_err(|bad| bad.to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    Delay::parse(text).duration().map_err(|bad| bad.to_string())
}
