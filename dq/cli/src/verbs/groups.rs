//! `dq groups`.

use clap::{Args, Subcommand};
use dq::inspect::{GroupSeat, GroupSummary, GroupsPage};
use dq::job::{GroupName, TopicName};
use dq::provider::{Pause, ResumedGroup};

use crate::failure::Failure;
use crate::safe::{cut, safe};
use crate::screen::{alarm, cell, number};
use crate::session::Session;
use crate::verbs::pause::{PauseTerms, paused};
use crate::verbs::topics::known;
use crate::verbs::which::quoted;

/// What to do with the groups of a topic.
#[derive(Debug, Subcommand)]
pub enum GroupsCommand {
    /// List the groups of a topic that have jobs or are paused, and the job that stops each
    List {
        /// The topic
        #[arg(value_name = "TOPIC")]
        topic: TopicName,
        /// Start after this group
        #[arg(long, value_name = "GROUP")]
        cursor: Option<String>,
        /// Read page after page
        #[arg(long)]
        all: bool,
    },
    /// Pause a group: no node takes its jobs
    Pause {
        /// The group
        #[command(flatten)]
        one: OneGroup,
        /// Why, and for how long
        #[command(flatten)]
        terms: PauseTerms,
    },
    /// End the pause of a group, or let it pass the jobs that stop it
    Resume(OneGroup),
}

/// One group.
#[derive(Debug, Args)]
pub struct OneGroup {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// The name of the group
    #[arg(value_name = "GROUP")]
    pub group: GroupName,
}

/// Lists groups, or pauses or resumes one.
pub(crate) async fn run(session: &mut Session<'_>, command: &GroupsCommand) -> Result<(), Failure> {
    match command {
        GroupsCommand::List { topic, cursor, all } => list(session, topic, cursor.clone(), *all).await,
        GroupsCommand::Pause { one: OneGroup { topic, group }, terms } => {
            let pause = session.provider().await?.topic(topic.as_str())?.pause_group(group)?;
            let changed = terms.send(pause).await?;
            if session.screen.is_json() {
                let (before, now) = (changed.before, changed.now);
                return session.screen.json(&serde_json::json!({ "group": group, "before": before, "now": now }));
            }
            let name = safe(group.as_str()).to_string();
            session.screen.line(paused(
                &name,
                changed.now.as_ref(),
                &format!("dq groups resume {topic} {}", quoted(&name)),
            ))
        }
        GroupsCommand::Resume(OneGroup { topic, group }) => {
            let provider = session.provider().await?;
            let ResumedGroup { pause, passed, .. } = provider.topic(topic.as_str())?.resume_group(group).await?;
            if pause.is_none() && passed.is_empty() && provider.inspect().group(topic.as_str(), group).await?.is_none()
            {
                return Err(Failure::Missing(format!("topic `{topic}` has no group `{group}` with jobs or a pause")));
            }
            if session.screen.is_json() {
                let resumed = serde_json::json!({ "group": group, "pause": pause, "passed": passed });
                return session.screen.json(&resumed);
            }
            if let Some(Pause { by, reason, .. }) = pause {
                let (group, by, reason) = (safe(group.as_str()), safe(&by), safe(&reason));
                return session.screen.line(format_args!("{group} runs again; it was paused by {by}: {reason}"));
            }
            let jobs: Vec<_> = passed.iter().map(|id| safe(id.as_str()).to_string()).collect();
            match jobs.as_slice() {
                [] => session.screen.line(format_args!("{} waits for no job", safe(group.as_str()))),
                jobs => session.screen.line(format_args!("{} passes {}", safe(group.as_str()), jobs.join(", "))),
            }
        }
    }
}

async fn list(
    session: &mut Session<'_>,
    topic: &TopicName,
    mut after: Option<String>,
    all: bool,
) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let inspector = provider.inspect();
    loop {
        let page = inspector.groups(topic.as_str(), after.as_deref()).await?;
        if page.groups.is_empty() {
            known(&provider, topic).await?;
        }
        show(session, &page, after.is_none())?;
        session.screen.flush()?;
        after = page.next.map(|next| next.to_string());
        let Some(next) = &after else { return Ok(()) };
        if !all {
            session.screen.say(format_args!("more: --cursor {}, or --all", safe(next)));
            return Ok(());
        }
    }
}

fn show(session: &mut Session<'_>, page: &GroupsPage, is_first: bool) -> Result<(), Failure> {
    if session.screen.is_json() {
        return page.groups.iter().try_for_each(|group| session.screen.json(group));
    }
    if page.groups.is_empty() {
        if is_first {
            let topic = &page.topic;
            session
                .screen
                .say(format_args!("no job of topic {topic} that waits or runs has a group, and none is paused"));
        }
        return Ok(());
    }
    session.screen.table(&["GROUP", "WAITING", "SEATS", "STATE"], page.groups.iter().map(row).collect())
}

fn row(group: &GroupSummary) -> Vec<comfy_table::Cell> {
    let stopped = group.stopped_by.as_ref().map(|job| format!("stopped by {}", cut(job.as_str(), 60)));
    let paused =
        group.pause.as_ref().map(|Pause { by, reason, .. }| format!("paused by {}: {}", cut(by, 40), cut(reason, 60)));
    let state: Vec<_> = paused.into_iter().chain(stopped).collect();
    vec![
        cell(cut(group.group.as_str(), 60)),
        number(group.waiting),
        cell(group.seats.iter().take(3).map(seat).collect::<Vec<_>>().join("; ")),
        alarm(cell(if state.is_empty() { "-".into() } else { state.join("; ") }), !state.is_empty()),
    ]
}

fn seat(seat: &GroupSeat) -> String {
    let node = seat.node.as_ref().map(|node| format!(" on {}", cut(node.as_str(), 40))).unwrap_or_default();
    format!("{} {}{node}", cut(seat.id.as_str(), 40), seat.state)
}
