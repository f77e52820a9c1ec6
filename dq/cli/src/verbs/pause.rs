//! `dq pause`, `dq drain` and `dq resume`.

use std::time::Duration;

use clap::Args;
use dq::job::TopicName;
use dq::provider::{Call, ChangeTopic, Pause, TopicChanged, TopicState};
use dq::time::Timestamp;
use serde::Serialize;

use crate::failure::Failure;
use crate::safe::safe;
use crate::session::Session;
use crate::verbs::topics::known;
use crate::when;

/// The arguments of `dq pause`.
#[derive(Debug, Args)]
pub struct PauseArguments {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// Why, and for how long
    #[command(flatten)]
    pub terms: PauseTerms,
}

/// Why something is paused, and for how long.
#[derive(Debug, Args)]
pub struct PauseTerms {
    /// The reason, for later readers
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// How long [default: until a resume]
    #[arg(long = "for", value_name = "TIME", value_parser = when::duration, conflicts_with = "until")]
    pub lasting: Option<Duration>,
    /// Until when: `+2h`, or 2026-11-23T03:00:00Z
    #[arg(long, value_name = "TIME", value_parser = when::time)]
    pub until: Option<Timestamp>,
}

impl PauseTerms {
    /// Makes the pause, on these terms.
    pub(super) async fn send(&self, pause: Call<ChangeTopic<Pause, true>>) -> Result<TopicChanged<Pause>, Failure> {
        let mut pause = pause.reason(self.reason.clone());
        if let Some(time) = self.lasting {
            pause = pause.for_duration(time);
        }
        if let Some(until) = self.until {
            pause = pause.until(until);
        }
        Ok(pause.await?)
    }
}

/// What became of what is to be paused. `resume`: the command that ends the pause.
pub(super) fn paused(what: &str, pause: Option<&Pause>, resume: &str) -> String {
    match pause {
        None => format!("{what} is not paused: the pause would have ended already"),
        Some(pause) => {
            let until = pause.until.map_or_else(|| format!("until `{resume}`"), |until| format!("until {until}"));
            format!("{what} is paused by {} {until}: {}", safe(&pause.by), safe(&pause.reason))
        }
    }
}

/// The arguments of `dq drain`.
#[derive(Debug, Args)]
pub struct DrainArguments {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// The reason, for later readers
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// What `--json` writes: the topic before and now, only with what the verb is about.
#[derive(Debug, Serialize)]
struct Changed<'a> {
    topic: &'a str,
    before: TopicState,
    now: TopicState,
}

/// Pauses a topic.
pub(crate) async fn run_pause(session: &mut Session<'_>, arguments: &PauseArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let topic = &arguments.topic;
    let pause = provider.topic(topic.as_str())?.pause();
    let changed = arguments.terms.send(pause).await?;
    let before = TopicState { pause: changed.before, ..TopicState::default() };
    let now = TopicState { pause: changed.now, ..TopicState::default() };
    let text = paused(topic.as_str(), now.pause.as_ref(), &format!("dq resume {topic}"));
    write(session, &Changed { topic: topic.as_str(), before, now }, &text)
}

/// Drains a topic.
pub(crate) async fn run_drain(session: &mut Session<'_>, arguments: &DrainArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let topic = &arguments.topic;
    let changed = provider.topic(topic.as_str())?.drain().reason(arguments.reason.clone()).await?;
    let before = TopicState { drain: changed.before, ..TopicState::default() };
    let now = TopicState { drain: changed.now, ..TopicState::default() };
    let text =
        format!("{topic} drains: it takes no new jobs, and nodes run what was due; `dq resume {topic}` ends that");
    write(session, &Changed { topic: topic.as_str(), before, now }, &text)
}

/// Ends the pause and the drain of a topic.
pub(crate) async fn run_resume(session: &mut Session<'_>, topic: &TopicName) -> Result<(), Failure> {
    let provider = session.provider().await?;
    known(&provider, topic).await?;
    let jobs = provider.topic(topic.as_str())?;
    let (pause, drain) = (jobs.resume().await?, jobs.undrain().await?);
    let before = TopicState { pause: pause.before, drain: drain.before, ..TopicState::default() };
    let now = TopicState { pause: pause.now, drain: drain.now, ..TopicState::default() };
    let text = match (&before.pause, &before.drain) {
        (None, None) => format!("{topic} was neither paused nor draining"),
        (Some(pause), None) => {
            format!("{topic} runs again; it was paused by {}: {}", safe(&pause.by), safe(&pause.reason))
        }
        (None, Some(drain)) => {
            format!("{topic} takes jobs again; it was drained by {}: {}", safe(&drain.by), safe(&drain.reason))
        }
        (Some(_), Some(_)) => format!("{topic} runs again and takes jobs; it was paused and draining"),
    };
    write(session, &Changed { topic: topic.as_str(), before, now }, &text)
}

fn write(session: &mut Session<'_>, changed: &Changed<'_>, text: &str) -> Result<(), Failure> {
    if session.screen.is_json() { session.screen.json(changed) } else { session.screen.line(text) }
}
