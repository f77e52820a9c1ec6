//! `dq watch`.

use clap::Args;
use dq::job::TopicName;
use dq::provider::{Event, Events, JobMove};

use crate::arguments::topic;
use crate::failure::Failure;
use crate::safe::safe;
use crate::session::Session;
use crate::when::{short, whole_seconds};

/// The arguments of `dq watch`.
#[derive(Debug, Args)]
pub struct WatchArguments {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = topic)]
    pub topic: TopicName,
    /// Ends after this many events; otherwise with Ctrl-C
    #[arg(long, value_name = "N")]
    pub count: Option<usize>,
}

/// Prints the events of a topic until Ctrl-C, or as many as were asked for.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &WatchArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let mut events = provider.events(arguments.topic.as_str())?;
    print(session, &mut events, arguments.count).await
}

async fn print(session: &mut Session<'_>, events: &mut Events, count: Option<usize>) -> Result<(), Failure> {
    let mut left = count.unwrap_or(usize::MAX);
    while left > 0 {
        let Some(event) = events.next().await else { return Ok(()) };
        if matches!(event, Event::Job { .. }) {
            left -= 1;
        }
        if session.screen.is_json() {
            session.screen.json(&event)?;
        } else {
            session.screen.line(line(&event))?;
        }
        session.screen.flush()?;
    }
    Ok(())
}

fn line(event: &Event) -> String {
    match event {
        Event::Job { at, id, what } => {
            let late = match what {
                JobMove::Claimed { due, .. } => format!(" {} late,", short(at.since(*due))),
                _ => String::new(),
            };
            format!("{} {}{late} {}", whole_seconds(*at), safe(id.as_str()), safe(&words(what)))
        }
        Event::Missed(missed) => format!("-- {missed} events are missing"),
        Event::Listening => "-- listening".to_owned(),
        Event::Interrupted(interrupted) => format!("-- interrupted: {}", safe(interrupted)),
        other => format!("-- {other:?}"),
    }
}

fn words(what: &JobMove) -> String {
    let cause = |cause: &Option<dq::job::Cause>| cause.map_or("", dq::job::Cause::word);
    match what {
        JobMove::Added { due } => format!("added, due {}", whole_seconds(*due)),
        JobMove::Imported { place } => format!("imported as {place:?}"),
        JobMove::ReplacementWaits => "a replacement waits for the end of its run".to_owned(),
        JobMove::Changed { due, by } => {
            let due = due.map(|due| format!(", due {}", whole_seconds(due))).unwrap_or_default();
            format!("changed{due}, by {by}")
        }
        JobMove::Claimed { node, .. } => format!("claimed by {node}"),
        JobMove::Done { by } => format!("done, by {by}"),
        JobMove::Retried { cause: why, due, node } => {
            format!("failed on {node} ({}), again at {}", cause(why), whole_seconds(*due))
        }
        JobMove::Rejoined { due, node } => format!("rejoined by {node}, due {}", whole_seconds(*due)),
        JobMove::GivenBack { node } => format!("given back by {node}"),
        JobMove::Parked { node } => format!("parked by {node}"),
        JobMove::Dead { cause: why, node } => format!("dead on {node} ({})", cause(why)),
        JobMove::Reclaimed { node } => format!("reclaimed from {node}"),
        JobMove::CommandWaits { command, by } => format!("{} waits for the end of its run, by {by}", command.word()),
        JobMove::Deleted { by } => format!("deleted, by {by}"),
        JobMove::Requeued { by } => format!("requeued, by {by}"),
        JobMove::Published => "published".to_owned(),
        JobMove::Removed => "removed".to_owned(),
        JobMove::Dropped => "dropped: another program mangled its record".to_owned(),
        other => format!("{other:?}"),
    }
}
