//! What the program `dq` does: it looks at the jobs of an app, changes and explains them, moves them between stores, and checks the
//! directories of `file:` stores. `docs/guide/command-line.md` says how to use it.
//!
//! [`Arguments`] has the command line and [`run`] does it. [`Common`] are the options of all verbs, [`open`](mod@open) makes the
//! provider of an administrator, [`Screen`] has the output and the questions, and [`Failure`] the exit codes. The verbs are in
//! [`verbs`].
//!
//! [`export`] writes everything that a store keeps of an app's topics as JSON lines, and [`import`] puts such lines into a
//! store of any kind. [`line`](mod@line) has their form, [`job_line`] that of a job.

mod ahead;
pub mod arguments;
mod ask;
mod batch;
mod config;
pub mod cursor;
pub mod export;
pub mod failure;
mod files;
mod follow_ups;
pub mod frame;
pub mod import;
pub mod job_line;
pub mod line;
pub mod open;
pub mod progress;
mod reader;
pub mod safe;
pub mod screen;
pub mod session;
mod tokens;
pub mod verbs;
pub mod when;
mod words;

use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use arguments::{Arguments, Command};
use clap::CommandFactory;
use dq::environment::Environment;
use dq::store::Store;
use export::ExportArguments;
use failure::Failure;
use frame::Common;
use import::ImportArguments;
use progress::Progress;
use screen::{Screen, can_be_asked};
use session::Session;
use verbs::change::VerbChange;
use verbs::topics::{no_topics, unknown_topic};

pub use ask::{Repeating, open, open_to_look};

/// Does what the command line says. What was asked for goes to stdout, all else to stderr.
///
/// # Errors
/// [`Failure`].
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { common, command } = arguments;
    let out = io::stdout();
    let is_terminal = out.is_terminal();
    let mut out = io::BufWriter::new(out.lock());
    // Without a lock of its own: `dq add` reads the payload from the same stdin.
    let mut stdin = BufReader::new(io::stdin());
    let answers: Option<&mut dyn io::BufRead> = if can_be_asked() { Some(&mut stdin) } else { None };
    let screen = Screen::new(&common, &mut out, is_terminal, answers);
    let mut session = Session { common, screen };
    let done = run_in(&mut session, command).await;
    // What was written before a failure is worth to be seen.
    let flushed = session.screen.flush();
    done.and(flushed)
}

/// Does what the command line says, and writes to the screen of the session.
///
/// # Errors
/// [`Failure`].
pub async fn run_in(session: &mut Session<'_>, command: Command) -> Result<(), Failure> {
    match command {
        Command::Topics(arguments) => verbs::topics::run(session, &arguments).await,
        Command::Topic { topic } => verbs::topics::run_one(session, &topic).await,
        Command::Nodes(arguments) => verbs::nodes::run(session, &arguments).await,
        Command::Jobs(arguments) => verbs::jobs::run(session, &arguments).await,
        Command::Show(arguments) => verbs::show::run(session, &arguments).await,
        Command::Why(job) => verbs::show::run_why(session, &job).await,
        Command::Doctor(arguments) => verbs::doctor::run(session, &arguments).await,
        Command::Timeline(arguments) => verbs::timeline::run(session, &arguments).await,
        Command::Top(arguments) => verbs::top::run(session, &arguments).await,
        Command::Watch(arguments) => verbs::watch::run(session, &arguments).await,
        Command::Add(arguments) => verbs::add::run(session, &arguments).await,
        Command::Requeue(arguments) => {
            verbs::change::run(session, &arguments.target, &VerbChange::requeue(&arguments)).await
        }
        Command::Delete(arguments) => {
            verbs::change::run(session, &arguments.target, &VerbChange::delete(&arguments)).await
        }
        Command::RunNow(arguments) => {
            verbs::change::run(session, &arguments.target, &VerbChange::run_now(&arguments)).await
        }
        Command::Reschedule(arguments) => {
            verbs::change::run(session, &arguments.target, &VerbChange::reschedule(&arguments)).await
        }
        Command::Pause(arguments) => verbs::pause::run_pause(session, &arguments).await,
        Command::Drain(arguments) => verbs::pause::run_drain(session, &arguments).await,
        Command::Limit(arguments) => verbs::limit::run(session, &arguments).await,
        Command::Resume { topic } => verbs::pause::run_resume(session, &topic).await,
        Command::Groups(command) => verbs::groups::run(session, &command).await,
        Command::Sets(arguments) => verbs::sets::run(session, &arguments).await,
        Command::Schedules(command) => verbs::schedules::run(session, &command).await,
        Command::Completions { shell } => {
            verbs::shell::run_completions(&mut session.screen, Arguments::command(), shell)
        }
        Command::Man { directory } => {
            verbs::shell::run_man(&mut session.screen, Arguments::command(), directory.as_deref())
        }
        Command::Serve(arguments) => verbs::serve::run(session, &arguments).await,
        Command::Export(arguments) => run_export(&session.common, &arguments).await,
        Command::Import(arguments) => run_import(&session.common, &arguments).await,
        Command::Check { path, salvage } => files::run_check(&path, salvage.as_deref()),
        Command::Compact { path } => files::run_compact(&path),
        Command::Backup { path, to } => files::run_backup(&path, &to),
    }
}

async fn run_export(common: &Common, arguments: &ExportArguments) -> Result<(), Failure> {
    let url = arguments.url.clone().map_or_else(|| common.store(), Ok)?;
    let app = common.app()?;
    let out = io::stdout();
    // On a terminal the lines themselves show how far it is.
    let progress = if out.is_terminal() { Progress::hidden() } else { Progress::of_jobs() };
    let mut out = io::BufWriter::new(out.lock());
    let done = match dq::context::directory_of(&url)? {
        Some(path) => export::export_directory(&path, &app, &arguments.choice, &mut out, &progress).await,
        None => {
            let (store, repeating) = (open(&url).await?, Repeating(common.long_wait()));
            export::export(&*store, &app, &arguments.choice, repeating, &mut out, &progress).await
        }
    };
    progress.end();
    let report = done?;
    out.flush().map_err(Failure::Write)?;
    // The output is whole, so it can be imported even then.
    if report.topics == 0 {
        return say(format_args!("{}", no_topics(&app)));
    }
    say(format_args!("{report}"))?;
    match report.unknown.first().filter(|_| !arguments.choice.topics.is_empty()) {
        Some(topic) => Err(unknown_topic(&app, topic)),
        None => Ok(()),
    }
}

async fn run_import(common: &Common, arguments: &ImportArguments) -> Result<(), Failure> {
    let (url, file) = arguments.store_and_file();
    let url = url.map_or_else(|| common.store(), |url| Ok(url.to_owned()))?;
    let store: Arc<dyn Store> = match files::new_directory(&url)? {
        Some(new) => Arc::new(new),
        None => open(&url).await?,
    };
    let (input, progress): (Box<dyn io::Read>, _) = match &file {
        Some(path) => {
            let (file, bytes) = open_file(path)?;
            (Box::new(file), Progress::of_bytes(bytes))
        }
        None => (Box::new(io::stdin().lock()), Progress::of_jobs()),
    };
    let producer = Environment::on_this_runtime(Arc::new(dq::environment::Seeded::by_system())).producer_id();
    let options = import::Options {
        app: common.app.clone(),
        on_duplicate: arguments.on_duplicate,
        partial: arguments.partial,
        cut_ahead: arguments.cut_ahead,
        repeating: Repeating(common.long_wait()),
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
        false => Err(Failure::LeftRunning { report: report.to_string(), jobs: report.running }),
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
