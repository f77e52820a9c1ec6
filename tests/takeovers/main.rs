//! Kills processes that run a job on Redis (`kill -9`), and measures how long it takes until another node runs it (rule 20). The
//! simulation measures the same of every node that dies in it.
//!
//! The nodes of a group, two to four, share two topics. A job that does not end is added to one of them: to the idle topic, which has
//! nothing else, or to the busy one, which gets short jobs all the time. Some time after it has begun its node is killed, and another
//! node takes that one's place. So survivors are of all ages.

#![allow(clippy::print_stdout, reason = "it is a program")]

mod figures;
mod redis;
mod steps;
mod work;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Where the nodes keep their jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Store {
    Redis,
    File,
}

/// Kill nodes and measure how long it takes until another node runs their jobs.
#[derive(Debug, Clone, Parser)]
#[command(name = "tests/takeover")]
struct Options {
    /// The leases to measure with, in milliseconds
    #[arg(long, value_delimiter = ',', default_value = "100,1000,5000,15000")]
    leases: Vec<u64>,
    /// How many nodes to kill for each lease
    #[arg(long, default_value_t = 200)]
    kills: usize,
    /// How many groups of nodes run at the same time on Redis
    #[arg(long, default_value_t = 16)]
    groups: usize,
    /// Where the process keeps its jobs whose steps are counted
    #[arg(long, value_enum, default_value = "redis", requires = "steps")]
    store: Store,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Instead kill a process at each step of a job of so many, which saves its state at each, on redis or file
    #[arg(long)]
    steps: Option<u64>,
    /// Run as a node of this app, on the store and with the lease of the environment
    #[arg(long, hide = true)]
    node: Option<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match (&options.node, options.steps) {
        (Some(_), Some(steps)) => return steps::node(steps),
        (Some(app), None) => return redis::node(app),
        (None, Some(steps)) if steps::kill_at_each(options.store, steps) => return ExitCode::SUCCESS,
        (None, Some(_)) => return ExitCode::FAILURE,
        (None, None) => {}
    }
    let mut is_within = true;
    for lease in options.leases.iter().map(|ms| Duration::from_millis(*ms)) {
        is_within &= redis::measure(lease, &options).show(lease);
    }
    if is_within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
