//! A server of this benchmark alone, and what it has spent.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue};

pub(crate) struct Server {
    child: Child,
    _log: BufReader<ChildStdout>,
    port: u16,
}

/// What a server has spent so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spent {
    /// CPU time of its main thread, µs.
    pub(crate) main_us: f64,
    /// Time within scripts, µs.
    pub(crate) script_us: f64,
    /// Scripts called.
    pub(crate) scripts: f64,
}

impl Server {
    /// In memory only, on a free port of 127.0.0.1. `DQ_REDIS_SERVER` names another program than `redis-server`.
    pub(crate) fn start() -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let program = std::env::var("DQ_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        let mut child = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-server is installed");
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("eady to accept connections") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the server has ended");
        }
        Self { child, _log: log, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) async fn connect(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.url()).unwrap();
        let patient = redis::AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        client.get_multiplexed_async_connection_with_config(&patient).await.unwrap()
    }

    pub(crate) async fn empty(&self) {
        ask::<()>(&mut self.connect().await, redis::cmd("FLUSHALL").arg("SYNC")).await;
    }

    pub(crate) async fn spent(&self) -> Spent {
        let mut connection = self.connect().await;
        let cpu: String = ask(&mut connection, redis::cmd("INFO").arg("cpu")).await;
        let stats: String = ask(&mut connection, redis::cmd("INFO").arg("commandstats")).await;
        let seconds = |name: &str| after(&cpu, name).parse::<f64>().unwrap();
        let scripts = after(&stats, "cmdstat_evalsha:");
        let of = |name: &str| {
            let field = scripts.split(',').find_map(|field| field.strip_prefix(name));
            field.map_or(0.0, |number| number.parse().unwrap())
        };
        let main = seconds("used_cpu_user_main_thread:") + seconds("used_cpu_sys_main_thread:");
        Spent { main_us: main * 1e6, script_us: of("usec="), scripts: of("calls=") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn after<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
}

pub(crate) async fn ask<T: FromRedisValue>(connection: &mut MultiplexedConnection, cmd: &Cmd) -> T {
    cmd.query_async(connection).await.unwrap()
}
