//! `dq topics`.

use clap::Args;
use dq::Provider;
use dq::inspect::TopicSummary;
use dq::job::{AppName, TopicName};
use dq::provider::TopicState;

use crate::failure::Failure;
use crate::safe::cut;
use crate::screen::{alarm, cell, grouped, number, right};
use crate::session::Session;
use crate::when::{beside, short};

/// The arguments of `dq topics`.
#[derive(Debug, Args)]
pub struct TopicsArguments {
    /// Start after this topic
    #[arg(long, value_name = "TOPIC")]
    pub cursor: Option<String>,
    /// Read page after page [default: the first 18 topics]
    #[arg(long)]
    pub all: bool,
}

const HEAD: [&str; 9] = ["TOPIC", "DELAYED", "READY", "RUNNING", "UNACKED", "DEAD", "DONE", "LATE", "STATE"];

/// Lists the topics.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &TopicsArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let inspector = provider.inspect();
    let mut after = arguments.cursor.clone();
    let mut is_first = true;
    loop {
        let page = inspector.topics(after.as_deref()).await?;
        if page.topics.is_empty() && page.next.is_none() && is_first && after.is_none() {
            session.screen.say(no_topics(provider.app()));
        }
        if session.screen.is_json() {
            for topic in &page.topics {
                session.screen.json(topic)?;
            }
        } else if !page.topics.is_empty() {
            session.screen.table(&HEAD, page.topics.iter().map(row).collect())?;
        }
        session.screen.flush()?;
        is_first = false;
        after = page.next;
        let Some(next) = &after else { return Ok(()) };
        if !arguments.all {
            session.screen.say(format_args!("more: --cursor {next}, or --all"));
            return Ok(());
        }
    }
}

fn row(topic: &TopicSummary) -> Vec<comfy_table::Cell> {
    vec![
        cell(&topic.topic),
        right(waiting(topic)),
        number(topic.ready),
        number(topic.running),
        number(topic.unacked),
        alarm(number(topic.dead), topic.dead > 0),
        number(topic.done),
        cell(if topic.lateness.is_zero() { "-".into() } else { short(topic.lateness) }),
        alarm(cell(state(topic)), needs_attention(topic)),
    ]
}

/// How many jobs wait, and how many may if the store has a limit.
pub(crate) fn waiting(topic: &TopicSummary) -> String {
    match topic.state.waiting() {
        Some(limit) => format!("{}/{}", grouped(topic.delayed), grouped(limit)),
        None if topic.delayed == 0 => "-".into(),
        None => grouped(topic.delayed),
    }
}

/// Whether the state of a topic is a warning.
pub(crate) fn needs_attention(topic: &TopicSummary) -> bool {
    topic.state.pause.is_some() || topic.needs_listener() || topic.error.is_some() || topic.at_capacity()
}

/// Why a topic cannot be read; or whether it is paused or drains, by whom and why, is full, lets due jobs wait for a limit, or lacks a
/// listener, in a few words.
pub(crate) fn state(topic: &TopicSummary) -> String {
    if let Some(error) = &topic.error {
        return cut(error, 200);
    }
    let stopped = |what: &str, by: &str, reason: &str| format!("{what} by {}: {}", cut(by, 40), cut(reason, 60));
    let pause = topic.state.pause.as_ref().map(|pause| stopped("paused", &pause.by, &pause.reason));
    let drain = topic.state.drain.as_ref().map(|drain| stopped("drains", &drain.by, &drain.reason));
    let unserved = topic.needs_listener().then(|| "no node listens".into());
    let full = topic.at_capacity().then(|| "full: adds are refused".into());
    let shut = topic.slot_limit_reached.map(|limit| format!("{limit} of {limit} run, and due jobs wait"));
    let spent = topic
        .rate_opens_at
        .filter(|opens| topic.ready > 0 && *opens > topic.store_time)
        .map(|_| "its rate is spent".into());
    let blocked = (topic.blocked_by_group > 0)
        .then(|| format!("{} due jobs wait for their groups", grouped(topic.blocked_by_group)));
    let words: Vec<_> = [pause, drain, full, shut, spent, blocked, unserved].into_iter().flatten().collect();
    if words.is_empty() { "-".into() } else { words.join("; ") }
}

/// Shows one topic.
pub(crate) async fn run_one(session: &mut Session<'_>, topic: &TopicName) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let seen = known(&provider, topic).await?;
    let screen = &mut session.screen;
    if screen.is_json() {
        return screen.json(&seen);
    }
    screen.table(&HEAD, vec![row(&seen)])?;
    let head =
        seen.next_due.map_or_else(|| "no job waits".into(), |head| format!("due {}", beside(head, seen.store_time)));
    screen.line(format_args!("earliest job: {head}"))?;
    if let Some(delay) = &seen.state.delay {
        screen.line(format_args!("default delay: {}, set by {}", short(delay.delay), cut(&delay.by, 80)))?;
    }
    if seen.nodes.is_empty() && seen.watchers.is_empty() {
        return screen.line("no node listens");
    }
    let nodes = seen.nodes.iter().map(|node| ("lease ends", node));
    let watchers = seen.watchers.iter().map(|node| ("comes again by", node));
    let rows = nodes.chain(watchers).map(|(what, node)| {
        let until = format!("{what} {}", beside(node.until, seen.store_time));
        vec![cell(&node.node), number(node.jobs), alarm(cell(until), node.until <= seen.store_time)]
    });
    screen.table(&["NODE", "JOBS", "UNTIL"], rows.collect())?;
    match seen.nodes_holding.saturating_sub(seen.nodes.len()) {
        0 => Ok(()),
        more => screen.line(format_args!("and {more} more nodes with jobs")),
    }
}

/// Reads a topic that must exist: its name may be misspelled if the store has no job, no node and no setting of it.
pub(crate) async fn known(provider: &Provider, topic: &TopicName) -> Result<TopicSummary, Failure> {
    let (inspector, name) = (provider.inspect(), topic.as_str());
    let seen = inspector.topic(name).await?;
    let jobs = seen.delayed + seen.running + seen.unacked + seen.dead + seen.done + seen.broadcasts;
    let is_used = !seen.nodes.is_empty() || !seen.watchers.is_empty() || seen.state != TopicState::default();
    if jobs > 0 || is_used {
        return Ok(seen);
    }
    // A topic with job sets only is in the list, just after the greatest name before it.
    let before = name.char_indices().last().map(|(at, last)| format!("{}{}~", &name[..at], char::from(last as u8 - 1)));
    match inspector.topics_up_to(1, before.as_deref()).await?.topics.first() {
        Some(first) if first.topic == *topic => Ok(seen),
        _ => Err(unknown_topic(provider.app(), topic)),
    }
}

/// What to say of an app without topics, which may be new or misspelled.
pub(crate) fn no_topics(app: &AppName) -> String {
    format!("app {app} has no topics: is that its name?")
}

/// The failure of a verb whose topic must exist.
pub(crate) fn unknown_topic(app: &AppName, topic: &TopicName) -> Failure {
    Failure::Missing(format!("app `{app}` has nothing of topic `{topic}`: is that its name? `dq topics` lists all"))
}
