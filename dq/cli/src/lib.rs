//! What the program `dq` does: it moves the jobs of dq between stores, and checks the directories of `file:` stores.
//!
//! [`export`] writes everything that a store keeps of an app's topics as JSON lines, and [`import`] puts such lines into a
//! store of any kind. [`line`](mod@line) has their form, [`job_line`] that of a job. `docs/guide/moving-jobs.md` says how to use it.

pub mod arguments;
mod ask;
mod batch;
mod changed;
pub mod export;
pub mod failure;
mod files;
pub mod import;
pub mod job_line;
pub mod line;
pub mod progress;
mod reader;

use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Write};
use std::path::Path;

use arguments::{Command, ExportArguments, ImportArguments};
use dq::environment::Environment;
use dq::store::Store;
use failure::Failure;
use progress::Progress;

pub use ask::{Repeating, open};

/// Does what the command line says. What it exports goes to stdout, all else to stderr.
///
/// # Errors
/// [`Failure`].
pub async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Export(arguments) => run_export(&arguments).await,
        Command::Import(arguments) => run_import(&arguments).await,
        Command::Check { path } => files::run_check(&path),
        Command::Compact { path } => files::run_compact(&path),
    }
}

async fn run_export(arguments: &ExportArguments) -> Result<(), Failure> {
    files::must_exist(&arguments.url)?;
    let store = open(&arguments.url).await?;
    let out = io::stdout();
    // On a terminal the lines themselves show how far it is.
    let progress = if out.is_terminal() { Progress::hidden() } else { Progress::of_jobs() };
    let mut out = io::BufWriter::new(out.lock());
    let repeating = Repeating(arguments.wait);
    let done = export::export(&*store, &arguments.choice, repeating, &mut out, &progress).await;
    progress.end();
    let report = done?;
    out.flush().map_err(Failure::Write)?;
    say(format_args!("{report}"))
}

async fn run_import(arguments: &ImportArguments) -> Result<(), Failure> {
    let store = open(&arguments.url).await?;
    let (input, progress): (Box<dyn io::Read>, _) = match &arguments.file {
        Some(path) => {
            let (file, bytes) = open_file(path)?;
            (Box::new(file), Progress::of_bytes(bytes))
        }
        None => (Box::new(io::stdin().lock()), Progress::of_jobs()),
    };
    let producer = Environment::on_this_runtime(std::sync::Arc::new(dq::environment::OsEntropy::new())).producer_id();
    let options = import::Options {
        app: arguments.app.clone(),
        on_duplicate: arguments.on_duplicate.into(),
        partial: arguments.partial,
        repeating: Repeating(arguments.wait),
        producer,
    };
    let done = import_from(&*store, &options, BufReader::new(input), &progress).await;
    progress.end();
    say(format_args!("{}", done?))
}

async fn import_from(
    store: &dyn Store,
    options: &import::Options,
    input: impl io::BufRead,
    progress: &Progress,
) -> Result<import::Report, Failure> {
    let report = import::import(store, options, input, progress).await?;
    match report.running.is_empty() {
        true => Ok(report),
        false => Err(Failure::LeftRunning(Box::new(report))),
    }
}

fn open_file(path: &Path) -> Result<(File, u64), Failure> {
    let open = || {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    };
    open().map_err(|source: io::Error| Failure::Open { path: path.to_owned(), source })
}

/// Says something to the user. A stderr that is closed is no reason to fail.
fn say(text: std::fmt::Arguments<'_>) -> Result<(), Failure> {
    let _ = writeln!(io::stderr(), "{text}");
    Ok(())
}
