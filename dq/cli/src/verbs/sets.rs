//! `dq sets`.

use clap::Args;
use dq::job::TopicName;
use dq::provider::JobSetSummary;

use crate::failure::Failure;
use crate::safe::{cut, safe};
use crate::screen::{cell, number};
use crate::session::Session;
use crate::verbs::topics::known;

/// How many sets a page has.
const PAGE: usize = 100;

/// Which job sets to show.
#[derive(Debug, Args)]
pub struct SetsArguments {
    /// The topic of the last jobs of the sets
    #[arg(value_name = "TOPIC")]
    topic: TopicName,
    /// One set, with the members that it waits for
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Start after so many sets
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: usize,
}

/// Lists job sets, or shows one.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &SetsArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let topic = provider.topic(arguments.topic.as_str())?;
    let sets = match &arguments.name {
        Some(name) => topic.job_set(name).await?.into_iter().collect(),
        None => topic.job_sets(arguments.from, PAGE).await?,
    };
    if let (true, Some(name)) = (sets.is_empty(), &arguments.name) {
        return Err(Failure::Missing(format!("topic `{}` has no job set `{name}`", arguments.topic)));
    }
    if sets.is_empty() {
        known(&provider, &arguments.topic).await?;
    }
    if session.screen.is_json() {
        return sets.iter().try_for_each(|set| session.screen.json(set));
    }
    if sets.is_empty() {
        session.screen.say(format_args!("topic {} has no job sets", arguments.topic));
        return Ok(());
    }
    let head = ["SET", "STATE", "MEMBERS", "ACKED", "DEAD", "LEFT", "WAITS FOR"];
    session.screen.table(&head, sets.iter().map(row).collect())?;
    for (topic, id) in sets.iter().flat_map(|set| &set.waits_for) {
        session.screen.line(format_args!("waits for {topic} {}", safe(id.as_str())))?;
    }
    if sets.len() == PAGE {
        session.screen.say(format_args!("more: --from {}", arguments.from + PAGE));
    }
    Ok(())
}

fn row(set: &JobSetSummary) -> Vec<comfy_table::Cell> {
    let counts = &set.counts;
    let numbers = [counts.members, counts.acked, counts.dead, counts.left, counts.waits_for()];
    let numbers = numbers.map(|count| number(usize::try_from(count).unwrap_or(usize::MAX)));
    [cell(cut(set.set.as_str(), 60)), cell(set.state.as_str())].into_iter().chain(numbers).collect()
}
