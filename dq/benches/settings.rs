//! What a setting of a topic costs: whole lives and drains with statistics and with histories, each beside the same topic without.
//!
//! `cargo bench -p dq --bench settings -- [--quick] [--only statistics|history]`

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;
#[path = "node/lives.rs"]
mod lives;

use dq::config::TopicOverrides;
use dq_bench::{Arguments, Bench, Side};
use listener::do_nothing;
use lives::LINES;

type Settings = fn(TopicOverrides) -> TopicOverrides;

/// What a topic keeps.
const KEPT: [(&str, Settings); 3] = [
    ("statistics", |topic| topic.statistics(true)),
    ("history_max = 20", |topic| topic.history_max(20)),
    ("history_max = 20, history_retention = 1h", |topic| topic.history_max(20).history_retention("1h")),
];

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(102_400, 512_000);
    let kept: Vec<_> = KEPT.into_iter().filter(|(says, _)| arguments.wants(says)).collect();
    let mut bench = Bench::start("settings", arguments, 2 * kept.len() * LINES.len());
    let server = bench.server().await;
    for round in bench.rounds() {
        for &(says, settings) in &kept {
            for line in LINES {
                let name = format!("{}, {says}", line.name);
                let sides: [(Side, Settings); 2] = [(Side::Bare, |topic| topic), (Side::Dq, settings)];
                // The first of a pair has the colder machine, so they take turns.
                for place in 0..2 {
                    let (side, settings) = sides[(place + round) % 2];
                    bench.step(format!("{name} {side:?}"));
                    let cost = line.cost(&server, jobs, |factory, tally| {
                        factory.listener::<do_nothing>().provide(tally).topic("nothing", settings)
                    });
                    bench.record_cost(side, &name, &cost.await);
                }
            }
        }
    }
    bench.finish();
}
