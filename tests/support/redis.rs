//! A throw-away Redis or Valkey server: on a free port of 127.0.0.1, in a folder of its own, gone with its value.
//!
//! It is the program `redis-server`, or the one that `DQ_REDIS_SERVER` names. It is ready when it says so in its log, and
//! is stopped by its process handle, never by a name or a number.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

mod fixture;
mod place;

pub use fixture::RedisFixture;
pub use place::{Place, Teller};

/// How often a port that was free may be taken by somebody else before the server has it.
const TRIES: usize = 10;

/// Where servers listen. Ports for clients begin at 32768 (Linux) or 49152.
const PORTS: Range<u64> = 10_000..32_000;

/// See the module.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    port: u16,
    folder: PathBuf,
    settings: Vec<String>,
    /// Kept open: a server whose log nobody reads must not fail on it.
    _log: ChildStdout,
}

impl RedisServer {
    /// A server that keeps nothing on disk.
    pub fn start() -> Self {
        Self::start_with(&["--save", "", "--appendonly", "no"])
    }

    /// A server with these settings; one with a certificate speaks TLS on its port, and nothing else.
    pub fn start_with(settings: &[&str]) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("dq-redis-{}-{number}", std::process::id()));
        // A process that died may have had the number of this one.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        for _ in 0..TRIES {
            let port = free_port();
            if let Some((child, log)) = launch(port, &folder, &settings) {
                return Self { child, port, folder, settings, _log: log };
            }
        }
        panic!("no redis-server starts: is it installed? (tests/run installs it; DQ_REDIS_SERVER names another)");
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Its URL for a user: `NAME:PASSWORD`.
    pub fn url_for(&self, user: &str) -> String {
        format!("redis://{user}@127.0.0.1:{}/", self.port)
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it and starts it again on the same port, with what it had on disk.
    pub fn restart(&mut self) {
        self.kill();
        let (child, log) = launch(self.port, &self.folder, &self.settings).expect("the port is free again");
        (self.child, self._log) = (child, log);
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is this process's child");
        self.child.wait().expect("it is this process's child");
    }

    /// Stops it where it is (SIGSTOP): its connections stay, and nothing is answered.
    #[cfg(unix)]
    pub fn pause(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// Lets it go on after a [`pause`](Self::pause).
    #[cfg(unix)]
    pub fn go_on(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.expect("it runs"), signal).expect("it is this process's child");
    }

    /// Makes its snapshots fail, so that it takes no writes until one succeeds.
    pub fn break_snapshots(&self) {
        std::fs::create_dir_all(self.folder.join("dump.rdb/in-the-way")).expect("a folder can be made");
        let before = self.command(&["INFO", "persistence"]);
        assert!(before.contains("rdb_last_bgsave_status:ok"), "{before}");
        self.command(&["BGSAVE"]);
        while !self.command(&["INFO", "persistence"]).contains("rdb_last_bgsave_status:err") {}
    }

    /// Sends one command and gives the answer as it came, without the line ends of its last line.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub fn command(&self, words: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server is there");
        ask(&mut stream, words)
    }

    /// A connection for [`ask`].
    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).expect("the server is there")
    }

    /// How many changes were made to its data.
    pub fn changes(&self) -> u64 {
        let info = self.command(&["INFO", "persistence"]);
        let line = info.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
        line.and_then(|count| count.trim().parse().ok()).expect("the server counts its changes")
    }

    /// How often the server executed each command since it started, in scripts and outside.
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

/// A port that nobody listens on, each another one.
///
/// It is none that the system gives away by itself: a client that connects again and again to a port of those may be given
/// the port for its own end, and is connected to itself then, or sits where a server wants to start again.
fn free_port() -> u16 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let first = u64::from(std::process::id()) * 101;
    loop {
        let place = (first + NEXT.fetch_add(1, Ordering::Relaxed)) % (PORTS.end - PORTS.start);
        let port = u16::try_from(PORTS.start + place).expect("it is a port");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn launch(port: u16, folder: &PathBuf, settings: &[String]) -> Option<(Child, ChildStdout)> {
    let program = std::env::var("DQ_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
    let port = port.to_string();
    let ports = match settings.iter().any(|setting| setting == "--tls-cert-file") {
        true => vec!["--port", "0", "--tls-port", &port],
        false => vec!["--port", &port],
    };
    let mut child = Command::new(program)
        .args(ports)
        .args(["--bind", "127.0.0.1", "--dir"])
        .arg(folder)
        .args(settings)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut log = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    while log.read_line(&mut line).is_ok_and(|read| read > 0) {
        if line.contains("eady to accept connections") {
            return Some((child, log.into_inner()));
        }
        line.clear();
    }
    child.wait().ok()?;
    None
}

/// Sends one command over a connection and gives the answer: a line, or the text behind its length.
pub fn ask(stream: &mut TcpStream, words: &[&str]) -> String {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(request.as_bytes()).expect("the server listens");
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
