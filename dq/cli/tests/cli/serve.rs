//! `dq serve`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use dq_tests::redis::RedisServer;

use crate::program::{fails, start};

/// Serves on a free port of loopback, asks for each of these paths, and returns the answers and what was said first.
fn served(arguments: &[&str], requests: &[&str]) -> Vec<String> {
    let server = RedisServer::start();
    let url = server.url();
    let all = [&["serve", "--store", &url, "--app", "shop", "--listen", "127.0.0.1:0"], arguments].concat();
    let mut child = start(&all);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let (_, address) = line.trim().split_once("http://").unwrap_or_else(|| panic!("{line}"));
    let ask = |request: &&str| {
        let mut stream = TcpStream::connect(address.trim_end_matches('/')).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answers = requests.iter().map(ask).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    answers
}

#[test]
fn serve_shows_the_dashboard_on_loopback() {
    let answers = served(&[], &["GET /", "GET /api/v1/topics", "GET /readyz"]);
    assert!(answers[0].contains("What falls due"), "{}", answers[0]);
    assert!(answers[1].contains("\"topics\":[]"), "{}", answers[1]);
    assert!(answers[2].starts_with("HTTP/1.1 200"), "{}", answers[2]);
}

#[test]
fn serve_asks_for_the_token_that_it_was_given() {
    let answers = served(&["--token", "a-token-of-the-test"], &["GET /", "GET /api/v1/topics"]);
    assert!(answers[0].contains("location: /login"), "{}", answers[0]);
    assert!(answers[1].starts_with("HTTP/1.1 401"), "{}", answers[1]);
}

#[test]
fn serve_refuses_to_be_open_to_a_network() {
    let open = ["serve", "--store", "redis://127.0.0.1:1", "--app", "shop", "--listen", "0.0.0.0:0"];
    fails(2, &open, "", &["--token", "DQ_DASHBOARD_TOKEN"]);
    let short = [&open[..], &["--token", "short"]].concat();
    fails(1, &short, "", &["127.0.0.1:1"]);
}
