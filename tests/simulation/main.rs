//! What the simulation measures, that it finds what is wrong, and that a seed is the same run again. `tests/simulate`, a part of `tests/run`, runs the
//! seeds of all profiles.

mod shrink;
mod taken;
mod users;

use std::collections::BTreeSet;

use dq_testing::simulation::{Options, Profile, simulate};
use dq_tests::each;

/// The mix draws priorities in nearly every run, so their absence shows soon.
#[test]
fn claims_that_know_no_priorities_and_checkpoints_that_nothing_keeps_are_found() {
    let first = |rule: &str| taken::table().find(|taken| taken.rule == rule).unwrap().first();
    assert_eq!(first("priority"), Some(2));
    assert!(first("kept").is_some_and(|seed| seed < 20));
}

#[test]
fn whatever_a_topic_does_when_it_panics_no_job_is_lost_and_none_pays_for_it() {
    let (mut options, mut steps) = (Options::default(), BTreeSet::new());
    (options.profile, options.log) = (Some(Profile::Panics), true);
    for seed in 0..20 {
        let report = simulate(seed, &options);
        assert_eq!(report.found, None, "tests/simulate --profile panics --seeds 1 --from {seed} --log");
        let panics = report.log.iter().filter_map(|line| line.split_once(" panics at `")?.1.split_once('`'));
        steps.extend(panics.map(|(step, job)| (step.to_owned(), job.contains("Some"))));
    }
    assert!(steps.len() >= 20, "{steps:?}");
}

/// A later takeover is a finding in every seed. These seeds have takeovers that nothing disturbs.
#[test]
fn every_takeover_is_within_the_bound() {
    let mut options = Options::default();
    options.profile = Some(Profile::Signals);
    let (mut takeovers, mut longest) = (0, 0);
    for seed in (0..100).step_by(each(3)) {
        let report = simulate(seed, &options);
        assert_eq!(report.found, None, "tests/simulate --profile signals --seeds 1 --from {seed} --log");
        takeovers += report.takeovers;
        longest = report.longest_takeover.max(longest);
    }
    assert!(takeovers >= 20 / each(3) as u64, "{takeovers} takeovers");
    assert!((15_000_000..=23_500_000).contains(&longest), "{longest} µs");
}

#[test]
fn a_seed_is_the_same_run_again() {
    let mut options = Options::default();
    options.log = true;
    let of_profiles = [
        Profile::Claim,
        Profile::Broadcasts,
        Profile::Signals,
        Profile::Starved,
        Profile::Refused,
        Profile::Large,
        Profile::File,
        Profile::Panics,
    ];
    let of_profiles = of_profiles.into_iter().zip(2..).map(|(profile, seed)| (seed, Some(profile)));
    for (seed, profile) in [(1, None), (4, None), (9, None)].into_iter().chain(of_profiles) {
        options.profile = profile;
        let (first, second) = (simulate(seed, &options), simulate(seed, &options));
        assert!(first.log.len() > 100, "{} lines", first.log.len());
        let differs = first.log.iter().zip(&second.log).position(|(first, second)| first != second);
        assert_eq!((differs, first.log.len()), (None, second.log.len()));
    }
}

/// `tests/simulate --rules` prints the rows.
#[test]
fn the_docs_have_the_table_of_rules() {
    assert_eq!(taken::table().count(), 60);
    for taken in taken::table() {
        let row = taken.row();
        assert!(taken::DOCS.contains(&row), "{row}");
        assert!(taken.seed.parse::<u64>().is_ok_and(|seed| seed < taken.within()), "{row}");
    }
}
