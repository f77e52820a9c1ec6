//! A server of one benchmark alone, and what it has spent.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue};

use crate::{Arguments, Folder};

/// A running server; it ends with this value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    _log: BufReader<ChildStdout>,
    _folder: Folder,
    port: u16,
}

/// What a server has spent so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// CPU time of its main thread, µs.
    pub main_us: f64,
    /// Time within scripts, µs.
    pub script_us: f64,
    /// Commands of clients, those of this driver left out.
    pub commands: f64,
    /// Calls of commands within scripts.
    pub calls: f64,
}

/// Commands that scripts do not call: clients sent them.
const OF_CLIENTS: [&str; 9] =
    ["eval", "evalsha", "fcall", "hello", "ping", "subscribe", "unsubscribe", "wait", "client"];

/// Commands of this driver.
const OF_DRIVER: [&str; 6] = ["info", "config", "flushall", "slowlog", "script", "memory"];

impl Server {
    /// Starts one on a free port of 127.0.0.1, in memory only unless `--aof` was given.
    ///
    /// # Panics
    /// If the program is missing or ends at once.
    pub fn start(arguments: &Arguments) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = Folder(std::env::temp_dir().join(format!("dq-bench-{}-{port}", std::process::id())));
        std::fs::create_dir_all(&folder.0).unwrap();
        let program = arguments.redis.clone().unwrap_or_else(|| "redis-server".into());
        let append = if arguments.aof { "yes" } else { "no" };
        let mut child = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", append, "--appendfsync", "everysec"])
            .arg("--dir")
            .arg(&folder.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-server is installed, or --redis names one");
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("eady to accept connections") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the server has ended");
        }
        Self { child, _log: log, _folder: folder, port }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// A connection that waits for answers as long as they take.
    pub async fn connect(&self) -> MultiplexedConnection {
        connect(&self.url()).await
    }

    /// Removes all keys.
    pub async fn empty(&self) {
        self.ask::<()>(redis::cmd("FLUSHALL").arg("SYNC")).await;
    }

    /// Sends one command over a connection of its own.
    pub async fn ask<T: FromRedisValue>(&self, cmd: &Cmd) -> T {
        ask(&mut self.connect().await, cmd).await
    }

    /// Its name and version.
    pub async fn version(&self) -> String {
        let info: String = self.ask(redis::cmd("INFO").arg("server")).await;
        let valkey = after(&info, "valkey_version:");
        if valkey.is_empty() { format!("Redis {}", after(&info, "redis_version:")) } else { format!("Valkey {valkey}") }
    }

    /// The memory of its data, bytes.
    pub async fn used_memory(&self) -> u64 {
        let info: String = self.ask(redis::cmd("INFO").arg("memory")).await;
        after(&info, "used_memory:").parse().unwrap()
    }

    /// What it has spent so far.
    pub async fn spent(&self) -> Spent {
        let mut connection = self.connect().await;
        let cpu: String = ask(&mut connection, redis::cmd("INFO").arg("cpu")).await;
        let stats: String = ask(&mut connection, redis::cmd("INFO").arg("commandstats")).await;
        let seconds = |name: &str| after(&cpu, name).parse::<f64>().unwrap();
        let main = seconds("used_cpu_user_main_thread:") + seconds("used_cpu_sys_main_thread:");
        let mut spent = Spent { main_us: main * 1e6, ..Spent::default() };
        for (name, fields) in stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':')) {
            let of = |field: &str| -> f64 {
                fields.split(',').find_map(|it| it.strip_prefix(field)).map_or(0.0, |number| number.parse().unwrap())
            };
            let name = name.split('|').next().unwrap();
            if ["eval", "evalsha", "fcall"].contains(&name) {
                spent.script_us += of("usec=");
            }
            if OF_CLIENTS.contains(&name) {
                spent.commands += of("calls=");
            } else if !OF_DRIVER.contains(&name) {
                spent.calls += of("calls=");
            }
        }
        spent
    }

    /// Forgets the slow scripts so far, and notes those to come that take 100 µs and more.
    pub async fn watch_slow_scripts(&self) {
        for (name, value) in [("slowlog-log-slower-than", "100"), ("slowlog-max-len", "100000")] {
            self.ask::<()>(redis::cmd("CONFIG").arg("SET").arg(name).arg(value)).await;
        }
        self.ask::<()>(redis::cmd("SLOWLOG").arg("RESET")).await;
    }

    /// The longest script since [`watch_slow_scripts`](Self::watch_slow_scripts), µs.
    pub async fn longest_script(&self) -> f64 {
        // Number, time, µs, words (records are no text), client, name of the client.
        type Entry = (u64, u64, f64, Vec<redis::Value>, String, String);
        let log: Vec<Entry> = self.ask(redis::cmd("SLOWLOG").arg("GET").arg(-1)).await;
        let scripts = log.iter().filter(|(_, _, _, words, ..)| words.first().is_some_and(is_script));
        scripts.map(|(_, _, took, ..)| *took).fold(0.0, f64::max)
    }
}

fn is_script(word: &redis::Value) -> bool {
    let redis::Value::BulkString(word) = word else { return false };
    ["eval", "evalsha", "fcall"].iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to `url` that waits for answers as long as they take.
pub async fn connect(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).unwrap();
    let patient = redis::AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    client.get_multiplexed_async_connection_with_config(&patient).await.unwrap()
}

/// Sends one command.
pub async fn ask<T: FromRedisValue>(connection: &mut MultiplexedConnection, cmd: &Cmd) -> T {
    cmd.query_async(connection).await.unwrap()
}

fn after<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
}
