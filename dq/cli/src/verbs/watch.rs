//! `dq watch`.

use clap::Args;
use dq::context::directory_of;
use dq::job::TopicName;
use dq::provider::{Event, Events, Transition};

use crate::failure::Failure;
use crate::safe::safe;
use crate::session::Session;
use crate::when::{short, whole_seconds};

/// The arguments of `dq watch`.
#[derive(Debug, Args)]
pub struct WatchArguments {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// End after this many events [default: at Ctrl-C]
    #[arg(long, value_name = "N")]
    pub count: Option<usize>,
}

/// Prints the events of a topic until Ctrl-C, or as many as were asked for.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &WatchArguments) -> Result<(), Failure> {
    if directory_of(&session.common.store()?)?.is_some() {
        return Err(Failure::Refused(
            "`dq watch` cannot see the events of a `file:` store, which only the process that uses its directory gets: call \
             `provider.events(..)` there, or look with `dq top`"
                .into(),
        ));
    }
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
                Transition::Claimed { due, .. } => format!(" {} late,", short(at.since(*due))),
                _ => String::new(),
            };
            format!("{} {}{late} {}", whole_seconds(*at), safe(id.as_str()), safe(&what.to_string()))
        }
        Event::Missed(missed) => format!("-- {missed} events are missing"),
        Event::Listening => "-- listening".to_owned(),
        Event::Interrupted(interrupted) => format!("-- interrupted: {}", safe(interrupted)),
        other => format!("-- {other:?}"),
    }
}
