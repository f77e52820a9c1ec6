//! `dq jobs`.

use clap::Args;
use comfy_table::Cell;
use dq::inspect::{Cursor, JobSummary, JobsPage};
use dq::job::{State, TopicName};
use dq::time::Timestamp;
use serde::Serialize;

use super::topics::known;
use super::which::{Filters, STATES, count, quoted};
use crate::cursor;
use crate::failure::Failure;
use crate::safe::cut;
use crate::screen::{cell, grouped, number};
use crate::session::Session;
use crate::when::beside;
use crate::words::{one_of, word_of};

/// The most characters of an id and of an error in a table.
const LONGEST: (usize, usize) = (80, 120);

/// The arguments of `dq jobs`.
#[derive(Debug, Args)]
pub struct JobsArguments {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// The state of the jobs
    #[arg(long, short, value_name = "STATE", value_parser = one_of(STATES), default_value = "delayed")]
    pub state: State,
    /// Which jobs.
    #[command(flatten)]
    pub filters: Filters,
    /// Read page after page [default: the first 100 jobs, or the matching ones of the first 10,000]
    #[arg(long)]
    pub all: bool,
    /// Start after this cursor, which the previous page printed
    #[arg(long, value_name = "CURSOR", value_parser = cursor::read)]
    pub cursor: Option<Cursor>,
}

/// What `--json` writes after the jobs of a page.
#[derive(Debug, Serialize)]
struct PageEnd {
    page: PageEndOf,
}

#[derive(Debug, Serialize)]
struct PageEndOf {
    looked_at: usize,
    looked_until: Option<u64>,
    next: Option<String>,
}

/// Lists jobs.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &JobsArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let inspector = provider.inspect();
    let (name, state) = (arguments.topic.as_str(), arguments.state);
    let filter = arguments.filters.filter();
    let seen = known(&provider, &arguments.topic).await?;
    let (mut after, mut shown, mut looked_at) = (arguments.cursor.clone(), 0, 0);
    loop {
        let page = inspector.jobs(name, state, &filter, after.take()).await?;
        shown += page.jobs.len();
        looked_at += page.looked_at;
        write(session, state, &page, seen.store_time)?;
        session.screen.flush()?;
        match page.next {
            Some(next) if arguments.all => after = Some(next),
            next => {
                if !session.screen.is_json() {
                    let all = count(&seen, state);
                    let looked = format!("{} of {} {state} jobs looked at", grouped(looked_at), grouped(all));
                    session.screen.say(format_args!("{} shown; {looked}", grouped(shown)));
                    if let Some(next) = next {
                        let words = arguments.filters.words();
                        let (name, state) = (quoted(name), word_of(STATES, &arguments.state));
                        let next = cursor::word(&next);
                        session.screen.say(format_args!("more: dq jobs {name} --state {state}{words} --cursor {next}"));
                    }
                }
                return Ok(());
            }
        }
    }
}

fn write(session: &mut Session<'_>, state: State, page: &JobsPage, now: Timestamp) -> Result<(), Failure> {
    if session.screen.is_json() {
        for job in &page.jobs {
            session.screen.json(job)?;
        }
        let next = page.next.as_ref().map(cursor::word);
        let (looked_at, looked_until) = (page.looked_at, page.looked_until);
        return session.screen.json(&PageEnd { page: PageEndOf { looked_at, looked_until, next } });
    }
    if page.jobs.is_empty() {
        return Ok(());
    }
    let head = ["ID", time_head(state), "FAILED", "CAUSE", "ERROR"];
    session.screen.table(&head, page.jobs.iter().map(|job| row(job, now)).collect())
}

/// What the time of a job in this state says.
const fn time_head(state: State) -> &'static str {
    match state {
        State::Delayed => "DUE",
        State::Running => "NODE",
        State::Unacked | State::Dead => "SINCE",
        State::Done => "KEPT UNTIL",
    }
}

fn row(job: &JobSummary, now: Timestamp) -> Vec<Cell> {
    let place = match (&job.node, job.at) {
        (Some(node), _) => node.to_string(),
        (None, Some(at)) => beside(at, now),
        (None, None) => "-".into(),
    };
    let error = job.unreadable.as_deref().or(job.error.as_deref()).unwrap_or("-");
    let cause = job.cause.map_or_else(|| "-".into(), |cause| cause.to_string());
    let (id, error) = (cut(job.id.as_str(), LONGEST.0), cut(error, LONGEST.1));
    vec![cell(id), cell(place), number(job.attempts.into()), cell(cause), cell(error)]
}
