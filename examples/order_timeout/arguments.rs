//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use dq::time::Delay;

/// Closes the orders of a shop that were not paid in time.
///
/// The variable DQ_STORE names the store of the jobs. Without it, the jobs are in the directory `./dq-data/order_timeout`.
///
/// Exits with 0 if every unpaid order was closed exactly once, none early, and no paid order was closed; with 3 if the ledger left nothing to
/// do; otherwise with 1.
#[derive(Debug, Parser)]
#[command(name = "order_timeout")]
pub(crate) struct Arguments {
    /// Events of the shop, one JSON object per line; otherwise the 2,000 orders that come with the program
    pub(crate) file: Option<PathBuf>,
    /// How long an order may stay open, such as `1m 30s`
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Replays the file this many times as fast, with a shorter timeout
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    pub(crate) speed: f64,
    /// File that keeps the orders
    #[arg(long, value_name = "PATH", default_value = "./dq-data/order_timeout.ledger")]
    pub(crate) ledger: PathBuf,
    /// Empties the ledger instead of resuming from it
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Prints a summary as JSON in the last line
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes the events of this many orders to stdout, and does nothing else
    #[arg(long, value_name = "ORDERS", exclusive = true, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) generate: Option<u64>,
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (0.01..=1_000.0).contains(factor));
    factor.ok_or_else(|| "expected a number from 0.01 to 1000".into())
}

fn duration(text: &str) -> Result<Duration, String> {
    Delay::parse(text).duration().map_err(|error| error.to_string())
}
