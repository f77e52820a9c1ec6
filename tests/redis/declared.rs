//! The proxy that rejects undeclared keys: what it refuses, and that dq works behind it. `tests/on-server --declared` runs whole suites there.

use std::time::Duration;

use dq::job::JobId;
use dq::store::step::Change;
use dq::store::{CommandKind, Due, NewJob};
use dq_tests::redis::{DeclaredKeys, RedisServer};

use super::topic::{Topic, generated, job};

/// Calls a script by its text, then by its hash. Returns the errors, or `None`.
fn called(proxy: &DeclaredKeys, script: &str) -> [Option<String>; 2] {
    let mut connection = redis::Client::open(proxy.url()).unwrap().get_connection().unwrap();
    let mut call = |name: &str, script: &str| {
        let answer = redis::cmd(name).arg(&[script, "2", "one", "two"]).query::<redis::Value>(&mut connection);
        answer.err().map(|error| error.to_string())
    };
    [call("EVAL", script), call("EVALSHA", redis::Script::new(script).get_hash())]
}

#[test]
fn a_script_that_touches_an_undeclared_key_is_refused() {
    let server = RedisServer::start();
    let proxy = DeclaredKeys::of(&server);
    let allowed = [
        "return redis.call('SET', KEYS[1], 'x')",
        "return redis.call('EXISTS', KEYS[2], 'one')",
        "return redis.call('PUBLISH', 'channel', 'x')",
        "return redis.status_reply(tostring(redis.call('time')[1]))",
    ];
    for script in allowed {
        assert_eq!(called(&proxy, script), [None, None], "{script}");
    }
    let refused = [
        "return redis.call('SET', KEYS[1] .. 'x', 'x')",
        "return redis.pcall('HGET', 'other', 'field')",
        "local call = redis.call return call('EXISTS', KEYS[1], 'other')",
        "KEYS[3] = 'other' return redis.call('GET', KEYS[3])",
    ];
    for script in refused {
        for error in called(&proxy, script) {
            assert!(error.as_ref().is_some_and(|error| error.contains("undeclared key")), "{script}: {error:?}");
        }
    }
    assert!(called(&proxy, "return redis.call('KEYS', '*')")[0].as_ref().unwrap().contains("are not known"));
    // The server alone refuses none of them.
    server.command(&["SET", "other", "x"]);
    assert_eq!(server.command(&["EVAL", "return redis.call('GET', 'other')", "2", "one", "two"]), "x");
}

/// A client that loads a script is told another hash, and calls it by that of its text.
#[test]
fn a_script_that_the_server_knows_otherwise_is_unknown_behind_the_proxy() {
    let server = RedisServer::start();
    let proxy = DeclaredKeys::of(&server);
    let script = "return redis.call('GET', 'other')";
    server.command(&["SCRIPT", "LOAD", script]);
    let mut connection = redis::Client::open(proxy.url()).unwrap().get_connection().unwrap();
    let mut by_hash = || {
        let hash = redis::Script::new(script).get_hash().to_owned();
        redis::cmd("EVALSHA").arg(&[&hash, "0"]).query::<redis::Value>(&mut connection).unwrap_err().to_string()
    };
    let unknown = by_hash();
    assert!(unknown.to_lowercase().contains("noscript"), "{unknown}");
    let mut loading = redis::Client::open(proxy.url()).unwrap().get_connection().unwrap();
    redis::cmd("SCRIPT").arg(&["LOAD", script]).query::<redis::Value>(&mut loading).unwrap();
    let refused = by_hash();
    assert!(refused.contains("undeclared key"), "{refused}");
}

#[tokio::test]
async fn jobs_live_where_undeclared_keys_are_rejected() {
    let server = RedisServer::start();
    let proxy = DeclaredKeys::of(&server);
    let topic = Topic::on(&proxy.url()).opened().await;
    let far = NewJob { due: Due::After(Duration::from_secs(3600)), ..generated(200) };
    topic.add((0..100).map(generated).chain([job("a")]).collect()).await;
    let claims = topic.claims().await;
    assert_eq!(claims.len(), 101);
    topic.try_settle(&claims, Change::Ack).await.unwrap();
    topic.add(vec![far]).await;
    let id = JobId::generated(200, 7);
    topic.command(CommandKind::Delete, id.as_str()).await;
    assert_eq!(server.command(&["EXISTS", "dq:{shop:t}:jobs", "dq:{shop:t}:far-jobs"]), ":0");
}
