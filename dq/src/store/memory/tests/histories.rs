//! The bound on the histories of jobs that are gone.

use super::*;
use crate::store::{HistorySetting, JobMove, MOST_ENDED_HISTORIES};

#[test]
fn a_topic_keeps_a_bounded_number_of_histories_of_jobs_that_are_gone() {
    let mut bench = Bench::new();
    let after = Duration::from_secs(60);
    bench.topic.keep_history(HistorySetting { moves: 1, after }).unwrap();
    let deleted = |n: usize| (id(&format!("{n}")), JobMove::Deleted { by: String::new() });
    let all: Vec<_> = (0..MOST_ENDED_HISTORIES).map(deleted).collect();
    bench.topic.histories.keep(bench.now.floor(), &all[..1], |_| true);
    bench.advance(Duration::from_millis(1));
    bench.topic.histories.keep(bench.now.floor(), &all[1..], |_| true);
    assert!(bench.topic.history(&id("0")).is_some());
    bench.topic.histories.keep(bench.now.floor(), &[deleted(MOST_ENDED_HISTORIES)], |_| true);
    assert_eq!(bench.topic.history(&id("0")), None, "the one whose time is over first is forgotten");
    assert!(bench.topic.history(&id("1")).is_some());
    assert_eq!(bench.topic.histories.kept.after(None).count(), MOST_ENDED_HISTORIES);
}
