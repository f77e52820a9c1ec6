//! Closes the orders of a shop that were not paid in time. The README in this folder explains it.

mod arguments;
mod books;
mod generate;
mod ledger;
mod orders;
mod progress;
mod replay;
mod report;
mod shop;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arguments::Arguments;
use clap::Parser;
use dq::prelude::*;
use ledger::Ledger;
use orders::Event;
use report::Report;
use shop::{Failed, Shop};

/// The exit code of a run that found nothing to do.
const NOTHING_TO_DO: u8 = 3;

/// How long the last jobs may take after they are due.
const TIME_TO_FINISH: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.generate {
        Some(orders) => generate(orders),
        None => run(&arguments).await,
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("order_timeout: {error}");
            ExitCode::FAILURE
        }
    }
}

fn generate(orders: u64) -> Result<ExitCode, Failed> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for event in generate::day(orders) {
        writeln!(out, "{}", serde_json::to_string(&event)?)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the shop. Returns the exit code, which says whether every rule was kept, and whether this run did anything.
async fn run(arguments: &Arguments) -> Result<ExitCode, Failed> {
    let (events, malformed) = read_events(arguments)?;
    let ledger = Arc::new(Ledger::open(&arguments.ledger, arguments.fresh)?);
    let before = *ledger.counts().borrow();
    let dq = ContextFactory::new("shop")
        .store("file:./dq-data/order_timeout") // `DQ_STORE` overrides this
        .provide(ledger.clone())
        .start()
        .await?;
    let timeout = arguments.timeout.div_f64(arguments.speed);
    let shop = Shop { ledger, jobs: dq.provider().clone(), timeout };
    let progress = tokio::spawn(progress::show(shop.ledger.counts()));

    let signal = dq.signals()?;
    let replay = async {
        tokio::select! {
            biased;
            () = signal => None, // the node stops now; another start goes on
            done = work(&shop, &events, arguments.speed) => Some(done),
        }
    };
    let (done, _) = dq.run_until(replay).await?;
    progress.abort();
    progress::end_line();
    let stopped = done.flatten().transpose()?.is_none();

    let report = Report::new(ledger::audit(&arguments.ledger)?, before, malformed);
    print!("{report}");
    eprintln!("{}", report.lateness());
    let problems = report.problems(stopped);
    problems.iter().for_each(|problem| println!("WRONG: {problem}"));
    let code = match (problems.is_empty(), stopped, report.did_nothing()) {
        (true, true, _) => {
            eprintln!("stopped before the end: run the same command again, without --fresh, to resume");
            ExitCode::SUCCESS
        }
        (true, false, true) => {
            let path = arguments.ledger.display();
            println!("NOTHING DONE: the ledger {path} has every event already, and no order is open. The figures are");
            println!("those of earlier runs; --fresh empties the ledger and starts over");
            ExitCode::from(NOTHING_TO_DO)
        }
        (true, false, false) => {
            println!("OK: every unpaid order was closed exactly once, none early, and no paid order was closed");
            ExitCode::SUCCESS
        }
        (false, ..) => ExitCode::FAILURE,
    };
    if arguments.json {
        println!("{}", serde_json::to_string(&report.summary())?);
    }
    Ok(code)
}

fn read_events(arguments: &Arguments) -> io::Result<(Vec<Event>, usize)> {
    let (name, text) = match &arguments.file {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            (path.display().to_string(), text)
        }
        None => ("orders.jsonl".into(), include_str!("orders.jsonl").into()),
    };
    let (events, bad) = orders::read(&text);
    bad.iter().for_each(|line| eprintln!("{name}:{}: skipped: {}", line.number, line.why));
    Ok((events, bad.len()))
}

/// Replays the events and waits until no order is open or the time is up.
async fn work(shop: &Shop, events: &[Event], speed: f64) -> Result<(), Failed> {
    shop.resume().await?;
    replay::replay(shop, &shop.remaining(events), speed).await?;
    let mut counts = shop.ledger.counts();
    tokio::select! {
        biased;
        _ = counts.wait_for(|counts| counts.open == 0) => {}
        () = tokio::time::sleep(shop.longest_time_left() + TIME_TO_FINISH) => {}
    }
    Ok(())
}
