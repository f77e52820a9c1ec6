//! `dq serve`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dq_tests::redis::RedisServer;

use crate::program::fails;

/// What it said first, the address that it printed, and its answers.
struct Served {
    said: Vec<String>,
    link: String,
    answers: Vec<String>,
    took: Duration,
}

/// Serves on a free port, and sends each of these requests: a line, and more headers.
fn served(listen: &str, arguments: &[&str], requests: impl FnOnce(&str) -> Vec<(String, String)>) -> Served {
    served_beside(0, listen, arguments, requests)
}

/// The same beside so many half requests.
fn served_beside(
    half: usize,
    listen: &str,
    arguments: &[&str],
    requests: impl FnOnce(&str) -> Vec<(String, String)>,
) -> Served {
    let server = RedisServer::start();
    let url = file("store", &server.url());
    let all =
        [&["serve", "--store-file", url.to_str().unwrap(), "--app", "shop", "--listen", listen], arguments].concat();
    let mut child = with_few_files(&all);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    let link = loop {
        let line = lines.next().expect("it prints its address").unwrap();
        match line.split_once("the dashboard is at http://") {
            Some((_, link)) => break link.to_owned(),
            None => said.push(line),
        }
    };
    let (address, path) = link.split_once('/').unwrap();
    let address = address.replace("0.0.0.0", "127.0.0.1");
    let _half: Vec<_> = (0..half).map(|_| half_request(&address)).collect();
    let began = Instant::now();
    let ask = |(request, headers): (String, String)| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answers = requests(path).into_iter().map(ask).collect();
    let took = began.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(url).unwrap();
    Served { said, link, answers, took }
}

fn half_request(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = write!(stream, "GET / HTTP/1.1\r\nhost: local");
    stream
}

/// Starts the program with room for 256 files.
fn with_few_files(arguments: &[&str]) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_dq")]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn gets(paths: &[&str], token: &str) -> Vec<(String, String)> {
    paths.iter().map(|path| (format!("GET {path}"), format!("authorization: Bearer {token}\r\n"))).collect()
}

/// A file of this test with this text.
fn file(name: &str, text: &str) -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-");
    let path = std::env::temp_dir().join(format!("dq-serve-{}-{thread}{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn serve_makes_a_token_and_prints_it_in_its_address() {
    let mut token = String::new();
    let served = served("127.0.0.1:0", &[], |path| {
        token = path.strip_prefix("login#").unwrap().to_owned();
        let form =
            format!("content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n", token.len() + 6);
        let login = ("POST /login".into(), format!("{form}\r\ntoken={token}"));
        let stranger = gets(&["/", "/api/v1/topics", "/readyz"], "of-a-stranger");
        [stranger, gets(&["/api/v1/topics"], &token), vec![login]].concat()
    });
    assert!(token.len() >= 43 && !served.link.contains(' '), "{}", served.link);
    for (answer, says) in
        served.answers.iter().zip(["location: /login", " 401", " 200", "\"topics\":[]", "set-cookie: dq_session="])
    {
        assert!(answer.contains(says), "{says}: {answer}");
    }
}

#[test]
fn serve_is_open_only_if_that_is_asked_for_and_on_loopback() {
    let served = served("127.0.0.1:0", &["--open"], |_| gets(&["/", "/api/v1/topics"], ""));
    assert!(served.answers[0].contains("What falls due"), "{}", served.answers[0]);
    assert!(served.answers[1].contains("\"topics\":[]") && served.link.ends_with('/'), "{}", served.answers[1]);
    let open = ["serve", "--store", "redis://127.0.0.1:1", "--app", "shop", "--listen", "0.0.0.0:0", "--open"];
    fails(2, &open, "", &["0.0.0.0:0 can be reached from elsewhere", "leave out `--open`"]);
}

#[test]
fn serve_takes_its_tokens_from_a_file_with_names_and_roles() {
    let tokens = file("tokens", "# of the shop\nann look a-token-of-the-test\nci add another-token-of-it\n");
    let path = tokens.to_str().unwrap().to_owned();
    let served = served("127.0.0.1:0", &["--token-file", &path], |_| {
        [gets(&["/api/v1/topics"], "a-token-of-the-test"), gets(&["/api/v1/topics"], "another-token-of-it")].concat()
    });
    assert!(served.answers[0].contains(" 200") && served.answers[1].contains(" 403"), "{:?}", served.answers);
    assert!(served.link.ends_with('/') && served.said.is_empty(), "a token of a file is printed nowhere");
    for (text, says) in [("ann look", "line 1: write"), ("short", "has 5 bytes"), ("", "no token")] {
        std::fs::write(&tokens, text).unwrap();
        let server = RedisServer::start();
        fails(2, &["serve", "--store", &server.url(), "--app", "shop", "--token-file", &path], "", &[says]);
    }
    std::fs::remove_file(&tokens).unwrap();
    fails(
        1,
        &["serve", "--store", "redis://127.0.0.1:1", "--app", "shop", "--token-file", &path],
        "",
        &["cannot open"],
    );
}

#[test]
fn serve_has_links_with_the_prefix_that_a_proxy_strips() {
    let served = served("127.0.0.1:0", &["--prefix", "/ops/dq/"], |_| gets(&["/nodes", "/login"], ""));
    assert!(served.link.contains("through the proxy at /ops/dq/login#"), "{}", served.link);
    for (answer, says) in served.answers.iter().zip(["location: /ops/dq/login", "action=\"/ops/dq/login\""]) {
        assert!(answer.contains(says), "{says}: {answer}");
    }
    let server = RedisServer::start();
    let odd = ["serve", "--store", &server.url(), "--app", "shop", "--prefix", "//evil.example"];
    fails(2, &odd, "", &["`//evil.example` is not a path"]);
}

#[test]
fn serve_warns_beyond_loopback_without_tls() {
    let of = |arguments: &[&str]| served("0.0.0.0:0", arguments, |_| Vec::new()).said.join("\n");
    assert!(of(&[]).contains("warning: 0.0.0.0:0 can be reached from elsewhere without TLS"));
    assert_eq!(of(&["--https"]), "");
}

#[test]
fn serve_answers_beside_more_half_requests_than_it_may_open_files() {
    let served = served_beside(1_100, "127.0.0.1:0", &["--open"], |_| gets(&["/healthz", "/readyz", "/"], ""));
    for answer in &served.answers {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert!(served.took < Duration::from_secs(3), "three answers took {:?}", served.took);
}
