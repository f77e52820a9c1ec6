//! What the simulation measures, that it finds what is wrong, and that a seed is the same run again. `tests/simulate`, a part of `tests/run`, runs the
//! seeds of all profiles.

mod shrink;
mod taken;
mod users;

use std::collections::BTreeSet;

use dq_testing::simulation::{Options, Profile, RULES, simulate};
use dq_tests::each;
use taken::TAKEN;

/// The mix draws priorities in nearly every run, so their absence shows soon.
#[test]
fn claims_that_know_no_priorities_are_found() {
    let mut options = Options::default();
    (options.without, options.profile) = (Some("priority"), Some(Profile::Calm));
    let first =
        (0..20).find(|seed| simulate(*seed, &options).found.is_some_and(|what| what.contains("which goes first")));
    assert_eq!(first, Some(2));
}

#[test]
fn checkpoints_that_nothing_keeps_are_found() {
    let mut options = Options::default();
    (options.without, options.profile) = (Some("kept"), Some(Profile::Calm));
    let is_this = |what: String| what.contains("though its last run has left");
    let first = (0..20).find(|seed| simulate(*seed, &options).found.is_some_and(is_this));
    assert!(first.is_some());
    println!("first seed {first:?}");
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
    let docs = include_str!("../../docs/internals/guarantees.md");
    let section = docs.split("\n## ").find(|section| section.starts_with("Each rule taken away")).unwrap();
    let mut rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    for taken in &TAKEN {
        let row = rows.next().unwrap_or_default();
        let seed = row.split(" | ").nth(3).unwrap_or_default();
        assert_eq!(row, taken.row(seed));
        assert!(seed.parse::<u64>().is_ok_and(|seed| seed < taken.within), "{row}");
    }
    assert_eq!(rows.next(), None);
    assert_eq!(TAKEN.iter().map(|taken| taken.rule).collect::<Vec<_>>(), RULES);
}
