//! The program beside others: where it finds its store, a directory that is held, an interruption, an output that nobody reads.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use dq_tests::redis::RedisServer;

use crate::program::{Ended, done, export_of, fails, job, run, topic};

fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn the_flag_outweighs_the_variable_and_that_the_file() {
    let servers = [RedisServer::start(), RedisServer::start(), RedisServer::start()];
    for (server, name) in servers.iter().zip(["by-flag", "by-variable", "by-file"]) {
        done(&["add", name, "1", "--store", &server.url(), "--app", "shop"], "");
    }
    let here = directory("precedence");
    let file = format!("store = \"{}\"\napp = \"shop\"\nlease = \"30s\"\n", servers[2].url());
    std::fs::write(here.join("dq.toml"), file).unwrap();
    let topics = |flags: &[&str], variable: Option<String>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dq"));
        command.arg("topics").args(flags).current_dir(&here).env_remove("DQ_STORE");
        Ended::from(command.envs(variable.map(|url| ("DQ_STORE", url))).output().unwrap())
    };
    let flag = servers[0].url();
    assert!(topics(&["--store", &flag], Some(servers[1].url())).stdout.contains("by-flag"));
    assert!(topics(&[], Some(servers[1].url())).stdout.contains("by-variable"));
    assert!(topics(&[], None).stdout.contains("by-file"));
    let elsewhere = topics(&["--config", "none.toml"], None);
    assert!(elsewhere.code == Some(1) && elsewhere.stderr.contains("cannot open `none.toml`"), "{elsewhere:?}");
    std::fs::remove_file(here.join("dq.toml")).unwrap();
    let nowhere = topics(&[], None);
    for place in ["--store <URL>", "DQ_STORE", "has no dq.toml"] {
        assert!(nowhere.code == Some(2) && nowhere.stderr.contains(place), "{nowhere:?}");
    }
}

#[test]
fn verbs_that_look_show_the_files_of_a_directory_that_a_program_holds_and_changes_are_refused() {
    let url = format!("file:{}", directory("held").display());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let provider = runtime.block_on(dq::Provider::connect("shop", url.as_str())).unwrap();
    let jobs = provider.topic("orders").unwrap();
    runtime.block_on(async { jobs.add_json("7").id("a").after(std::time::Duration::from_secs(900)).await }).unwrap();
    let frame = ["--store", &url, "--app", "shop"];
    let verbs: [&[&str]; 9] = [
        &["topics"],
        &["topic", "orders"],
        &["nodes", "orders"],
        &["jobs", "orders"],
        &["show", "orders", "a", "--payload"],
        &["why", "orders", "a"],
        &["doctor"],
        &["timeline", "orders", "--scale", "minute"],
        &["schedules", "list", "orders"],
    ];
    for verb in verbs {
        let seen = done(&[verb, &frame].concat(), "");
        assert!(
            seen.stderr.contains("this is what its files have now") && seen.stderr.contains("process "),
            "{seen:?}"
        );
    }
    assert!(done(&[&["show", "orders", "a", "--payload"][..], &frame].concat(), "").stdout.contains('7'));
    assert!(done(&["export", &url, "--app", "shop"], "").stdout.contains(r#""id":"a""#));
    let words = ["is in use by", "admits one program at a time", "dashboard"];
    let changes: [&[&str]; 3] =
        [&["add", "orders", "8"], &["delete", "orders", "a", "--yes"], &["pause", "orders", "--reason", "no"]];
    for change in changes {
        fails(1, &[change, &frame[..]].concat(), "", &words);
    }
    fails(1, &["import", &url], &export_of(&[topic("orders"), job("b", "delayed")]), &words);
    runtime.block_on(provider.close());
    drop((jobs, provider, runtime));
    let after = done(&[&["jobs", "orders"][..], &frame].concat(), "");
    assert!(after.stdout.contains('a') && !after.stderr.contains("its files"), "{after:?}");
}

#[test]
fn an_interrupted_change_prints_the_command_that_goes_on() {
    let server = RedisServer::start();
    let url = server.url();
    let lines: Vec<_> = (0..20_000).map(|n| job(&format!("{n:05}"), "dead")).collect();
    done(&["import", &url], &export_of(&[&[topic("orders")][..], &lines].concat()));
    let frame = ["--store", &url, "--app", "shop"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_dq"));
    command.args(["requeue", "orders", "--id-prefix", "", "--all", "--yes"]).args(frame);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let delayed = || server.command(&["ZCARD", "dq:{shop:orders}:delayed"]);
    while delayed() == ":0" {}
    // Its next write waits, so it cannot come to its end.
    server.command(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    while server.command(&["INFO", "clients"]).contains("blocked_clients:0") {}
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let ended = Ended::from(child.wait_with_output().unwrap());
    server.command(&["CLIENT", "UNPAUSE"]);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let go_on = ended.stderr.split("continue with: dq ").nth(1).unwrap().trim();
    assert!(go_on.contains("--cursor "), "{go_on}");
    let line = format!("{} {go_on} --yes {}", env!("CARGO_BIN_EXE_dq"), frame.join(" "));
    assert!(Command::new("sh").args(["-c", &line]).stdout(Stdio::null()).status().unwrap().success());
    assert_eq!(delayed(), ":20000");
}

#[test]
fn a_payload_comes_from_stdin_and_an_output_that_nobody_reads_ends_it() {
    let server = RedisServer::start();
    let url = server.url();
    let frame = ["--store", &url, "--app", "shop"];
    done(&[&["add", "orders", "-", "--id", "a"][..], &frame].concat(), "{\n \"a\": 1 }\n");
    let shown = done(&[&["show", "orders", "a", "--payload", "--json"][..], &frame].concat(), "").stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["payload"]["a"], 1);
    let refused = run(&[&["add", "orders", "-"][..], &frame].concat(), "{");
    assert!(refused.code == Some(1) && refused.stderr.contains("is not JSON"), "{refused:?}");
    let lines: Vec<_> = (0..5_000).map(|n| job(&format!("{n:05}"), "dead")).collect();
    done(&["import", &url], &export_of(&[&[topic("orders")][..], &lines].concat()));
    for verb in [format!("jobs orders -s dead --all {}", frame.join(" ")), format!("export {url} --app shop")] {
        let line = format!("{} {verb} | head -c 10; exit ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_dq"));
        let ended = Ended::from(Command::new("bash").args(["-c", &line]).output().unwrap());
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(141), ""), "{verb}");
    }
}
