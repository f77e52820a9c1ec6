//! A throw-away Redis or Valkey server on a free port of 127.0.0.1, with a folder of its own.
//!
//! The program is `redis-server`, or the one that `DQ_REDIS_SERVER` names. `DQ_REDIS_TLS_SERVER` names another one for servers with TLS, where
//! the first was built without. The server is ready when its log says so. Only its process handle stops it, never a process name or id.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

mod cluster;
mod declared;
mod keyspace;
mod sentinel;

pub use cluster::{ClusterServers, SlotMove};
pub use declared::DeclaredKeys;
pub use keyspace::{CommandConnection, Keyspace};
pub use sentinel::SentinelServers;

/// How many ports to try: another program may take a free port before the server does.
const TRIES: usize = 10;

/// The ports that servers listen on, below the ports that the system gives to clients (from 32768 on Linux, 49152 elsewhere).
const PORTS: Range<u64> = 10_000..32_000;

/// A running server. Dropping the value kills the server and removes its folder.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    port: u16,
    folder: PathBuf,
    settings: Vec<String>,
    /// Kept open, so that the server can go on writing its log.
    _log: ChildStdout,
}

impl RedisServer {
    /// Starts a server that keeps nothing on disk.
    pub fn start() -> Self {
        Self::start_with(&["--save", "", "--appendonly", "no"])
    }

    /// Starts a server with these settings. With a certificate among them its port accepts TLS only, unless they name another port for TLS.
    pub fn start_with(settings: &[&str]) -> Self {
        let folder = new_folder();
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut said = String::new();
        for _ in 0..TRIES {
            let port = free_port();
            match launch(port, &folder, &settings) {
                Ok((child, log)) => return Self { child, port, folder, settings, _log: log },
                Err(why) => said = why,
            }
        }
        panic!("no server starts (tests/run installs redis-server; DQ_REDIS_SERVER names another). {said}");
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns its URL for a user, given as `NAME:PASSWORD`.
    pub fn url_for(&self, user: &str) -> String {
        format!("redis://{user}@127.0.0.1:{}/", self.port)
    }

    /// Returns the port of the server.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the process id of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server and starts it again on the same port, with the data it had on disk.
    pub fn restart(&mut self) {
        self.kill();
        let (child, log) = launch(self.port, &self.folder, &self.settings).expect("the port is free again");
        (self.child, self._log) = (child, log);
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server is our child");
        self.child.wait().expect("the server is our child");
    }

    /// Pauses the server (SIGSTOP): its connections stay open, and nothing is answered.
    #[cfg(unix)]
    pub fn pause(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// Resumes the server after a [`pause`](Self::pause).
    #[cfg(unix)]
    pub fn go_on(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.expect("the server is running"), signal).expect("the server is our child");
    }

    /// Makes snapshots fail, so that the server refuses writes until one succeeds.
    pub fn break_snapshots(&self) {
        std::fs::create_dir_all(self.folder.join("dump.rdb/in-the-way")).expect("the folder can be created");
        let before = self.command(&["INFO", "persistence"]);
        assert!(before.contains("rdb_last_bgsave_status:ok"), "{before}");
        self.command(&["BGSAVE"]);
        while !self.command(&["INFO", "persistence"]).contains("rdb_last_bgsave_status:err") {}
    }

    /// Sends one command and returns the raw answer without its last line end.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub fn command(&self, words: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server is reachable");
        ask(&mut stream, words)
    }

    /// Opens a connection for [`ask`].
    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).expect("the server is reachable")
    }

    /// Returns the number of changes to its data since the last snapshot.
    pub fn changes(&self) -> u64 {
        let info = self.command(&["INFO", "persistence"]);
        let line = info.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
        line.and_then(|count| count.trim().parse().ok()).expect("the server counts its changes")
    }

    /// Returns how often the server has executed each command, in scripts and outside, since it started.
    pub fn calls(&self) -> std::collections::BTreeMap<String, u64> {
        let stats = self.command(&["INFO", "commandstats"]);
        let line = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name.to_lowercase(), rest.split(',').next()?.parse().ok()?))
        };
        stats.lines().filter_map(line).collect()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Makes an empty folder.
fn new_folder() -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("dq-redis-{}-{number}", std::process::id()));
    // An earlier process with the same id may have left the folder behind.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder can be created");
    folder
}

/// Returns a free port, a different one for each call.
///
/// The port is outside the range that the system assigns to clients. Otherwise a client that keeps connecting to a stopped
/// server could be assigned the server's own port: it would connect to itself, or block the port for the restart.
fn free_port() -> u16 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let first = u64::from(std::process::id()) * 101;
    loop {
        let place = (first + NEXT.fetch_add(1, Ordering::Relaxed)) % (PORTS.end - PORTS.start);
        let port = u16::try_from(PORTS.start + place).expect("the number is below 65536");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A free port of a server of a cluster, which also listens 10,000 above it. The system assigns that port to no client either.
fn free_port_of_a_cluster() -> u16 {
    loop {
        let port = free_port();
        let above = port + 10_000;
        if PORTS.contains(&u64::from(above)) && TcpListener::bind(("127.0.0.1", above)).is_ok() {
            return port;
        }
    }
}

/// The program for a server with TLS, or without.
fn program(with_tls: bool) -> String {
    let named = with_tls.then(|| std::env::var("DQ_REDIS_TLS_SERVER").ok()).flatten();
    named.or_else(|| std::env::var("DQ_REDIS_SERVER").ok()).unwrap_or_else(|| "redis-server".into())
}

/// Starts a server, and returns what it said if it does not accept connections.
fn launch(port: u16, folder: &PathBuf, settings: &[String]) -> Result<(Child, ChildStdout), String> {
    let port = port.to_string();
    let has = |name: &str| settings.iter().any(|setting| setting == name);
    let program = program(has("--tls-cert-file"));
    let ports = match has("--tls-cert-file") && !has("--tls-port") {
        true => vec!["--port", "0", "--tls-port", &port],
        false => vec!["--port", &port],
    };
    let mut child = Command::new(&program)
        .args(ports)
        .args(["--bind", "127.0.0.1", "--dir"])
        .arg(folder)
        .args(settings)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let mut log = BufReader::new(child.stdout.take().expect("it is piped"));
    let (mut said, mut line) = (format!("{program} said:\n"), String::new());
    while log.read_line(&mut line).is_ok_and(|read| read > 0) {
        if line.contains("eady to accept connections") {
            return Ok((child, log.into_inner()));
        }
        said.push_str(&std::mem::take(&mut line));
    }
    child.wait().expect("the server is our child");
    Err(said)
}

/// Sends one command over `stream` and returns the answer: a line, or the contents of a bulk string.
pub fn ask(stream: &mut TcpStream, words: &[impl AsRef<[u8]>]) -> String {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words.iter().map(AsRef::as_ref) {
        request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    stream.write_all(&request).expect("the server accepts the command");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("the server answers");
    let line = line.trim_end().to_owned();
    let Some(length) = line.strip_prefix('$').and_then(|length| length.parse::<usize>().ok()) else { return line };
    let mut text = vec![0; length + 2];
    reader.read_exact(&mut text).expect("the server answers");
    text.truncate(length);
    String::from_utf8_lossy(&text).into_owned()
}
