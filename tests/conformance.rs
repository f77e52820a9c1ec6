//! Every store passes the same list of behaviours, and the table of requirements names all of them.

use dq_testing::conformance::BEHAVIOURS;

mod memory {
    dq_testing::store_conformance!(async { dq_tests::Fixture::memory() });
}

mod file {
    dq_testing::store_conformance!(dq_tests::Fixture::file());
}

mod redis {
    dq_testing::store_conformance!(async { dq_tests::Fixture::redis() });
}

/// The section of the rules. The other sections name tests of other kinds, which `tests/tidy.rs` checks.
fn table() -> &'static str {
    let all = include_str!("../docs/internals/requirements.md");
    let section = all.split("## Rules of the protocol").nth(1).unwrap();
    section.split("## The node's part").next().unwrap()
}

#[test]
fn every_behaviour_is_named_once() {
    let mut names = BEHAVIOURS.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), BEHAVIOURS.len());
}

#[test]
fn the_table_of_rules_names_exactly_the_behaviours_there_are() {
    let mut named: Vec<&str> = table().split('`').filter(|word| BEHAVIOURS.contains(word)).collect();
    named.sort_unstable();
    named.dedup();
    let mut behaviours = BEHAVIOURS.to_vec();
    behaviours.sort_unstable();
    assert_eq!(named, behaviours);
    let rows = table().lines().filter(|line| line.starts_with("| ") && line.split('`').count() > 1);
    for behaviour in rows.flat_map(|row| row.split('`').skip(1).step_by(2)) {
        assert!(BEHAVIOURS.contains(&behaviour), "the table names `{behaviour}`, which is not a behaviour");
    }
}

#[test]
fn the_table_of_rules_has_every_rule() {
    let protocol = include_str!("../docs/internals/protocol/README.md").split("## 4. Rules").nth(1).unwrap();
    let rules = protocol.lines().filter_map(|line| line.split_once(". **")).map(|(number, _)| number);
    for rule in rules.filter(|number| number.parse::<u8>().is_ok()) {
        assert!(table().lines().any(|line| line.starts_with(&format!("| {rule} |"))), "rule {rule}");
    }
}
