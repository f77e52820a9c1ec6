//! `dq limit`.

use clap::{ArgGroup, Args};
use dq::config::Rate;
use dq::job::TopicName;
use dq::provider::{Limit, LimitKind, TopicChanged, TopicLimit};
use serde::Serialize;

use crate::failure::Failure;
use crate::safe::safe;
use crate::session::Session;

/// The arguments of `dq limit`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("limits").args(["cluster_concurrency", "rate", "max_waiting", "group_concurrency", "group_rate", "group_max_waiting", "group_burst"]).multiple(true))]
pub struct LimitArguments {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// How many jobs may run at a time on all nodes
    #[arg(long, value_name = "JOBS")]
    pub cluster_concurrency: Option<usize>,
    /// How many jobs all nodes may start within a period, such as 100/s or "1000/h, burst 50"
    #[arg(long)]
    pub rate: Option<Rate>,
    /// How many jobs may wait before adds are refused
    #[arg(long, value_name = "JOBS")]
    pub max_waiting: Option<usize>,
    /// How many jobs of a group may run at a time on all nodes, 1 to 100
    #[arg(long, value_name = "JOBS")]
    pub group_concurrency: Option<usize>,
    /// How many jobs of each group all nodes may start within a period, such as 10/s
    #[arg(long, value_name = "RATE")]
    pub group_rate: Option<Rate>,
    /// How many jobs of each group may wait before adds are refused
    #[arg(long, value_name = "JOBS")]
    pub group_max_waiting: Option<usize>,
    /// How many more jobs of a group may run while no other job is due, 0 to 100
    #[arg(long, value_name = "JOBS")]
    pub group_burst: Option<usize>,
    /// Clear this limit, so that the limit in the code applies again: cluster_concurrency, rate, max_waiting, group_concurrency, group_rate, group_max_waiting or group_burst
    #[arg(long, value_name = "LIMIT")]
    pub clear: Vec<LimitKind>,
    /// The reason, for later readers
    #[arg(long, value_name = "TEXT", requires = "limits")]
    pub reason: Option<String>,
}

/// What `--json` writes: the limits of the topic before and now, only those that the command line names.
#[derive(Debug, Serialize)]
struct Changed<'a> {
    topic: &'a str,
    before: Vec<TopicLimit>,
    now: Vec<TopicLimit>,
}

/// Shows the limits of a topic, or sets and clears some.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &LimitArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let topic = arguments.topic.as_str();
    let jobs = provider.topic(topic)?;
    let set = arguments.cluster_concurrency.map(Limit::ClusterConcurrency).into_iter();
    let set = set.chain(arguments.rate.map(Limit::Rate));
    let set = set.chain(arguments.max_waiting.map(Limit::MaxWaiting));
    let set = set.chain(arguments.group_concurrency.map(Limit::GroupConcurrency));
    let set = set.chain(arguments.group_rate.map(Limit::GroupRate));
    let set = set.chain(arguments.group_max_waiting.map(Limit::GroupMaxWaiting));
    let set: Vec<_> = set.chain(arguments.group_burst.map(Limit::GroupBurst)).collect();
    if set.is_empty() && arguments.clear.is_empty() {
        let limits = jobs.state().await?.limits;
        if session.screen.is_json() {
            return session.screen.json(&Changed { topic, before: limits.clone(), now: limits });
        }
        for kind in LimitKind::ALL {
            let set = limits.iter().find(|set| set.limit.kind() == kind);
            session.screen.line(format!("{kind}: {}", shown(set)))?;
        }
        return Ok(());
    }
    let mut changed = Changed { topic, before: Vec::new(), now: Vec::new() };
    for limit in set {
        let reason = arguments.reason.clone().unwrap_or_default();
        let answer = jobs.set_limit(limit).reason(reason).await?;
        changed.note(session, limit.kind(), answer)?;
    }
    for kind in &arguments.clear {
        let answer = jobs.clear_limit(*kind).await?;
        changed.note(session, *kind, answer)?;
    }
    if session.screen.is_json() { session.screen.json(&changed) } else { Ok(()) }
}

impl Changed<'_> {
    fn note(
        &mut self,
        session: &mut Session<'_>,
        kind: LimitKind,
        TopicChanged { before, now, .. }: TopicChanged<TopicLimit>,
    ) -> Result<(), Failure> {
        if !session.screen.is_json() {
            session.screen.line(format!("{kind}: {}; before: {}", shown(now.as_ref()), shown(before.as_ref())))?;
        }
        self.before.extend(before);
        self.now.extend(now);
        Ok(())
    }
}

fn shown(set: Option<&TopicLimit>) -> String {
    let Some(TopicLimit { limit, reason, by, since }) = set else { return "as in the code".into() };
    let reason = if reason.is_empty() { String::new() } else { format!(": {}", safe(reason)) };
    format!("{limit} {}, set by {} at {since}{reason}", limit.kind().unit(), safe(by))
}
