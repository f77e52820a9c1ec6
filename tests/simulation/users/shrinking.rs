//! A finding is shrunk, still shows the same, and prints a command that runs it again.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::prelude::*;
use dq_testing::{Faults, Finding, Simulation, choose, simulate};
use serde::{Deserialize, Serialize};
use tokio::time::sleep as handler_takes;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "send", delay = "20s")]
struct Send {
    #[job(id)]
    letter: u64,
}

/// How often each letter was sent.
type Sent = Arc<Mutex<BTreeMap<u64, u64>>>;

#[delay_listener(register = false)]
async fn sends(job: Job<Send>, channel: Channel, sent: &Sent) -> Result<Decided, JobError> {
    handler_takes(Duration::from_millis(20)).await;
    *sent.lock().unwrap().entry(job.letter).or_default() += 1;
    handler_takes(Duration::from_millis(20)).await;
    if job.letter == 1_000 {
        panic!("for a test");
    }
    Ok(channel.ack())
}

fn letters(from: u64, letters: impl Fn() -> u64 + std::marker::Send + Sync + 'static) -> Simulation<Sent> {
    simulate(Sent::default)
        .node(|factory, sent| factory.provide(sent).listener::<sends>())
        .work(move |jobs, _| {
            let letters = letters();
            async move {
                for letter in from..from + letters {
                    while jobs.add(Send { letter }).keep_existing().await.is_err() {}
                }
            }
        })
        .nodes(3)
        .seeds(0..200)
        .shrinks_for(Duration::from_secs(3_600)) // to the least, also on a slow machine
}

fn none_is_sent_twice(sent: &Sent) -> Result<(), String> {
    let sent = sent.lock().unwrap();
    let twice = sent.iter().find(|(_, times)| **times > 1);
    twice.map_or(Ok(()), |(letter, times)| Err(format!("letter {letter} is sent {times} times")))
}

/// The rest of the line that starts with this.
fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(begin)).unwrap_or_else(|| panic!("no `{begin}`: {text}"))
}

#[test]
fn a_finding_is_shrunk_to_one_job_on_one_node() {
    let finding = letters(0, || 5).faults(Faults::default().most(4)).check(|sent, _| none_is_sent_twice(&sent));
    let finding = finding.try_run().unwrap_err();
    let text = finding.to_string();
    assert!(finding.only.contains("nodes=1") && !finding.only.contains(','), "{text}");
    let left = line(&text, "shrunk in ");
    assert!(left.contains("1 of 3 nodes") && left.contains("1 of 5 jobs"), "{text}");
    assert!(finding.what.contains(" is sent 2 times") && finding.account.lines().count() < 16, "{text}");
    assert_eq!(finding.account.matches(" is added").count(), 1, "{text}");
    assert_eq!(finding.differs, None);
}

#[test]
fn jobs_are_left_out_only_where_the_check_passes_without_them() {
    let each_once = |sent: Sent, _: &dq_testing::Ended| {
        let wrong = (0..5).find(|letter| sent.lock().unwrap().get(letter) != Some(&1));
        wrong.map_or(Ok(()), |letter| Err(format!("letter {letter} is not sent once")))
    };
    let finding = letters(0, || 5).check(each_once).try_run().unwrap_err();
    assert!(finding.only.contains("nodes=1") && !finding.only.contains("jobs="), "{finding}");
    assert!(finding.account.contains(": run 2, fence "), "it is not found for want of a job: {finding}");
}

#[test]
fn choices_are_shrunk_to_the_least_that_shows_the_finding() {
    let choice = || choose("letters", 1..=30);
    let check = move |sent: Sent, _: &dq_testing::Ended| {
        let sent = sent.lock().unwrap().len() as u64;
        assert_eq!(sent, choice(), "the work and the check choose alike");
        if sent < 7 { Ok(()) } else { Err(format!("{sent} letters are too many")) }
    };
    let finding = letters(0, choice).faults(Faults::none()).check(check).try_run().unwrap_err();
    assert_eq!((finding.what.as_str(), finding.differs.as_ref()), ("7 letters are too many", None), "{finding}");
    assert!(finding.only.contains("choose:letters=7"), "{finding}");
    let text = finding.to_string();
    assert!(line(&text, "shrunk in ").contains("letters = 7"), "{text}");
}

#[test]
fn choices_differ_from_seed_to_seed_and_are_the_start_of_their_range_elsewhere() {
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let sees = Arc::clone(&seen);
    let run = simulate(move || sees.lock().unwrap().push(choose("x", 3..=1_000))).faults(Faults::none());
    run.node(|factory, ()| factory.provide(Sent::default()).listener::<sends>()).seeds(0..20).run();
    let mut seen = seen.lock().unwrap().clone();
    assert!(seen.iter().all(|number| (3..=1_000).contains(number)), "{seen:?}");
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 15, "{seen:?}");
    assert_eq!(choose("x", 3..=1_000), 3);
}

#[test]
fn the_printed_command_runs_the_shrunk_run() {
    let text = printed(&[]);
    let (again, whole) = (line(&text, "run it again:  "), line(&text, "the whole run: "));
    assert_ne!(again, whole);
    let only = again.split('\'').nth(1).unwrap();
    let seed = again.strip_prefix("DQ_SEED=").and_then(|rest| rest.split(' ').next()).unwrap();
    let replayed = printed(&[("DQ_SEED", seed), ("DQ_ONLY", only)]);
    let account = |text: &str| text[text.find("what happened").unwrap()..text.find("run it again").unwrap()].to_owned();
    assert_eq!(account(&replayed), account(&text));
    assert!(!replayed.contains("shrunk in"), "{replayed}");
    assert!(
        whole.contains("DQ_ONLY=all cargo test -p dq-tests users::shrinking::prints_a_finding -- --exact"),
        "{whole}"
    );
    let all = printed(&[("DQ_SEED", seed), ("DQ_ONLY", "all")]);
    assert!(all.contains("n3 starts") && !text.contains("n3 starts"), "{all}");
}

#[test]
fn a_malformed_variable_panics_with_the_reason() {
    assert!(printed(&[("DQ_SEED", "1"), ("DQ_ONLY", "node=1")]).contains("DQ_ONLY: `node=1` is not one of"));
    assert!(printed(&[("DQ_ONLY", "nodes=1")]).contains("set DQ_SEED as well"));
}

/// What the test `prints_a_finding` prints in a process of its own, with these variables.
fn printed(variables: &[(&str, &str)]) -> String {
    let mut run = Command::new(std::env::current_exe().unwrap());
    let run =
        run.args(["users::shrinking::prints_a_finding", "--exact", "--nocapture"]).envs(variables.iter().copied());
    let run = run.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr))
}

#[test]
fn prints_a_finding() {
    let letters = letters(998, || 3).check(|sent, _| none_is_sent_twice(&sent));
    println!("{}", letters.faults(Faults::none().crashes(true)).try_run().unwrap_err()); // a letter panics and is sent again
}

#[test]
fn panics_in_a_run_are_reported_with_their_location_and_not_printed() {
    let text = printed(&[]);
    assert!(text.contains("send/1000: panics at tests/simulation/users/shrinking.rs:"), "{text}");
    assert!(!text.contains("panicked at"), "{text}");
    assert!(printed(&[("DQ_SEED", "0")]).contains("panicked at tests/simulation/users/shrinking.rs:"));
}

#[test]
fn without_time_to_shrink_the_whole_run_is_reported() {
    let run = || letters(0, || 5).check(|sent, _| none_is_sent_twice(&sent));
    let (small, whole) = (run().try_run().unwrap_err(), run().shrinks_for(Duration::ZERO).try_run().unwrap_err());
    assert_eq!((small.seed, whole.only.as_str()), (whole.seed, "all"));
    assert!(whole.account.contains("n3 starts") && !whole.to_string().contains("shrunk"), "{whole}");
}

/// A check that fails in the first runs, and never again.
fn finds_at_first(runs: u64) -> Box<Finding> {
    let calls = AtomicU64::new(0);
    let check = move |_, _: &_| if calls.fetch_add(1, Relaxed) < runs { Err("for a while") } else { Ok(()) };
    letters(0, || 2).check(check).try_run().unwrap_err()
}

#[test]
fn a_finding_stays_when_shrinking_fails() {
    // The run that finds it, two that trace it, then those that shrink it.
    for runs in [1, 2, 3, 4, 5, 6, 8] {
        let finding = finds_at_first(runs);
        assert_eq!((finding.what.as_str(), finding.seed), ("for a while", 0), "{runs}: {finding}");
        assert_eq!(finding.differs.is_some(), runs < 3, "{runs}: {finding}");
    }
}
