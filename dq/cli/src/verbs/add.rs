//! `dq add`.

use std::io::Read;
use std::time::Duration;

use clap::Args;
use dq::job::{GroupName, Priority, TopicName, Weight};
use dq::provider::{Added, AddedHow, CallError, Refusal};
use dq::time::Timestamp;
use serde::Serialize;

use crate::failure::Failure;
use crate::safe::safe;
use crate::session::Session;
use crate::when;

/// The longest payload from stdin, in bytes; the limit of the provider is lower.
const LONGEST: u64 = 16 << 20;

/// The arguments of `dq add`.
#[derive(Debug, Args)]
pub struct AddArguments {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// The payload as JSON; `-` reads it from stdin
    #[arg(value_name = "PAYLOAD", allow_hyphen_values = true)]
    pub payload: String,
    /// The id, which must not exist yet [default: a new one]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// How long after the add it is due [default: the default delay of the topic, or now]
    #[arg(long, visible_alias = "after", value_name = "TIME", value_parser = when::duration, conflicts_with = "at")]
    pub delay: Option<Duration>,
    /// When it is due: `now`, `+15m`, or 2026-11-23T03:00:00Z
    #[arg(long, value_name = "TIME", value_parser = when::time, allow_hyphen_values = true)]
    pub at: Option<Timestamp>,
    /// The retry policy, such as "none" or "1m, 5m, 10m" [default: the policy of the listener]
    #[arg(long, value_name = "POLICY")]
    pub retry: Option<String>,
    /// Which due jobs go first: high, normal or low [default: normal]
    #[arg(long, value_name = "PRIORITY")]
    pub priority: Option<Priority>,
    /// The group of the job, such as customer-42: only so many of its jobs run at a time
    #[arg(long, value_name = "GROUP")]
    pub group: Option<GroupName>,
    /// How much of the rate of the topic its start spends, 1 to 10000 [default: 1]
    #[arg(long, value_name = "WEIGHT")]
    pub weight: Option<Weight>,
    /// How long the id stays taken, even if the job has run or was deleted [default: as long as the job exists]
    #[arg(long, value_name = "TIME", value_parser = when::duration, requires = "id")]
    pub unique_for: Option<Duration>,
    /// A header of the job; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::which::header)]
    pub header: Vec<(String, String)>,
    /// Replace a job with this id
    #[arg(long)]
    pub replace: bool,
    /// Succeed without an add if the id is taken
    #[arg(long, requires = "id", conflicts_with = "replace")]
    pub keep: bool,
}

#[derive(Debug, Serialize)]
struct AddedJob<'a> {
    id: &'a str,
    replaced: bool,
    kept: bool,
}

/// Adds a job.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &AddArguments) -> Result<(), Failure> {
    let payload = match arguments.payload.as_str() {
        "-" => read_stdin()?,
        payload => payload.to_owned(),
    };
    let provider = session.provider().await?;
    let mut add = provider.topic(arguments.topic.as_str())?.add_json(payload);
    if let Some(id) = &arguments.id {
        add = add.id(id);
    }
    if let Some(delay) = arguments.delay {
        add = add.after(delay);
    }
    if let Some(at) = arguments.at {
        add = add.at(at);
    }
    if let Some(retry) = &arguments.retry {
        add = add.retry(retry);
    }
    if let Some(priority) = arguments.priority {
        add = add.priority(priority);
    }
    if let Some(group) = &arguments.group {
        add = add.group(group);
    }
    if let Some(weight) = arguments.weight {
        add = add.weight(weight);
    }
    for (name, value) in &arguments.header {
        add = add.header(name, value);
    }
    if let Some(time) = arguments.unique_for {
        add = add.unique_for(time);
    }
    let added = match (arguments.replace, arguments.keep) {
        (true, _) => add.replace_existing().await,
        (_, true) => add.keep_existing().await.map(Added::from),
        _ => add.await,
    };
    let added = added.map_err(refused)?;
    let (replaced, kept) = match added.how {
        AddedHow::New => (false, false),
        AddedHow::Kept(_) | AddedHow::KeptDeleted => (false, true),
        _ => (true, false),
    };
    if session.screen.is_json() {
        return session.screen.json(&AddedJob { id: added.id.as_str(), replaced, kept });
    }
    let how = match (replaced, kept) {
        (true, _) => "replaced",
        (_, true) => "kept",
        _ => "added",
    };
    session.screen.line(format_args!("{how} {}", safe(added.id.as_str())))
}

fn refused(error: CallError) -> Failure {
    match error {
        CallError::Refused { target, refusal: Refusal::Exists(state) } => Failure::Refused(format!(
            "{target} exists and is {state}: accept that with `--keep`, take its place with `--replace`, or leave out `--id`"
        )),
        CallError::Refused { target, refusal: Refusal::Deleted } => Failure::Refused(format!(
            "{target} was deleted, and its id stays taken: accept that with `--keep`, or run it again with `--replace`"
        )),
        error => error.into(),
    }
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text);
    read.map_err(|source| Failure::Open { path: "-".into(), source })?;
    if text.len() as u64 > LONGEST {
        return Err(Failure::Refused(format!("the payload has more than {LONGEST} bytes")));
    }
    Ok(text)
}
