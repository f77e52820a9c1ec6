//! One signal stops a node and what runs beside it, shown by processes of their own.
#![cfg(unix)]

use std::process::Stdio;
use std::sync::Arc;

use axum::routing::get;
use dq::context::{Condition, HealthProbe};
use dq::prelude::*;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::Notify;

use crate::backend::Shared;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "after-the-server")]
struct Late;

/// Ends only once the web server has ended.
#[delay_listener(register = false, timeout = "none")]
async fn late(_job: Job<Late>, server_ended: &Arc<Notify>) -> Result<(), JobError> {
    println!("handling");
    server_ended.notified().await;
    println!("handled");
    Ok(())
}

/// Starts a node, unless this is no process of its own.
async fn node(grace: &str, ended: &Arc<Notify>) -> Option<dq::context::Context> {
    let store = std::env::var("DQ_TEST_SIGNALS").ok()?;
    let factory = ContextFactory::new("test").store(Shared::at(&store)).without_inventory().variables([("", ""); 0]);
    Some(factory.listener::<late>().provide(ended.clone()).shutdown_grace(grace.to_owned()).start().await.unwrap())
}

/// Ends once the node stops.
async fn stops(probe: HealthProbe) {
    while probe.health().topics[0].condition != Condition::Stopping {
        tokio::task::yield_now().await;
    }
}

/// A test runs this one as a process of its own: axum and a node, as in docs/guide/axum.md.
#[tokio::test]
async fn a_program_with_axum() {
    let ended = Arc::new(Notify::new());
    let Some(dq) = node("1h", &ended).await else { return };
    let (jobs, signal) = (dq.provider().clone(), dq.signals().unwrap());
    let slow = {
        let signal = signal.clone();
        async move || {
            println!("serving");
            signal.await; // the request goes on after the signal, and adds a job
            match jobs.add(Late).after("1h").await {
                Ok(_) => "added",
                Err(_) => "not added",
            }
        }
    };
    let app = axum::Router::new().route("/slow", get(slow));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("port {}", listener.local_addr().unwrap().port());
    dq.provider().add(Late).await.unwrap();
    let server = async {
        let served = axum::serve(listener, app).with_graceful_shutdown(signal).await;
        println!("served");
        ended.notify_one();
        served
    };
    let (served, stopped) = dq.run_until(server).await.unwrap();
    served.expect("the server had the grace").unwrap();
    assert_eq!(stopped.left, 0);
    println!("stopped");
}

/// A test runs this one as a process of its own: what it runs ends by the signal too, but listens to it itself.
#[tokio::test]
async fn a_program_with_signals_of_its_own() {
    let ended = Arc::new(Notify::new());
    let Some(dq) = node("1h", &ended).await else { return };
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    let (jobs, probe) = (dq.provider().clone(), dq.probe());
    let work = async {
        jobs.add(Late).await.unwrap();
        terminate.recv().await;
        println!("served");
    };
    // The handler ends behind many turns of this runtime, in which a signal that counts twice would end the grace.
    let later = async {
        stops(probe).await;
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
        }
        ended.notify_one();
    };
    let (ran, ()) = tokio::join!(dq.run_until(work), later);
    assert_eq!(ran.unwrap().0, Some(()));
    println!("stopped");
}

/// A test runs this one as a process of its own: what it runs takes no notice of signals.
#[tokio::test]
async fn a_program_that_never_ends() {
    let Some(dq) = node("50ms", &Arc::new(Notify::new())).await else { return };
    let _signal = dq.signals().unwrap(); // from now on a signal does not end the process
    println!("handling");
    let (ran, _) = dq.run_until(std::future::pending::<()>()).await.unwrap();
    assert_eq!(ran, None);
    println!("stopped");
}

/// A test runs this one as a process of its own: its handler never ends, and it has an hour of grace.
#[tokio::test]
async fn a_program_that_is_busy_for_an_hour() {
    let Some(dq) = node("1h", &Arc::new(Notify::new())).await else { return };
    let (provider, probe) = (dq.provider().clone(), dq.probe());
    tokio::spawn(async move {
        stops(probe).await;
        println!("stopping");
    });
    // The node handles signals before there is a job whose output triggers one.
    let (ended, added) = tokio::join!(biased; dq.run_until_signal(), provider.add(Late));
    ended.unwrap();
    added.unwrap();
    println!("stopped");
}

/// A test runs this one as a process of its own: it has a provider, and no node.
#[tokio::test]
async fn a_program_without_a_node() {
    if std::env::var("DQ_TEST_SIGNALS").is_err() {
        return;
    }
    let signal = dq::context::signals().unwrap();
    println!("handling");
    signal.clone().await;
    signal.await; // all clones
    println!("stopped");
}

fn run(test: &str, store: &Shared) -> (Child, Pid, Lines<BufReader<ChildStdout>>) {
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("signals::{test}"), "--nocapture", "--test-threads=1"])
        .env("DQ_TEST_SIGNALS", store.address())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(program.id().unwrap().try_into().unwrap()).unwrap();
    let lines = BufReader::new(program.stdout.take().unwrap()).lines();
    (program, pid, lines)
}

/// The next line that ends with one of these words, after what the test harness prints.
async fn said(lines: &mut Lines<BufReader<ChildStdout>>, words: &[&str]) -> String {
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(at) = words.iter().find_map(|word| line.find(word)) {
            return line[at..].to_owned();
        }
    }
    panic!("the program ended before it said one of {words:?}");
}

stores!(one_sigterm_lets_axum_finish_its_request_and_the_node_its_handler on the real clock: memory, file, redis);
async fn one_sigterm_lets_axum_finish_its_request_and_the_node_its_handler() {
    let store = Shared::named("axum");
    let (mut program, pid, mut lines) = run("a_program_with_axum", &store);
    let port = said(&mut lines, &["port "]).await;
    let mut request = TcpStream::connect(format!("127.0.0.1:{}", &port["port ".len()..])).await.unwrap();
    request.write_all(b"GET /slow HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut two = [said(&mut lines, &["serving", "handling"]).await, said(&mut lines, &["serving", "handling"]).await];
    two.sort();
    assert_eq!(two, ["handling", "serving"]);
    kill_process(pid, Signal::TERM).unwrap();
    let mut answer = String::new();
    request.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("added") && !answer.ends_with("not added"),
        "{answer}"
    );
    for word in ["served", "handled", "stopped"] {
        assert_eq!(said(&mut lines, &["served", "handled", "stopped"]).await, word);
    }
    assert!(program.wait().await.unwrap().success());
}

stores!(the_first_signal_starts_the_grace_and_the_second_ends_it on the real clock: memory, file, redis);
async fn the_first_signal_starts_the_grace_and_the_second_ends_it() {
    let store = Shared::named("busy");
    let (mut program, pid, mut lines) = run("a_program_that_is_busy_for_an_hour", &store);
    for (word, signal) in [("handling", Some(Signal::INT)), ("stopping", Some(Signal::TERM)), ("stopped", None)] {
        assert_eq!(said(&mut lines, &["handling", "stopping", "stopped"]).await, word);
        signal.into_iter().for_each(|signal| kill_process(pid, signal).unwrap());
    }
    assert!(program.wait().await.unwrap().success());
}

/// The program ends well after one SIGTERM, and says these words meanwhile.
async fn ends_at_sigterm(test: &str, words: &[&str]) {
    let store = Shared::named(test);
    let (mut program, pid, mut lines) = run(test, &store);
    said(&mut lines, &["handling"]).await;
    kill_process(pid, Signal::TERM).unwrap();
    for word in words {
        assert_eq!(said(&mut lines, words).await, *word);
    }
    assert!(program.wait().await.unwrap().success());
}

#[tokio::test]
async fn the_signal_that_ends_what_runs_beside_the_node_does_not_end_its_grace() {
    ends_at_sigterm("a_program_with_signals_of_its_own", &["served", "handled", "stopped"]).await;
}

#[tokio::test]
async fn what_does_not_end_is_dropped_when_the_grace_is_over() {
    ends_at_sigterm("a_program_that_never_ends", &["stopped"]).await;
}

#[tokio::test]
async fn a_program_without_a_node_learns_of_sigterm() {
    ends_at_sigterm("a_program_without_a_node", &["stopped"]).await;
}
