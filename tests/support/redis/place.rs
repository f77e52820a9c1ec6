//! Where a test on Redis keeps its jobs: on a server of its own, or, where `DQ_REDIS_URL` names one, in a corner of that.
//!
//! A corner is a prefix of keys and channels that no other test has, in no other run; it is swept when the test is over.
//! The server is shared with whoever else uses it, so a test in a corner neither stops nor configures it.

use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use dq::store::redis::RedisStore;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use super::{RedisServer, ask};

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
    Shared { url: String, info: Box<ConnectionInfo> },
}

impl Place {
    /// A new one.
    ///
    /// # Panics
    /// When `DQ_REDIS_URL` is no `redis://` URL.
    pub fn find() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Ok(url) = std::env::var(VARIABLE) else {
            return Self { server: Server::Own(RedisServer::start()), prefix: "dq:".into() };
        };
        let info = url.as_str().into_connection_info().expect("DQ_REDIS_URL is a URL of a server");
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("dq-test:{:x}-{:x}-{number}:", since.as_micros(), std::process::id());
        Self { server: Server::Shared { url, info: Box::new(info) }, prefix }
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
            Server::Shared { url, .. } => url.clone(),
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

    /// A connection for [`ask`].
    ///
    /// # Panics
    /// When the server cannot be reached, or does not let the user of the URL in.
    pub fn connect(&self) -> TcpStream {
        let info = match &self.server {
            Server::Own(server) => return server.connect(),
            Server::Shared { info, .. } => info,
        };
        let ConnectionAddr::Tcp(host, port) = info.addr() else { panic!("{VARIABLE} begins with redis://") };
        let mut stream = TcpStream::connect((host.as_str(), *port)).expect("the server is there");
        let settings = info.redis_settings();
        if let Some(password) = settings.password() {
            let user = settings.username().unwrap_or("default");
            assert_eq!(ask(&mut stream, &["AUTH", user, password]), "+OK");
        }
        assert_eq!(ask(&mut stream, &["SELECT", &settings.db().to_string()]), "+OK");
        stream
    }

    /// Moves the clock of the store that is under a test clock.
    pub fn set_clock(&self, connection: &mut TcpStream, micros: u64) {
        let (seconds, rest) = ((micros / 1_000_000).to_string(), (micros % 1_000_000).to_string());
        let said = ask(connection, &["HSET", &self.clock(), "seconds", &seconds, "micros", &rest]);
        assert!(said.starts_with(':'), "{said}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if matches!(self.server, Server::Shared { .. }) && !std::thread::panicking() {
            ask(&mut self.connect(), &["EVAL", SWEEP, "0", &self.prefix]);
        }
    }
}
