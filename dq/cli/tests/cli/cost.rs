//! What the verbs cost.

use dq::Provider;
use dq_cli::verbs::top::{Wanted, read};
use dq_tests::redis::RedisServer;
use serde_json::json;

use crate::in_process::Shop;

const JOBS: usize = 100_000;

/// Scripts, and two for a listing of names: the script that lists them and the command before it.
fn commands(server: &RedisServer) -> u64 {
    let calls = server.calls();
    let of = |name: &str| calls.get(name).copied().unwrap_or_default();
    match of("evalsha") + 2 * of("eval") {
        0 => of("zrange"), // the schedules are read from their index, without a script
        scripts => scripts,
    }
}

/// The jobs of one topic, and 40 topics beside it.
fn fill(runtime: &tokio::runtime::Runtime, server: &RedisServer) -> Provider {
    runtime.block_on(async {
        let provider = Provider::connect("shop", server.url()).await.unwrap();
        let orders = provider.topic("orders").unwrap();
        orders.add_json(json!(1)).id("one").after("2h").await.unwrap();
        for hour in 0..JOBS / 1_000 {
            let jobs = (0..1_000).map(|n| json!({ "n": n }));
            let due = if hour < 30 { "0s".into() } else { format!("{hour}h") };
            orders.add_many_json(jobs).after(due).await.unwrap().all().unwrap();
        }
        for n in 0..40 {
            provider.topic(&format!("topic-{n:02}")).unwrap().add_json(json!(n)).await.unwrap();
        }
        provider
    })
}

#[test]
fn a_verb_that_looks_at_100_000_jobs_takes_at_most_20_commands() {
    let server = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let provider = fill(&runtime, &server);
    let shop = Shop(server.url());
    let looks: [&[&str]; 14] = [
        &["topics"],
        &["topics", "--cursor", "topic-10"],
        &["topic", "orders"],
        &["nodes", "orders"],
        &["jobs", "orders"],
        &["jobs", "orders", "--error", "no such text"],
        &["jobs", "orders", "--state", "running", "--id-prefix", "x"],
        &["jobs", "orders", "--from", "+40h", "--until", "+41h"],
        &["show", "orders", "one", "--payload"],
        &["why", "orders", "one"],
        &["timeline", "orders"],
        &["schedules", "list", "orders"],
        &["groups", "list", "orders"],
        &["sets", "orders"],
    ];
    let mut silent = Vec::new();
    for words in looks {
        shop.wrote(words); // the server learns the scripts
        server.command(&["CONFIG", "RESETSTAT"]);
        let out = shop.wrote(words);
        let (commands, bytes) = (commands(&server), out.len());
        assert!((1..=20).contains(&commands), "{words:?}: {commands} commands");
        assert!(bytes < 64 << 10, "{words:?}: {bytes} bytes");
        if bytes == 0 {
            silent.push(words.join(" "));
        }
    }
    // There are none, or none passes the filter, which is said on stderr.
    let none = [
        "nodes orders",
        "jobs orders --error no such text",
        "jobs orders --state running --id-prefix x",
        "schedules list orders",
        "groups list orders",
        "sets orders",
    ];
    assert_eq!(silent, none);
    server.command(&["CONFIG", "RESETSTAT"]);
    let seen = runtime.block_on(read(&provider.inspect(), Wanted::default()));
    assert_eq!(seen.page.unwrap().0.topics.len(), 16);
    // Two for the names, one for each topic, and up to two for the nodes of the first.
    assert!((19..=20).contains(&commands(&server)), "top: {} commands", commands(&server));
}
