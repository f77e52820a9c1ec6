//! `dq schedules`.

use clap::{Args, Subcommand};
use comfy_table::Cell;
use dq::job::TopicName;
use dq::provider::{CallError, Refusal, ScheduleDetails, ScheduleInfo};
use dq::schedule::{SchedulePause, Times};
use dq::time::Timestamp;
use serde::Serialize;

use crate::failure::Failure;
use crate::safe::{cut, safe};
use crate::screen::{alarm, cell};
use crate::session::Session;
use crate::verbs::topics::known;
use crate::when::{beside, short};

/// What to do with the schedules of a topic.
#[derive(Debug, Subcommand)]
pub enum SchedulesCommand {
    /// List the schedules of a topic, 100 a page
    List {
        /// The topic
        #[arg(value_name = "TOPIC")]
        topic: TopicName,
        /// Start after this schedule
        #[arg(long, value_name = "NAME")]
        cursor: Option<String>,
        /// Read page after page
        #[arg(long)]
        all: bool,
    },
    /// Pause a schedule: it adds no jobs until a resume
    Pause {
        /// Which.
        #[command(flatten)]
        which: OneSchedule,
        /// The reason, for later readers
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// End the pause of a schedule
    Resume(OneSchedule),
    /// Remove a schedule, which the next start of a program that defines it adds again
    Remove(OneSchedule),
}

/// One schedule.
#[derive(Debug, Args)]
pub struct OneSchedule {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// The name of the schedule
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// What `--json` writes for a schedule.
#[derive(Debug, Serialize)]
struct ScheduleLine<'a> {
    name: &'a str,
    times: Option<String>,
    next: Option<u64>,
    last_job: Option<&'a str>,
    paused: Option<&'a str>,
    paused_by: Option<&'a str>,
    unreadable: Option<&'a str>,
}

impl<'a> ScheduleLine<'a> {
    fn new(seen: &'a ScheduleInfo) -> Self {
        let (details, unreadable) = match &seen.details {
            Ok(details) => (Some(details), None),
            Err(reason) => (None, Some(reason.as_str())),
        };
        let pause = details.and_then(|details| details.pause.as_ref());
        Self {
            name: &seen.name,
            times: details.map(|details| times(&details.times)),
            next: details.map(|details| details.next.as_millis()),
            last_job: details.and_then(|details| details.last_job.as_ref()).map(dq::job::JobId::as_str),
            paused: pause.map(|pause| pause.reason.as_str()),
            paused_by: pause.map(|pause| pause.by.as_str()),
            unreadable,
        }
    }
}

/// Lists or changes schedules.
pub(crate) async fn run(session: &mut Session<'_>, command: &SchedulesCommand) -> Result<(), Failure> {
    let provider = session.provider().await?;
    match command {
        SchedulesCommand::List { topic, cursor, all } => {
            let is_empty = list(session, &provider.topic(topic.as_str())?, cursor.as_deref(), *all).await?;
            if is_empty {
                known(&provider, topic).await?;
                session.screen.say(format_args!("topic {topic} has no schedules"));
            }
            Ok(())
        }
        SchedulesCommand::Pause { which, reason } => {
            let paused = provider.topic(which.topic.as_str())?.pause_schedule(&which.name, reason);
            let paused = paused.by(session.common.author());
            changed(session, &paused.await.map_err(missing)?, "paused")
        }
        SchedulesCommand::Resume(which) => {
            let resumed = provider.topic(which.topic.as_str())?.resume_schedule(&which.name);
            changed(session, &resumed.await.map_err(missing)?, "resumed")
        }
        SchedulesCommand::Remove(which) => {
            let OneSchedule { topic, name } = which;
            session.screen.confirm(&format!("remove schedule {name} of topic {topic}"))?;
            let removed = provider.topic(topic.as_str())?.remove_schedule(name).await?;
            if removed.found.is_none() {
                return Err(Failure::Missing(format!("topic `{topic}` has no schedule `{name}`")));
            }
            if session.screen.is_json() {
                return session.screen.json(&serde_json::json!({ "name": name, "removed": true }));
            }
            session.screen.line(format_args!("removed {}", safe(name)))
        }
    }
}

fn missing(error: CallError) -> Failure {
    match error {
        CallError::Refused { refusal: Refusal::NoSuchSchedule, .. } => Failure::Missing(error.to_string()),
        error => error.into(),
    }
}

fn changed(session: &mut Session<'_>, seen: &ScheduleInfo, how: &str) -> Result<(), Failure> {
    if session.screen.is_json() {
        return session.screen.json(&ScheduleLine::new(seen));
    }
    session.screen.line(format_args!("{how} {}", safe(&seen.name)))
}

/// Lists schedules. Returns whether there are none.
async fn list(
    session: &mut Session<'_>,
    topic: &dq::provider::TopicProvider,
    after: Option<&str>,
    all: bool,
) -> Result<bool, Failure> {
    let mut pages = topic.schedules();
    if let Some(after) = after {
        pages = pages.starting_after(after);
    }
    let now = Timestamp::from(std::time::SystemTime::now());
    let mut is_empty = true;
    while let Some(page) = pages.next_page().await? {
        is_empty &= page.is_empty();
        if session.screen.is_json() {
            for seen in &page {
                session.screen.json(&ScheduleLine::new(seen))?;
            }
        } else if !page.is_empty() {
            let head = ["NAME", "TICKS", "NEXT", "STATE"];
            session.screen.table(&head, page.iter().map(|seen| row(seen, now)).collect())?;
        }
        session.screen.flush()?;
        match page.last() {
            Some(last) if !all && page.len() == 100 => {
                session.screen.say(format_args!("perhaps more: --cursor {}, or --all", safe(&last.name)));
                return Ok(false);
            }
            _ => {}
        }
    }
    Ok(is_empty)
}

fn row(seen: &ScheduleInfo, now: Timestamp) -> Vec<Cell> {
    let name = cell(cut(&seen.name, 60));
    match &seen.details {
        Ok(details) => {
            let paused = details.pause.as_ref();
            let state = paused.map_or_else(|| "-".into(), state);
            vec![name, cell(times(&details.times)), cell(next(details, now)), alarm(cell(state), paused.is_some())]
        }
        Err(reason) => vec![name, cell("?"), cell("?"), alarm(cell(cut(reason, 80)), true)],
    }
}

fn state(pause: &SchedulePause) -> String {
    let by = if pause.by.is_empty() { String::new() } else { format!(" by {}", cut(&pause.by, 60)) };
    format!("paused{by}: {}", cut(&pause.reason, 80))
}

fn next(details: &ScheduleDetails, now: Timestamp) -> String {
    beside(details.next, now)
}

fn times(times: &Times) -> String {
    match times {
        Times::Every(interval) => format!("every {}", short(*interval)),
        Times::Cron(cron) => cron.to_string(),
        _ => "?".into(),
    }
}
