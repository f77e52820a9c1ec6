//! Programs with a mistake, each with the error that the compiler prints for it, and programs that compile and run.
//!
//! Most errors come from dq's macros. The compiler's own are those of the current stable toolchain.
//!
//! `TRYBUILD=overwrite cargo test -p dq-ui` writes the errors again; read each one as a user would.

use std::fs;
use std::path::{Path, PathBuf};

mod programs;

use programs::Libraries;

/// A file or folder beside this one.
fn ui(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// All of them are one call of `cargo check`: with one program among them that has to run, `trybuild` would call cargo three times
/// for each.
#[test]
fn every_mistake_has_its_text() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}

#[test]
fn every_program_without_a_mistake_compiles_and_runs() {
    let mut programs: Vec<_> = fs::read_dir(ui("pass")).unwrap().map(|entry| entry.unwrap().path()).collect();
    programs.sort();
    assert!(programs.len() > 20, "the programs are found");
    let failed = Libraries::built().run_all(programs);
    assert!(failed.is_empty(), "{} failed:\n\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn a_dependency_that_is_renamed_in_the_manifest_is_found() {
    let mut compiler = Libraries::built().renamed("work").compiler(&ui("renamed/program.rs"));
    compiler.args(["--emit=metadata", "-Dwarnings"]).env("CARGO_MANIFEST_DIR", ui("renamed"));
    let compiled = compiler.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}
