//! The program `dq`.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use dq_cli::arguments::Arguments;
use dq_cli::safe::safe_lines;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(dq_cli::run(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_broken_pipe() {
                say(&failure.to_string());
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

fn say(why: &str) {
    // A stderr that is closed changes nothing.
    let _ = writeln!(std::io::stderr(), "dq: {}", safe_lines(why));
}
