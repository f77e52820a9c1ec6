//! A short storm on each durable store. `tests/storm` runs long ones.

use std::process::Command;

/// Runs `tests/storm` with these options, and returns what it printed.
fn storm(options: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_storm")).args(options).output().expect("the program was built");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tests/storm {}\n{said}", options.join(" "));
    said
}

/// How often something happened.
fn count(said: &str, what: &str) -> u64 {
    let line = said.lines().find_map(|line| line.trim_start().strip_suffix(what)?.trim_end().parse().ok());
    line.unwrap_or_default()
}

#[test]
fn a_storm_of_half_a_minute_on_redis_finds_nothing() {
    let said = storm(&["--seconds", "30", "--pause", "2500"]);
    println!("{said}");
    for what in ["adds confirmed", "runs", "node killed", "node stalled", "store restarted", "refused outcomes"] {
        assert!(count(&said, what) > 0, "{what}: {said}");
    }
}

#[test]
fn a_process_that_is_killed_again_and_again_loses_nothing_on_redis() {
    let said = storm(&["--kills", "5", "--rate", "300"]);
    println!("{said}");
    assert_eq!(count(&said, "owner killed"), 5, "{said}");
}
