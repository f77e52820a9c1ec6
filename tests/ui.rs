//! Programs with a mistake, each with the error that the compiler prints for it, and programs that compile.
//!
//! Most errors come from dq's macros. The compiler's own are those of the current stable toolchain.
//!
//! `TRYBUILD=overwrite cargo test -p dq-tests --test ui` writes the errors again; read each one as a user would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest build of dq among the libraries that this test was linked with.
fn built_library(libraries: &Path) -> PathBuf {
    let files = fs::read_dir(libraries).unwrap().map(|entry| entry.unwrap().path());
    let is_dq = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("libdq-") && name.ends_with(".rlib")
    };
    let newest = files.filter(is_dq).max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    newest.expect("cargo built dq for this test")
}

#[test]
fn a_dependency_that_is_renamed_in_the_manifest_is_found() {
    let program = std::env::current_exe().unwrap();
    let libraries = program.parent().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/renamed");
    let mut library = std::ffi::OsString::from("work=");
    library.push(built_library(libraries));
    let mut dependencies = std::ffi::OsString::from("dependency=");
    dependencies.push(libraries);
    let compiled = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .arg(folder.join("program.rs"))
        .args(["--edition=2024", "--emit=metadata", "-Dwarnings", "--out-dir", env!("CARGO_TARGET_TMPDIR")])
        .arg("--extern")
        .arg(library)
        .arg("-L")
        .arg(dependencies)
        .env("CARGO_MANIFEST_DIR", &folder)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

#[test]
fn every_mistake_has_its_text_and_a_program_without_one_compiles() {
    let programs = trybuild::TestCases::new();
    programs.pass("ui/pass/*.rs");
    programs.compile_fail("ui/fail/*.rs");
}
