//! Why a command failed, and what to do next.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use dq::context::InvalidStoreUrl;
use dq::job::{InvalidName, JobId, TopicName};
use dq::provider::{CallError, FailureReason};
use dq::store::StoreError;
use dq::store::file::CheckError;

/// Why a command failed, and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The URL names no store.
    #[error("cannot use this URL: {0}")]
    Url(#[from] InvalidStoreUrl),
    /// The directory of a `file:` store is not sound, or is no store.
    #[error(transparent)]
    Files(#[from] CheckError),
    /// The store refused a request or did not answer.
    #[error("{what}: {}", cause(.source))]
    Store {
        /// What was asked for.
        what: String,
        /// What the store said.
        source: StoreError,
    },
    /// A job set has not ended.
    #[error(
        "job set `{set}` of topic `{topic}` has not ended, and nothing was exported: `dq sets {topic} {set}` names the jobs that it waits for"
    )]
    JobSet {
        /// The topic.
        topic: TopicName,
        /// The name of the set.
        set: JobId,
    },
    /// A topic changed while it was read.
    #[error(
        "{0}, so the export may miss jobs and has no last line: stop the nodes and the producers of the topic, and export \
         again, or accept that with `--running`"
    )]
    Changed(String),
    /// Neither the command line, nor a variable, nor a config file names it.
    #[error("no {key} is named: give {flag}, set {variable}, or write `{key} = \"..\"` into dq.toml ({file})")]
    NotNamed {
        /// What is missing.
        key: &'static str,
        /// Its flag.
        flag: &'static str,
        /// Its variable.
        variable: &'static str,
        /// What was found of the config file.
        file: String,
    },
    /// The command line or the config file makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A running program holds the directory of a `file:` store.
    #[error(
        "{path} is in use by {holder}. A `file:` store admits one program at a time: make changes in the dashboard of the program that runs, or stop \
         that program and run this command again. Verbs that look, `dq export`, `dq check` and `dq backup` work meanwhile"
    )]
    Held {
        /// The directory.
        path: String,
        /// Who holds it.
        holder: String,
    },
    /// A call of dq failed.
    #[error("{}", as_flag(&.0.to_string()))]
    Call(dq::Error),
    /// There is no such job, schedule or topic.
    #[error("{0}")]
    Missing(String),
    /// Something was not done, for a reason that needs no exit code of its own.
    #[error("{0}")]
    Refused(String),
    /// The confirmation of a destruction was refused.
    #[error(
        "nothing was done: {what}{}",
        if *.asked { " was not confirmed" } else { " needs a confirmation, and there is no terminal: give `--yes`" }
    )]
    NotConfirmed {
        /// What would have been done.
        what: String,
        /// The user was asked.
        asked: bool,
    },
    /// A check found problems.
    #[error("{0}")]
    Problems(String),
    /// The user interrupted it.
    #[error("{0}")]
    Interrupted(String),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Write(io::Error),
    /// The answer to a question cannot be read.
    #[error("cannot read the answer: {0}")]
    Answer(io::Error),
    /// The terminal refuses.
    #[error("the terminal refuses: {0}")]
    Terminal(io::Error),
    /// The input cannot be opened.
    #[error("cannot open `{}`: {source}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not right.
    #[error("line {line}: {why}; {}", so_far(*.imported))]
    Line {
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
        /// The last line that is imported.
        imported: u64,
    },
    /// The last line of the export is missing.
    #[error(
        "the export ends without its last line, so it was cut off: {report}. Export and import again, or accept the part with `--partial`"
    )]
    CutOff {
        /// What was imported.
        report: String,
    },
    /// RUNNING jobs are left alone.
    #[error("{}", left_running(.report, .jobs))]
    LeftRunning {
        /// What was imported.
        report: String,
        /// Some of the jobs.
        jobs: Vec<(TopicName, JobId)>,
    },
}

impl From<InvalidName> for Failure {
    fn from(error: InvalidName) -> Self {
        Self::Call(error.into())
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        if let CallError::NotDone { reason: FailureReason::Store(reason), .. } = &error
            && let StoreError::Held { path, holder } = &**reason
        {
            return Self::Held { path: path.clone(), holder: holder.clone() };
        }
        Self::Call(error.into())
    }
}

/// The exit codes, as the help of the program and `docs/guide/command-line.md` list them.
pub const EXIT_CODES: [(u8, &str); 8] = [
    (0, "success"),
    (1, "failure; stderr has the cause and what to do"),
    (2, "invalid command line, or no store or app named"),
    (3, "unknown topic, job, group, job set or schedule"),
    (4, "confirmation refused"),
    (5, "a check found problems"),
    (130, "interrupted; stderr has the command that continues"),
    (141, "the reader of the output closed it"),
];

/// The list of exit codes of the help.
pub(crate) fn exit_codes() -> String {
    EXIT_CODES.iter().fold("Exit codes:".into(), |list, (code, meaning)| format!("{list}\n  {code:<4} {meaning}"))
}

impl Failure {
    /// The exit code; the help of the program and `docs/guide/command-line.md` list them.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotNamed { .. } | Self::Usage(_) => 2,
            Self::Missing(_) => 3,
            Self::NotConfirmed { .. } => 4,
            Self::Problems(_) => 5,
            Self::Interrupted(_) => 130,
            failure if failure.is_broken_pipe() => 141,
            _ => 1,
        }
    }

    /// Whether the reader of the output closed it.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// A request that was repeated for as long as the user allows.
    pub(crate) fn silent(what: &str, waited: Duration) -> Self {
        let reason = format!("no answer within {} s", waited.as_secs_f64());
        Self::Store { what: what.to_owned(), source: StoreError::Unavailable { operation: "a request", reason } }
    }
}

/// What the store said, without what the failure has said before.
fn cause(source: &StoreError) -> String {
    match source {
        StoreError::Unavailable { reason, .. } | StoreError::NotSent { reason, .. } => reason.clone(),
        source => source.to_string(),
    }
}

/// The error of an option, which the library names as its method, under the name of the flag.
fn as_flag(error: &str) -> String {
    const FLAGS: [(&str, &str); 3] = [("unique_for", "unique-for"), ("when", "at"), ("at", "at")];
    let named = FLAGS.iter().find_map(|(field, flag)| Some((flag, error.strip_prefix(&format!("`{field}`"))?)));
    named.map_or_else(|| error.to_owned(), |(flag, rest)| format!("`--{flag}`{rest}"))
}

/// How much of the input is in the store.
pub(crate) fn so_far(imported: u64) -> String {
    match imported {
        0 => "nothing is imported".into(),
        line => format!("the lines up to {line} are imported, and none after them"),
    }
}

fn left_running(report: &str, jobs: &[(TopicName, JobId)]) -> String {
    let mut text = format!("{report}. These jobs are RUNNING in this store, so they do not get a replacement:");
    for (topic, id) in jobs {
        let _ = write!(text, " `{topic}` `{id}`");
    }
    text.push_str(". Stop the nodes and run the same command again");
    text
}
