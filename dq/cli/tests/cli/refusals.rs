//! What the program refuses, and that nothing half done is left.

use dq_tests::redis::RedisServer;

use crate::program::{done, export_of, fails, job, topic};

/// Imports these lines, the last of which is not right, behind enough good ones for a batch of their own.
fn is_refused(lines: &[String], why: &str) {
    let server = RedisServer::start();
    let good: Vec<_> = (0..303).map(|n| job(&format!("good{n:04}"), "dead")).collect();
    let import = export_of(&[&[topic("orders")][..], &good, lines].concat());
    let number = 305 + lines.len();
    let so_far = "the lines up to 302 are imported, and none after them";
    fails(1, &["import", &server.url()], &import, &[&format!("dq: line {number}: {why}"), so_far]);
    let exported = done(&["export", &server.url(), "--app", "shop"], "").stdout;
    assert_eq!(exported, export_of(&[&[topic("orders")][..], &good[..300]].concat()));
}

#[test]
fn a_line_that_is_not_right_stops_the_import_and_nothing_of_its_batch_is_done() {
    is_refused(&["{\"job\":{".into()], "EOF while parsing");
}

/// Imports one line behind a good one, and nothing else.
fn says(server: &RedisServer, line: &str, why: &str) {
    let import = export_of(&[topic("orders"), job("good", "dead"), line.to_owned()]);
    let words = [&*format!("dq: line 4: {why}"), "nothing is imported"];
    fails(1, &["import", &server.url()], &import, &words);
    assert_eq!(server.command(&["EXISTS", "dq:{shop:orders}:jobs"]), ":0");
}

#[test]
fn each_mistake_of_a_line_is_named() {
    let server = RedisServer::start();
    let says = |line: &str, why: &str| says(&server, line, why);
    let beside = |field: &str| job("a", "dead").replace("\"payload\"", &format!("{field},\"payload\""));
    let with = |field: &str| beside(&format!("\"metadata\":{{{field}}}"));
    says(&beside("\"colour\":1"), "unknown field `colour`, expected one of `topic`, `id`");
    says(&with("\"colour\":1"), "unknown field `colour`, expected one of `attempts`, `cause`");
    says(&with("\"priority\":\"urgent\""), "`urgent` is not a priority: write `high`, `normal` or `low`");
    says(&with("\"attempts\":70000"), "invalid value: integer `70000`, expected u16");
    says(&with("\"cause\":\"bad luck\""), "there is no cause `bad luck`; there is error, panic, timeout");
    says(
        &with("\"retain\":281474976710656"),
        "`retain`: a time in ms is 281474976710656; the limit is 281474976710655",
    );
    says(
        &with("\"parked_by\":4503599627370497"),
        "`parked_by`: the fence is 4503599627370497; the limit is 4502500115742720",
    );
    says(
        &beside("\"payload_base64\":\"AA==\""),
        "a job has exactly one of `payload`, `payload_base64` and `record_base64`",
    );
    says(
        &with(&format!("\"error\":\"{}\"", "x".repeat(65_530))),
        "the length of the error in bytes is 65530; the limit is 4096",
    );
    says(&job("a", "parked"), "unknown variant `parked`, expected one of `delayed`");
    says(&job("a", "running"), "this server cannot serve import: a copy is DELAYED, UNACKED, DEAD or DONE");
    says(
        &job("a", "dead").replace("4000000000000", "281474976710656"),
        "`at`: a time in ms is 281474976710656; the limit",
    );
    says(&job("", "dead"), "the job id `` is empty");
    says(&job("a", "dead").replace("\"orders\"", "\"a b\""), "the topic `a b` contains ' '");
    says(&job("a", "dead").replace("\"orders\"", "\"mails\""), "no line for topic `mails` comes before this job");
    let payload = "\"payload\":{\"order\":1}";
    says(&job("a", "dead").replace(payload, "\"payload_base64\":\"A\""), "`payload_base64` is not base64");
    let whole = "\"metadata\":{\"attempts\":1},\"record_base64\":\"d2hhdD8=\"";
    says(&job("a", "dead").replace(payload, whole), "`record_base64` is a whole record");
    says("{\"queue\":{}}", "unknown variant `queue`, expected one of `export`, `topic`, `job`, `follow_ups`, `end`");
    says("[]", "expected value (column 1)");
    says(r#"{"topic":{"topic":"mails","fence":4503599627370497}}"#, "the fence is 4503599627370497; the limit is 45");
    says(r#"{"export":{"format":1,"app":"shop"}}"#, "a second export begins here");
    says(r#"{"end":{"jobs":5}}"#, "the export had 5 jobs, and 1 came");
    says("", "EOF while parsing a value");
}

#[test]
fn an_input_that_is_no_whole_export_is_refused() {
    let server = RedisServer::start();
    let import = ["import", &server.url()];
    fails(1, &import, "", &["line 1: the input is empty", "nothing is imported"]);
    fails(1, &import, "{\"end\":{\"jobs\":0}}\n", &["line 1: the first line of an export is"]);
    let newer = r#"{"export":{"format":2,"app":"shop"}}"#;
    fails(1, &import, newer, &["line 1: the export has format 2, and this program reads format 1"]);
    let whole = export_of(&[topic("orders"), job("a", "dead")]);
    let cut = whole.replace("{\"end\":{\"jobs\":1}}\n", "");
    fails(1, &import, &cut, &["ends without its last line, so it was cut off: imported 1 job", "`--partial`"]);
    done(&["import", &server.url(), "--partial"], &cut);
    fails(1, &import, &format!("{whole}{}\n", topic("x")), &["line 5: it comes after the last line, `end`"]);
}

#[test]
fn a_line_of_any_length_takes_bounded_memory() {
    let server = RedisServer::start();
    let long = job("a", "dead").replace("{\"order\":1}", &format!("\"{}\"", "x".repeat(64 << 20)));
    let import = export_of(&[topic("orders"), long]);
    fails(1, &["import", &server.url()], &import, &["line 3: it has more than 67108864 bytes"]);
}

#[test]
fn a_url_that_leads_nowhere_is_reported_with_what_to_do() {
    let export = |url: &'static str| ["export", url, "--app", "shop"];
    fails(1, &export("memory:jobs"), "", &["which no other program can reach: name a server"]);
    fails(1, &export("reddis://host"), "", &["there is no scheme `reddis` (did you mean `redis:`?)"]);
    let mut server = RedisServer::start();
    server.kill();
    let url = server.url_for("me:secret");
    let refused = fails(1, &["import", &url], "", &["cannot reach redis://", "Connection refused"]);
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
}

#[test]
fn a_command_line_that_makes_no_sense_is_refused_with_the_usage() {
    fails(2, &[], "", &["Usage: dq [OPTIONS] <COMMAND>"]);
    fails(2, &["export", "redis://host"], "", &["--app <APP>"]);
    fails(2, &["export", "redis://host", "--app", "a b"], "", &["the app name `a b` contains ' '"]);
    fails(
        2,
        &["export", "redis://host", "--app", "a", "--state", "parked"],
        "",
        &["[possible values: delayed, unacked"],
    );
    fails(2, &["import", "redis://host", "--on-duplicate", "merge"], "", &["[possible values: reject, keep, replace]"]);
    fails(2, &["import", "redis://host", "--wait", "soon"], "", &["invalid value 'soon' for '--wait <TIME>'"]);
    let late = ["add", "orders", "1", "--store", "file:/nowhere", "--app", "a", "--delay", "99y"];
    fails(2, &late, "", &["invalid value '99y' for '--delay <TIME>': the limit is ten years (3650d)"]);
    for arguments in [&["--help"][..], &["export", "--help"], &["import", "--help"], &["--version"]] {
        let said = done(arguments, "").stdout;
        assert!(said.contains("dq"), "{said}");
    }
}
