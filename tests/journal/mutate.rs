//! Runs the mutation loop of the journal for some time: `cargo run --release -p dq-tests --bin mutate-journal -- --seconds 600`.
//! `--seed N` starts from another seed; `--write-fixture FOLDER` writes the directory that `fixtures/` keeps of this version.

use std::time::{Duration, Instant};

mod corpora;
mod early;
mod fixture;
mod mutation;
mod random;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |key: &str| {
        let at = arguments.iter().position(|argument| argument == key)?;
        Some(arguments.get(at + 1).unwrap_or_else(|| panic!("{key} needs a value")).clone())
    };
    if let Some(folder) = value("--write-fixture") {
        std::fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in corpora::corpus(60, 5, 30, false).files {
            std::fs::write(format!("{folder}/{name}"), bytes).unwrap();
        }
        return;
    }
    let number = |key: &str, usual: u64| value(key).map_or(usual, |text| text.parse().unwrap());
    let (seconds, seed) = (number("--seconds", 60), number("--seed", 1));
    let (corpora, start) = (corpora::all(), Instant::now());
    let (mut counts, mut seeds) = (mutation::Counts::default(), seed..);
    while start.elapsed() < Duration::from_secs(seconds) {
        let seed = seeds.next().unwrap();
        // The seed of a run that panics is the last one of this thread.
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let random = random::Random::new(seed);
            (0..100).for_each(|_| mutation::run(&corpora, &random, &mut counts));
        }));
        if run.is_err() {
            println!("seed {seed} failed: run it again with --seed {seed} --seconds 1");
            std::process::exit(1);
        }
    }
    println!("clean for {seconds} s from seed {seed} on: {counts:?}");
}
