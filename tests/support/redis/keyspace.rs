//! Where a test on Redis keeps its jobs: on a server of its own or, if `DQ_REDIS_URL` names a server, under a prefix there.
//!
//! The prefix is that of all its keys and channels and is unique to the test and the run. The keys are removed when the test
//! ends. Others may use the shared server, so a test neither stops nor configures it. The servers of a cluster belong to the run
//! alone, and keep the keys. With `DQ_REDIS_DECLARED` the test's own server is behind a proxy that rejects undeclared keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use dq::environment::StoreClock;
use dq::store::redis::RedisStore;
use redis::Value;

use super::{DeclaredKeys, RedisServer};

/// The variable that names the shared server.
const VARIABLE: &str = "DQ_REDIS_URL";

/// If this variable is set, each server of a test is behind a proxy that rejects undeclared keys.
const DECLARED: &str = "DQ_REDIS_DECLARED";

/// What the URL of a cluster begins with.
const CLUSTER: &str = "redis+cluster://";

/// What the URL of a server behind sentinels begins with.
const SENTINELS: &str = "redis+sentinel://";

/// Removes every key that begins with ARGV[1].
const REMOVE_KEYS: &str = "local at, count = '0', 0
repeat
  local page = redis.call('SCAN', at, 'MATCH', ARGV[1] .. '*', 'COUNT', 1000)
  at = page[1]
  for _, key in ipairs(page[2]) do count = count + redis.call('DEL', key) end
until at == '0'
return count";

/// A prefix on a server of its own or on a shared server. Dropping the value stops the own server, or removes the keys from
/// the shared one.
#[derive(Debug)]
pub struct Keyspace {
    server: Server,
    prefix: String,
}

#[derive(Debug)]
enum Server {
    Own(RedisServer),
    BehindProxy(DeclaredKeys, RedisServer),
    Shared { url: String },
}

/// A connection over which a test sends commands to the server of its keyspace.
pub struct CommandConnection(redis::Connection);

impl std::fmt::Debug for CommandConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CommandConnection")
    }
}

fn connect_to(host: &str) -> redis::Connection {
    let client = redis::Client::open(format!("redis://{host}")).expect("the URL is valid");
    client.get_connection().expect("the server is reachable")
}

/// Connects to the first server of a cluster, to the master that the first sentinel names, or to the server of the URL.
fn connect_over(url: &str) -> redis::Connection {
    if let Some(hosts) = url.strip_prefix(CLUSTER) {
        return connect_to(hosts.split(',').next().unwrap_or(hosts));
    }
    if let Some((hosts, service)) = url.strip_prefix(SENTINELS).and_then(|rest| rest.split_once('/')) {
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(service);
        let mut sentinel = connect_to(hosts.split(',').next().unwrap_or(hosts));
        let (host, port): (String, u16) = ask.query(&mut sentinel).expect("the sentinel knows the master");
        return connect_to(&format!("{host}:{port}"));
    }
    let (server, options) = url.split_once('?').unwrap_or((url, ""));
    let file = |name: &str| {
        let path = options.split('&').find_map(|option| option.strip_prefix(name)?.strip_prefix('='))?;
        Some(std::fs::read(path).expect("the file of the URL can be read"))
    };
    let client = if server.starts_with("rediss://") {
        let client_tls = file("cert").zip(file("key"));
        let client_tls = client_tls.map(|(client_cert, client_key)| redis::ClientTlsConfig { client_cert, client_key });
        redis::Client::build_with_tls(server, redis::TlsCertificates { client_tls, root_cert: file("ca") })
    } else {
        redis::Client::open(server)
    };
    client.and_then(|client| client.get_connection()).expect("the server is reachable")
}

impl CommandConnection {
    /// Sends one command and returns the answer. In a cluster it goes to the server of its key, and so do later ones.
    ///
    /// # Panics
    /// If the server cannot be reached or answers with an error.
    pub fn command(&mut self, words: &[&str]) -> Value {
        let mut cmd = redis::cmd(words[0]);
        cmd.arg(&words[1..]);
        loop {
            match cmd.query(&mut self.0) {
                Err(error) if error.code() == Some("MOVED") => {
                    let (owner, _) = error.redirect_node().expect("it names the server");
                    self.0 = connect_to(owner);
                }
                answer => return answer.expect("the server executes the command"),
            }
        }
    }

    /// Publishes a message on the server that has the key of this name.
    pub fn publish(&mut self, channel: &str, message: &str) {
        self.command(&["EVAL", "return redis.call('PUBLISH', KEYS[1], ARGV[1])", "1", channel, message]);
    }
}

impl Keyspace {
    /// Creates a keyspace, on the server of `DQ_REDIS_URL` if that is set.
    ///
    /// # Panics
    /// If no server starts, or if `DQ_REDIS_URL` is not a `redis://` or `rediss://` URL.
    pub fn create() -> Self {
        match std::env::var(VARIABLE) {
            Ok(url) => Self::on_shared_server(url),
            Err(_) if std::env::var_os(DECLARED).is_some() => {
                let server = RedisServer::start();
                Self { server: Server::BehindProxy(DeclaredKeys::of(&server), server), prefix: "dq:".into() }
            }
            Err(_) => Self { server: Server::Own(RedisServer::start()), prefix: "dq:".into() },
        }
    }

    /// Creates a keyspace on the server at `url`.
    pub fn on_shared_server(url: String) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is after 1970");
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("dq-test:{:x}-{:x}-{number}:", since.as_micros(), std::process::id());
        Self { server: Server::Shared { url }, prefix }
    }

    /// Returns a store in this keyspace, under the server's clock.
    pub fn store(&self) -> RedisStore {
        RedisStore::apart(&self.url(), &self.prefix, None).expect("the URL is valid")
    }

    /// Returns a store in this keyspace, under a clock of the test.
    pub fn store_under(&self, clock: Arc<dyn StoreClock>) -> RedisStore {
        RedisStore::apart(&self.url(), &self.prefix, Some(clock)).expect("the URL is valid")
    }

    /// Returns the keyspace as text for another process, which reads it with [`store_at`](Self::store_at).
    pub fn address(&self) -> String {
        format!("{} {}", self.prefix, self.url())
    }

    /// Returns a store in the keyspace at this address.
    pub fn store_at(address: &str) -> RedisStore {
        let (prefix, url) = address.split_once(' ').expect("a prefix and a URL");
        RedisStore::apart(url, prefix, None).expect("the URL is valid")
    }

    fn url(&self) -> String {
        match &self.server {
            Server::Own(server) => server.url(),
            Server::BehindProxy(proxy, _) => proxy.url(),
            Server::Shared { url } => url.clone(),
        }
    }

    /// Returns the server of this keyspace.
    ///
    /// # Panics
    /// If the server is shared.
    pub fn server(&self) -> &RedisServer {
        match &self.server {
            Server::Own(server) | Server::BehindProxy(_, server) => server,
            Server::Shared { .. } => panic!("the server of {VARIABLE} is not this test's own"),
        }
    }

    /// Returns the name of a key or channel of a topic.
    pub fn key(&self, topic: impl std::fmt::Display, what: &str) -> String {
        format!("{}{{{topic}}}:{what}", self.prefix)
    }

    /// Makes the scripts of this store known to the servers.
    ///
    /// # Panics
    /// If a server cannot be reached.
    pub fn load(&self, store: &RedisStore) {
        for mut connection in self.connections() {
            store.scripts().for_each(|script| drop(connection.command(&["SCRIPT", "LOAD", script])));
        }
    }

    /// Connects to each server that the URL names.
    fn connections(&self) -> Vec<CommandConnection> {
        match self.url().strip_prefix(CLUSTER) {
            Some(hosts) => hosts.split(',').map(|host| CommandConnection(connect_to(host))).collect(),
            None => vec![self.connect()],
        }
    }

    /// Names topics of this app so that each server has one.
    pub fn topics_of_all_servers(&self, app: &str) -> Vec<String> {
        let has = |connection: &mut CommandConnection, topic: &String| {
            let mut ask = redis::cmd("EXISTS");
            ask.arg(self.key(topic, "wake"));
            ask.query::<()>(&mut connection.0).is_ok()
        };
        let topic_on = |mut connection| {
            let mut topics = (0..).map(|n| format!("{app}:{app}-{n}"));
            topics.find(|topic| has(&mut connection, topic)).expect("one of the names has a slot of each server")
        };
        self.connections().into_iter().map(topic_on).collect()
    }

    /// Connects to the server.
    ///
    /// # Panics
    /// If the server cannot be reached or rejects the user of the URL.
    pub fn connect(&self) -> CommandConnection {
        CommandConnection(connect_over(&self.url()))
    }
}

impl Drop for Keyspace {
    fn drop(&mut self) {
        let is_shared = matches!(&self.server, Server::Shared { url } if !url.starts_with(CLUSTER));
        if is_shared && !std::thread::panicking() {
            self.connect().command(&["EVAL", REMOVE_KEYS, "0", &self.prefix]);
        }
    }
}
