//! The program `dq`.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use dq_cli::arguments::Arguments;

/// What a shell reports of a program that ended because nobody read its output.
const BROKEN_PIPE: u8 = 141;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("cannot start: {error}")),
    };
    match runtime.block_on(dq_cli::run(arguments.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_broken_pipe() => ExitCode::from(BROKEN_PIPE),
        Err(failure) => failed(&failure.to_string()),
    }
}

fn failed(why: &str) -> ExitCode {
    // A stderr that is closed changes nothing.
    let _ = writeln!(std::io::stderr(), "dq: {why}");
    ExitCode::FAILURE
}
