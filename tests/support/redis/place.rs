//! Where a test on Redis keeps its jobs: on a server of its own, or, where `DQ_REDIS_URL` names one, in a corner of that.
//!
//! A corner is a prefix of keys and channels that no other test has, in no other run; it is swept when the test is over.
//! The server is shared with whoever else uses it, so a test in a corner neither stops nor configures it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use dq::store::redis::RedisStore;
use redis::{ConnectionLike, Value};

use super::RedisServer;

/// What names the shared server.
const VARIABLE: &str = "DQ_REDIS_URL";

/// Removes every key that begins with ARGV[1].
const SWEEP: &str = "local at, count = '0', 0
repeat
  local page = redis.call('SCAN', at, 'MATCH', ARGV[1] .. '*', 'COUNT', 1000)
  at = page[1]
  for _, key in ipairs(page[2]) do count = count + redis.call('DEL', key) end
until at == '0'
return count";

/// See the module.
#[derive(Debug)]
pub struct Place {
    server: Server,
    prefix: String,
}

#[derive(Debug)]
enum Server {
    Own(RedisServer),
    Shared { url: String },
}

/// A connection to tell the server of a place something.
pub struct Teller(redis::Connection);

impl std::fmt::Debug for Teller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Teller")
    }
}

impl Teller {
    /// Sends one command and gives the answer.
    ///
    /// # Panics
    /// When the server does not do it.
    pub fn tell(&mut self, words: &[&str]) -> Value {
        let mut cmd = redis::cmd(words[0]);
        cmd.arg(&words[1..]);
        self.0.req_command(&cmd).expect("the server does it")
    }
}

impl Place {
    /// A new one.
    ///
    /// # Panics
    /// When `DQ_REDIS_URL` is no `redis://` or `rediss://` URL.
    pub fn find() -> Self {
        match std::env::var(VARIABLE) {
            Ok(url) => Self::corner(url),
            Err(_) => Self { server: Server::Own(RedisServer::start()), prefix: "dq:".into() },
        }
    }

    /// A corner of the server that has this URL.
    pub fn corner(url: String) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("dq-test:{:x}-{:x}-{number}:", since.as_micros(), std::process::id());
        Self { server: Server::Shared { url }, prefix }
    }

    /// A store here, under the server's clock.
    pub fn store(&self) -> RedisStore {
        RedisStore::apart(&self.url(), &self.prefix, None).expect("the URL is valid")
    }

    /// A store here, under the clock that [`set_clock`](Self::set_clock) moves.
    pub fn store_under_test_clock(&self) -> RedisStore {
        RedisStore::apart(&self.url(), &self.prefix, Some(&self.clock())).expect("the URL is valid")
    }

    /// The place in one text, for another process: [`store_at`](Self::store_at) reads it.
    pub fn address(&self) -> String {
        format!("{} {}", self.prefix, self.url())
    }

    /// A store in the place that has this address.
    pub fn store_at(address: &str) -> RedisStore {
        let (prefix, url) = address.split_once(' ').expect("a prefix and a URL");
        RedisStore::apart(url, prefix, None).expect("the URL is valid")
    }

    fn url(&self) -> String {
        match &self.server {
            Server::Own(server) => server.url(),
            Server::Shared { url } => url.clone(),
        }
    }

    /// The server, which is this place's own.
    ///
    /// # Panics
    /// When the server is shared.
    pub fn server(&self) -> &RedisServer {
        match &self.server {
            Server::Own(server) => server,
            Server::Shared { .. } => panic!("the server of {VARIABLE} is not this test's own"),
        }
    }

    /// The key that stands in for the server's clock.
    pub fn clock(&self) -> String {
        format!("{}clock", self.prefix)
    }

    /// The name of a key or channel of a topic.
    pub fn key(&self, topic: impl std::fmt::Display, what: &str) -> String {
        format!("{}{{{topic}}}:{what}", self.prefix)
    }

    /// A connection to the server.
    ///
    /// # Panics
    /// When it cannot be reached, or does not let the user of the URL in.
    pub fn connect(&self) -> Teller {
        Teller(self.store().connection().expect("the server is there"))
    }

    /// Moves the clock of the store that is under a test clock.
    pub fn set_clock(&self, connection: &mut Teller, micros: u64) {
        let (seconds, rest) = ((micros / 1_000_000).to_string(), (micros % 1_000_000).to_string());
        connection.tell(&["HSET", &self.clock(), "seconds", &seconds, "micros", &rest]);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if matches!(self.server, Server::Shared { .. }) && !std::thread::panicking() {
            self.connect().tell(&["EVAL", SWEEP, "0", &self.prefix]);
        }
    }
}
