//! Programs with a mistake, each with the error that the compiler prints for it, and programs that compile and run.
//!
//! Most errors come from dq's macros. The compiler's own are those of the current stable toolchain.
//!
//! `DQ_UI=overwrite cargo test -p dq-ui` writes the errors again; read each one as a user would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

mod programs;
mod said;

use programs::{Libraries, scratch};

/// A file or folder beside this one.
fn ui(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The programs of a folder.
fn programs(folder: &str, least: usize) -> Vec<PathBuf> {
    let paths = fs::read_dir(ui(folder)).unwrap().map(|entry| entry.unwrap().path());
    let programs: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect();
    assert!(programs.len() >= least, "the programs are found");
    programs
}

#[test]
fn every_mistake_has_its_text() {
    let writes = std::env::var_os("DQ_UI").is_some_and(|what| what == "overwrite");
    let failed = Libraries::built().each(programs("fail", 31), |libraries, program| {
        let workspace = ui("../..");
        let mut compiler = libraries.compiler(&Path::new("tests/ui/fail").join(program.file_name().unwrap()));
        compiler.current_dir(workspace).args(["--emit=metadata", "-Adead_code", "--diagnostic-width=140"]);
        let compiled = compiler.output().unwrap();
        let said = said::plain(&String::from_utf8_lossy(&compiled.stderr));
        let (text, file) = (format!("{said}\n"), program.with_extension("stderr"));
        if writes {
            fs::write(&file, &text).unwrap();
        }
        let wanted = fs::read_to_string(&file).unwrap_or_default();
        match compiled.status.success() {
            true => Some("it compiles".to_owned()),
            false => (text != wanted).then(|| format!("it says\n{text}\ninstead of\n{wanted}")),
        }
    });
    assert!(failed.is_empty(), "{} failed:\n\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn every_program_without_a_mistake_compiles_and_runs() {
    let failed = Libraries::built().each(programs("pass", 21), fault);
    assert!(failed.is_empty(), "{} failed:\n\n{}", failed.len(), failed.join("\n\n"));
}

/// What is wrong with a program that should compile and run.
fn fault(libraries: &Libraries, program: &Path) -> Option<String> {
    let compiled = libraries.compiler(program).output().unwrap();
    let ended = match compiled.status.success() {
        true => Command::new(scratch().join(program.file_stem().unwrap())).output().unwrap(),
        false => compiled,
    };
    (!ended.status.success()).then(|| format!("{}\n{}", ended.status, String::from_utf8_lossy(&ended.stderr)))
}

/// The manifest of this test calls it dq, and no crate has that name: only what an attribute says leads to it.
#[test]
fn generated_code_uses_the_named_crate_everywhere() {
    let found = fault(&Libraries::built().renamed("work"), &ui("renamed/named.rs"));
    assert!(found.is_none(), "{}", found.unwrap_or_default());
}

#[test]
fn a_dependency_that_is_renamed_in_the_manifest_is_found() {
    let mut compiler = Libraries::built().renamed("work").compiler(&ui("renamed/program.rs"));
    compiler.args(["--emit=metadata", "-Dwarnings"]).env("CARGO_MANIFEST_DIR", ui("renamed"));
    let compiled = compiler.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}
