//! The commands of this folder: what they say to arguments they do not know. What they do with good ones takes minutes.

use std::path::Path;
use std::process::Command;

/// The command is ended with its usage, before anything is built or started.
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
    let binary = "--server wants the path of a server binary";
    is_refused("on-server", &["--server"], binary);
    is_refused("on-server", &["--server", "/no/such/server"], binary);
    let url = "--url wants a redis:// or rediss:// URL";
    for no_url in [&["--url"][..], &["--url", "http://host"], &["--url", "redis://"], &["--url", "rediss://"]] {
        is_refused("on-server", no_url, url);
    }
    for no_url in ["redis://host?db=1", "rediss://host/#insecure", "rediss://ho st"] {
        is_refused("on-server", &["--url", no_url], "--url wants a URL without blanks and options");
    }
    for no_file in ["rediss://host/?ca=file", "rediss://host/?ca=/file&key=file"] {
        is_refused("on-server", &["--url", no_file], "--url wants the whole path of each file");
    }
    is_refused("on-server", &["--server", "true", "--url", "redis://host"], "one server is enough");
    is_refused("on-server", &["help"], "there is no argument help");
}

#[test]
fn servers_refuses_a_version_it_does_not_have() {
    is_refused("servers", &["redis-5.0"], "there is no version redis-5.0 here");
    is_refused("servers", &["--instal", "redis-6.2.5"], "there is no option --instal");
    is_refused("servers", &["--install"], "--install wants a version");
}
