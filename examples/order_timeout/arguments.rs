//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use dq::time::Delay;

pub(crate) const USAGE: &str = "\
usage: order_timeout [FILE] [--timeout TIME] [--speed FACTOR] [--ledger PATH] [--fresh] [--json]
       order_timeout --generate ORDERS

  FILE               events of the shop, one JSON object per line; default: the 2,000 orders that come with the program
  --timeout TIME     how long an order may stay open, such as 1m 30s; default 8s
  --speed FACTOR     replays the file this many times as fast, with a shorter timeout; default 1
  --ledger PATH      file that keeps the orders; default ./dq-data/order_timeout.ledger
  --fresh            empties the ledger instead of resuming from it
  --json             prints a summary as JSON in the last line
  --generate ORDERS  writes the events of this many orders to stdout

The variable DQ_STORE names the store of the jobs; default memory:
Exits with 0 if every unpaid order was closed exactly once, none early, and no paid order was closed; otherwise with 1.";

/// What the program should do.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Run(Arguments),
    Generate(u64),
    Help,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) file: Option<PathBuf>,
    pub(crate) timeout: Duration,
    pub(crate) speed: f64,
    pub(crate) ledger: PathBuf,
    pub(crate) fresh: bool,
    pub(crate) json: bool,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            file: None,
            timeout: Duration::from_secs(8),
            speed: 1.0,
            ledger: "./dq-data/order_timeout.ledger".into(),
            fresh: false,
            json: false,
        }
    }
}

/// Reads the command line, without the name of the program.
pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut words = words.into_iter();
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
        match word.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--generate" => return number(&word, &value()?, 1, 10_000_000).map(Command::Generate),
            "--timeout" => arguments.timeout = duration(&value()?)?,
            "--speed" => arguments.speed = number(&word, &value()?, 0.01, 1_000.0)?,
            "--ledger" => arguments.ledger = value()?.into(),
            "--fresh" => arguments.fresh = true,
            "--json" => arguments.json = true,
            flag if flag.starts_with('-') => return Err(format!("unknown option `{flag}`")),
            _ if arguments.file.is_some() => return Err(format!("one file is enough, `{word}` is one too many")),
            file => arguments.file = Some(file.into()),
        }
    }
    Ok(Command::Run(arguments))
}

fn number<N: std::str::FromStr + PartialOrd + std::fmt::Display>(
    option: &str,
    text: &str,
    least: N,
    most: N,
) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| (&least..=&most).contains(&number));
    number.ok_or_else(|| format!("`{option} {text}`: expected a number from {least} to {most}"))
}

fn duration(text: &str) -> Result<Duration, String> {
    Delay::parse(text).duration().map_err(|error| format!("`--timeout`: {error}"))
}
