//! The scripts of this folder reject invalid arguments. With valid ones they take minutes, so those are not tested here.

use std::path::Path;
use std::process::Command;

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
    is_refused("on-server", &["help"], "unknown argument help");
}

#[test]
fn servers_refuses_a_version_it_does_not_have() {
    is_refused("servers", &["redis-5.0"], "unknown version redis-5.0");
    is_refused("servers", &["--instal", "redis-6.2.5"], "unknown option --instal");
    is_refused("servers", &["--install"], "--install needs a version");
}
