//! A part of a benchmark that is a process of its own.

use std::fmt::Display;
use std::process::{Command, Stdio};

/// Runs this benchmark with `--role WORDS..`, and returns the numbers that it prints.
pub fn in_process<const N: usize>(words: &[&dyn Display]) -> [f64; N] {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("--role").args(words.iter().map(ToString::to_string));
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.try_into().expect("the process prints as many numbers as its caller wants")
}
