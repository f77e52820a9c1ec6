//! Whether a topic changed while it was exported.

use std::collections::BTreeMap;

use dq::job::{State, TopicName};
use dq::store::{ExportPart, TopicCounts};

/// How many jobs or broadcasts a part has, by these counts.
pub(crate) const fn count(counts: &TopicCounts, part: ExportPart) -> usize {
    match part {
        ExportPart::State(State::Delayed) => counts.delayed,
        ExportPart::State(State::Running) => counts.running,
        ExportPart::State(State::Unacked) => counts.unacked,
        ExportPart::State(State::Dead) => counts.dead,
        ExportPart::State(State::Done) => counts.done,
        ExportPart::Broadcasts => counts.broadcasts,
    }
}

/// The first part whose counts before and after differ from what was read, in words.
pub(crate) fn changed(
    topic: &TopicName,
    before: &TopicCounts,
    read: &BTreeMap<ExportPart, usize>,
    after: &TopicCounts,
) -> Option<String> {
    let differs = |(part, read): (&ExportPart, &usize)| {
        let (before, after) = (count(before, *part), count(after, *part));
        let what = match part {
            ExportPart::State(state) => format!("{state} jobs"),
            ExportPart::Broadcasts => "broadcasts".into(),
        };
        ((before, after) != (*read, *read)).then(|| {
            format!("topic `{topic}` changed while it was read ({before} {what} before, {read} read, {after} after)")
        })
    };
    read.iter().find_map(differs)
}
