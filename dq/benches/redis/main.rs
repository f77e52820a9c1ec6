//! Jobs a second on Redis, from add to ack, with a handler that does nothing; and the draining of a backlog. For comparison, a
//! bare pipelined client moves the same jobs in batches of the same size.
//!
//! `cargo bench -p dq --bench redis -- [--quick] [--only WORDS OF A LINE]`; starts a server of its own (`redis-server`, or `DQ_REDIS_SERVER`).

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

mod bare;
mod node;
mod round;
mod server;

use round::{Round, ratio, table};
use server::Server;

/// Callers that add a job and wait for the answer, each.
const CALLERS: usize = 64;
/// Callers that add a hundred jobs and wait for the answer, each.
const BATCHERS: usize = 16;

/// The lines of the table; the odd ones are dq's, each behind the bare client that it is compared with.
const LINES: [&str; 6] = [
    "bare, batches of 32, 2 unanswered",
    "dq, 64 callers, a job each",
    "bare, batches of 100, 16 unanswered",
    "dq, 16 callers, 100 jobs each",
    "bare, draining, batches of 100",
    "dq, draining",
];

async fn measure(line: usize, server: &Server, jobs: usize) -> Round {
    match line {
        0 => bare::lives(server, jobs, CALLERS / 2, 2).await,
        1 => node::lives(server, jobs, CALLERS, 1).await,
        2 => bare::lives(server, jobs, 100, BATCHERS).await,
        3 => node::lives(server, jobs, BATCHERS, 100).await,
        4 => bare::drain(server, jobs, 100).await,
        _ => node::drain(server, jobs).await,
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (jobs, rounds) = if arguments.iter().any(|it| it == "--quick") { (51_200, 3) } else { (512_000, 5) };
    let only = arguments.iter().skip_while(|it| *it != "--only").nth(1);
    let server = Server::start();
    let mut found: [Vec<Round>; 6] = Default::default();
    for round in 1..=rounds {
        println!("round {round} of {rounds}, {jobs} jobs each");
        for (line, rounds) in found.iter_mut().enumerate() {
            if only.is_none_or(|only| LINES[line].contains(only)) {
                rounds.push(measure(line, &server, jobs).await);
            }
        }
    }
    for (name, rounds) in LINES.iter().zip(&found) {
        table(name, rounds);
    }
    for (at, name) in ["64 callers", "batches of 100", "draining"].iter().enumerate() {
        ratio(name, &found[2 * at], &found[2 * at + 1]);
    }
}
