//! A few kills of nodes for each lease. `tests/takeover` kills 200, and `tests/takeover --steps 100` one at each step of a job.

use std::process::Command;

/// Runs `tests/takeover` with these options. It fails if a takeover took longer than a start logs.
fn measure(options: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_takeover")).args(options).output().expect("the program was built");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("tests/takeover {}\n{said}", options.join(" "));
    assert!(output.status.success(), "{said}");
}

#[test]
fn a_job_that_is_killed_at_each_step_continues_from_its_last_checkpoint() {
    measure(&["--store", "file", "--steps", "30"]);
    measure(&["--store", "redis", "--steps", "7"]);
}

#[test]
fn jobs_of_killed_processes_go_back_within_the_bound() {
    measure(&["--leases", "1000,5000", "--kills", "8", "--groups", "4"]);
}
