//! Ten simulated minutes with a tick each second, while one of about five nodes is killed each second.

use dq::schedule::OnMissed;
use dq_testing::simulation::{PeriodicReport, simulate_periodic};

fn run(on_missed: OnMissed) -> PeriodicReport {
    let report = simulate_periodic(1, on_missed, None);
    println!("{on_missed:?}: {report:?}");
    assert_eq!(report.found, None);
    assert!(report.kills > 500 && report.holders_killed > 5, "{report:?}");
    assert!(report.ticks > 500 && report.runs < report.ticks, "{report:?}");
    report
}

#[test]
fn each_tick_adds_its_job_once_while_a_node_dies_each_second() {
    let report = run(OnMissed::All);
    assert_eq!(report.added, report.ticks);
}

#[test]
fn each_gap_adds_one_job_while_a_node_dies_each_second() {
    let report = run(OnMissed::Once);
    assert_eq!(report.added, report.runs);
}
