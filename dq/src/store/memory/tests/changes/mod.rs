//! The changes of steps, replayed: whatever steps do, the changes make a second topic the same.

mod encoding;
mod follow_ups;
mod histories;
mod job_sets;
mod steps;

use std::collections::BTreeMap;

use super::super::changes::Replay;
use super::*;
use crate::store::HistorySetting;

/// Everything that is journaled of a topic.
type JournaledState = (
    BTreeMap<JobId, String>,
    BTreeMap<JobId, (Timestamp, Record)>,
    Vec<NodeId>,
    TopicState,
    HistorySetting,
    Vec<String>,
);

fn state(topic: &Topic) -> JournaledState {
    assert!(topic.jobs.is_consistent());
    let runs = topic.jobs.iter().filter_map(|(_, slot)| slot.run());
    assert!(runs.into_iter().all(|run| run.token.fence <= topic.fence), "no later claim gets the fence of a run");
    let jobs = topic.jobs.iter().map(|(id, slot)| (id.clone(), format!("{slot:?}")));
    let broadcasts = topic.broadcasts.iter().map(|(id, broadcast)| (id.clone(), broadcast.clone()));
    let released = topic.jobs.holders().iter().filter(|(_, holder)| holder.is_released());
    let taken = topic.taken.after(None);
    (
        jobs.collect(),
        broadcasts.collect(),
        released.map(|(node, _)| node.clone()).collect(),
        topic.settings.clone(),
        topic.histories.setting(),
        topic
            .histories
            .kept
            .after(None)
            .map(|kept| format!("{kept:?}"))
            .chain(taken.map(|kept| format!("{kept:?}")))
            .chain(topic.members.after(None).map(|member| format!("{member:?}")))
            .chain(topic.job_sets.after(None).map(|set| format!("{set:?}")))
            .chain(topic.jobs.paused_groups().after(None).map(|pause| format!("{pause:?}")))
            .collect(),
    )
}

fn changes(topic: &mut Topic) -> Vec<u8> {
    let mut changes = Vec::new();
    drop(topic.take_changes(&mut changes));
    changes
}

/// A topic that the changes make.
fn replayed<'a>(all: impl IntoIterator<Item = &'a Vec<u8>>) -> Topic {
    let mut topic = Topic::default();
    for changes in all {
        topic.apply(changes, Replay::Strict).unwrap();
    }
    topic
}

fn logged() -> Bench {
    let mut bench = Bench::new();
    bench.topic.log_changes();
    bench
}
