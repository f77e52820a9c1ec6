//! `dq nodes`.

use clap::Args;
use dq::inspect::{NodeSummary, NodesPage};
use dq::job::TopicName;
use serde::Serialize;

use crate::failure::Failure;
use crate::safe::{cut, safe};
use crate::screen::{alarm, cell, number};
use crate::session::Session;
use crate::verbs::topics::known;
use crate::when::beside;

/// The arguments of `dq nodes`.
#[derive(Debug, Args)]
pub struct NodesArguments {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// Start after this node
    #[arg(long, value_name = "NODE")]
    pub cursor: Option<String>,
    /// Read page after page [default: the first 100 nodes that hold jobs]
    #[arg(long)]
    pub all: bool,
}

/// What `--json` writes for a node.
#[derive(Debug, Serialize)]
struct NodeLine<'a> {
    holds_jobs: bool,
    #[serde(flatten)]
    node: &'a NodeSummary,
}

/// Lists the nodes of a topic. Those that wait for the next job are in the first page.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &NodesArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let inspector = provider.inspect();
    let mut after = arguments.cursor.clone();
    loop {
        let page = inspector.nodes(arguments.topic.as_str(), after.as_deref()).await?;
        if page.nodes.is_empty() && page.watchers.is_empty() {
            known(&provider, &arguments.topic).await?;
        }
        show(session, &page, after.is_none())?;
        session.screen.flush()?;
        after = page.next;
        let Some(next) = &after else { return Ok(()) };
        if !arguments.all {
            session.screen.say(format_args!("more: --cursor {}, or --all", safe(next)));
            return Ok(());
        }
    }
}

fn show(session: &mut Session<'_>, page: &NodesPage, is_first: bool) -> Result<(), Failure> {
    let holders = page.nodes.iter().map(|node| (true, node));
    let watchers = page.watchers.iter().filter(|_| is_first).map(|node| (false, node));
    let nodes: Vec<_> = holders.chain(watchers).collect();
    if session.screen.is_json() {
        for (holds_jobs, node) in nodes {
            session.screen.json(&NodeLine { holds_jobs, node })?;
        }
        return Ok(());
    }
    if nodes.is_empty() {
        session.screen.say(format_args!("no node holds jobs of topic {} or waits for its next one", page.topic));
        return Ok(());
    }
    let rows = nodes.into_iter().map(|(holds_jobs, node)| {
        let what = if holds_jobs { "lease ends" } else { "comes again by" };
        let until = format!("{what} {}", beside(node.until, page.store_time));
        vec![
            cell(cut(node.node.as_str(), 120)),
            cell(node.version.as_deref().unwrap_or("?")),
            cell(node.started.map_or_else(|| "?".into(), |started| beside(started, page.store_time))),
            number(node.jobs),
            alarm(cell(until), node.until <= page.store_time),
        ]
    });
    session.screen.table(&["NODE", "DQ", "STARTED", "JOBS", "UNTIL"], rows.collect())
}
