//! Ten simulated minutes in which jobs, or something outside, kill nodes all the time.

use dq_testing::simulation::{KillReport, Killing, simulate_kills};

fn run(killing: Killing, without: Option<u8>) -> KillReport {
    let report = simulate_kills(1, killing, without, false);
    println!("{killing:?}, without {without:?}: {report:#?}");
    report
}

#[test]
fn killers_end_after_their_cap_and_no_innocent_job_is_dead() {
    let report = run(Killing::ByJobs, None);
    assert_eq!(report.found, None);
    assert!(report.kills >= 600, "{} kills in ten minutes", report.kills);
    assert!(report.killers >= 200 && report.innocent >= 600, "{report:?}");
    assert_eq!(report.innocent_dead, 0);
    assert_eq!(report.killers_dead, report.killers);
    assert_eq!(report.charged_the_cap, report.killers);
    assert_eq!(report.isolated_and_alone, report.killers);
    assert_eq!(report.final_isolated, report.killers);
}

#[test]
fn jobs_dead_by_kills_from_outside_were_isolated_and_alone() {
    let report = run(Killing::FromOutside, None);
    assert_eq!(report.found, None);
    assert!(report.kills >= 600, "{} kills in ten minutes", report.kills);
    assert!(report.innocent_dead > 0, "{report:?}");
    assert_eq!(report.isolated_and_alone, report.innocent_dead);
    assert_eq!(report.charged_the_cap, report.innocent_dead);
    assert_eq!(report.final_isolated, report.innocent_dead);
}

#[test]
fn without_rule_19_innocent_jobs_are_dead() {
    let report = run(Killing::ByJobs, Some(19));
    assert!(report.innocent_dead > 0 && report.isolated_and_alone == 0, "{report:?}");
}
