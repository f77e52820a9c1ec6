//! A short storm on each durable store. `tests/storm` runs long ones.

use std::process::Command;

use dq_tests::each;

/// Runs `tests/storm` with these options, and returns whether it found nothing, and what it printed.
fn run(options: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_storm")).args(options).output().expect("the program was built");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("tests/storm {}\n{said}", options.join(" "));
    (output.status.success(), said)
}

/// Runs a storm that finds nothing.
fn storm(options: &[&str]) -> String {
    let (is_sound, said) = run(options);
    assert!(is_sound, "{said}");
    said
}

/// Runs a storm that kills its process so often, and finds nothing.
fn kills(kills: usize, options: &[&str]) -> String {
    let said = storm(&[options, &["--kills", &kills.to_string()]].concat());
    assert_eq!(count(&said, "owner killed"), kills as u64, "{said}");
    said
}

/// How often something happened.
fn count(said: &str, what: &str) -> u64 {
    let line = said.lines().find_map(|line| line.trim_start().strip_suffix(what)?.trim_end().parse().ok());
    line.unwrap_or_default()
}

#[test]
fn a_short_storm_on_redis_finds_nothing() {
    let seconds = (30 / each(2)).to_string();
    let said = storm(&["--seconds", &seconds, "--pause", "1500"]);
    for what in ["adds confirmed", "runs", "node killed", "node stalled", "store restarted"] {
        assert!(count(&said, what) > 0, "{what}: {said}");
    }
}

#[test]
fn a_process_that_is_killed_again_and_again_loses_nothing_on_redis() {
    kills(5, &["--rate", "300"]);
}

#[test]
fn a_process_that_is_killed_again_and_again_loses_nothing_in_a_directory() {
    let said = kills(15 / each(3), &["--store", "file", "--rate", "300", "--backup"]);
    assert!(said.contains(" copies, which had "), "{said}");
}

#[test]
fn no_confirmed_add_is_lost_when_a_replica_becomes_the_master() {
    let said = storm(&["--sentinel", "--seconds", "23", "--pause", "8000", "--nodes", "2", "--rate", "200"]);
    assert_eq!(count(&said, "store failed over"), 1, "{said}");
}

#[test]
fn chains_lose_no_job_and_repeat_none_while_their_process_is_killed() {
    for store in ["redis", "file"] {
        kills(6 / each(2), &["--store", store, "--rate", "200", "--chains"]);
    }
}

#[test]
fn the_last_job_of_each_set_comes_once_while_their_process_is_killed() {
    for store in ["redis", "file"] {
        let said = kills(6 / each(2), &["--store", store, "--rate", "300", "--sets", "30"]);
        assert!(count(&said, "sets ended") > 0, "{said}");
    }
}

#[test]
fn a_storm_on_a_server_that_forgets_finds_lost_jobs() {
    let (is_sound, said) = run(&["--seconds", "8", "--pause", "1000", "--seed", "1", "--forgets"]);
    assert!(!is_sound && said.contains("FOUND lost: ") && said.contains("it is nowhere"), "{said}");
    // A storm with a finding keeps its files, and here a finding is what was wanted.
    let folder = said.lines().find_map(|line| line.strip_prefix("the files are in "));
    std::fs::remove_dir_all(folder.expect("it says where its files are")).unwrap();
}
