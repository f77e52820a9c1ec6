//! Which jobs a verb is about.

use clap::Args;
use dq::inspect::{Cursor, JobFilter, TopicSummary};
use dq::job::{State, TopicName};
use dq::time::Timestamp;

use crate::words::Word;
use crate::{cursor, when};

/// The states of a job.
pub(crate) const STATES: &[Word<State>] = &[
    (State::Delayed, "delayed", "Jobs that wait until they are due"),
    (State::Running, "running", "Jobs that a node holds"),
    (State::Unacked, "unacked", "Parked jobs"),
    (State::Dead, "dead", "Jobs that were given up"),
    (State::Done, "done", "Jobs that are kept after their ack"),
];

/// Conditions that a job fulfils. Without any, every job of the state does.
#[derive(Debug, Clone, Default, Args)]
pub struct Filters {
    /// The id begins with this string
    #[arg(long, value_name = "TEXT")]
    pub id_prefix: Option<String>,
    /// A header has this value
    #[arg(long, value_name = "NAME=VALUE", value_parser = header)]
    pub header: Option<(String, String)>,
    /// The last error contains this string
    #[arg(long, value_name = "TEXT")]
    pub error: Option<String>,
    /// The job has failed this often at least
    #[arg(long, value_name = "TIMES")]
    pub attempts: Option<u16>,
    /// The time of the job is this or later: due (delayed), in this state from (unacked, dead), kept until (done); `now`, `+15m`,
    /// `-2h`, or 2026-11-23T03:00:00Z
    #[arg(long, value_name = "TIME", value_parser = when::time, allow_hyphen_values = true)]
    pub from: Option<Timestamp>,
    /// The time of the job is earlier than this
    #[arg(long, value_name = "TIME", value_parser = when::time, allow_hyphen_values = true)]
    pub until: Option<Timestamp>,
}

impl Filters {
    /// The filter of the library.
    pub(crate) fn filter(&self) -> JobFilter {
        let Self { id_prefix, header, error, attempts, from, until } = self.clone();
        JobFilter { id_prefix, header, error, attempts, from, until }
    }

    /// Whether every job fulfils it.
    pub(crate) fn is_empty(&self) -> bool {
        self.filter() == JobFilter::default()
    }

    /// The words of the command line that say the same, also later: times are absolute.
    pub(crate) fn words(&self) -> String {
        let mut words = String::new();
        let mut add = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                words.push_str(&format!(" --{flag} {}", quoted(&value)));
            }
        };
        add("id-prefix", self.id_prefix.clone());
        add("header", self.header.as_ref().map(|(name, value)| format!("{name}={value}")));
        add("error", self.error.clone());
        add("attempts", self.attempts.map(|attempts| attempts.to_string()));
        add("from", self.from.map(|from| from.to_string()));
        add("until", self.until.map(|until| until.to_string()));
        words
    }
}

/// The topic, and one job of it or all that fulfil conditions.
#[derive(Debug, Clone, Args)]
pub struct Target {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// The id of one job
    #[arg(value_name = "ID", conflicts_with_all = ["id_prefix", "header", "error", "attempts", "from", "until", "all", "cursor", "state"])]
    pub id: Option<String>,
    /// Change the job only if it has this version, which `dq show` names
    #[arg(long, value_name = "VERSION", requires = "id")]
    pub if_version: Option<u32>,
    /// Which jobs, where no id is given
    #[command(flatten)]
    pub filters: Filters,
    /// All jobs of the state
    #[arg(long)]
    pub all: bool,
    /// Continue after this cursor, which an interrupted command printed
    #[arg(long, value_name = "CURSOR", value_parser = cursor::read)]
    pub cursor: Option<Cursor>,
}

impl Target {
    /// Whether it says neither which job nor which jobs.
    pub(crate) fn says_nothing(&self) -> bool {
        self.id.is_none() && !self.all && self.cursor.is_none() && self.filters.is_empty()
    }
}

/// How many jobs of a state a topic has.
pub(crate) const fn count(topic: &TopicSummary, state: State) -> usize {
    match state {
        State::Delayed => topic.delayed,
        State::Running => topic.running,
        State::Unacked => topic.unacked,
        State::Dead => topic.dead,
        State::Done => topic.done,
    }
}

/// A word as a shell takes it.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":%._-=/+@,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

pub(super) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
