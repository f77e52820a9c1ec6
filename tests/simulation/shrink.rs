//! A run that shows something is made smaller, and shows the same.

use dq_testing::simulation::{Options, kind, shrink, simulate};

#[test]
fn a_run_without_a_rule_shrinks_to_fewer_faults_and_shows_the_same() {
    let mut options = Options::default();
    options.without = Some("9");
    let found = (0..200)
        .map(|seed| simulate(seed, &options))
        .find(|report| report.found.is_some() && report.injected.len() > 3);
    let whole = found.expect("some seed shows that the rule is missing");
    let shrunk = shrink(whole.seed, &options).expect("it is found again");
    let small = &shrunk.report;
    let what = |found: &Option<String>| kind(found.as_ref().expect("it is found")).to_owned();
    assert_eq!(what(&small.found), what(&whole.found));
    assert!(small.injected.len() < whole.injected.len(), "{:?} of {:?}", small.injected, whole.injected);
    assert!(small.acts.len() < whole.acts.len() && small.busy <= whole.busy, "{small:?}");

    let mut logged = shrunk.options.clone();
    logged.log = true;
    let again = simulate(whole.seed, &logged);
    let differs = again.log.iter().zip(&small.log).position(|(first, second)| first != second);
    assert_eq!((differs, again.log.len()), (None, small.log.len()));
    assert!(again.log.len() > 20, "{} lines", again.log.len());
    assert_eq!(again.injected, small.injected);
}

#[test]
fn a_run_that_shows_nothing_is_not_shrunk() {
    assert!(shrink(1, &Options::default()).is_none());
}

#[test]
fn a_kind_is_the_rule_in_brackets_or_the_first_word() {
    assert_eq!(kind("[19] j1 is DEAD"), "[19]");
    assert_eq!(kind("STUCK: j1"), "STUCK");
    assert_eq!(kind("tasks are busy"), "tasks");
}
