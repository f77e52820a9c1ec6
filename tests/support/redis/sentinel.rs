//! A master with replicas, and three sentinels that watch it, on free ports of 127.0.0.1.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::{RedisServer, TRIES, ask, free_port, new_folder};

/// The name that the sentinels give their master.
const SERVICE: &str = "shop";

/// Servers and their sentinels. Dropping the value kills all of them.
#[derive(Debug)]
pub struct SentinelServers {
    servers: Vec<RedisServer>,
    sentinels: Vec<Sentinel>,
}

#[derive(Debug)]
struct Sentinel {
    child: Child,
    port: u16,
    folder: PathBuf,
    /// Kept open, so that the sentinel can go on writing its log.
    _log: ChildStdout,
}

impl SentinelServers {
    /// Starts them with two replicas. A master that is silent for a second is down.
    pub fn start() -> Self {
        Self::start_with(2, 1_000)
    }

    /// Starts them, and waits until each sentinel knows the replicas and the other sentinels. A master that is silent for `down_after` ms is
    /// down.
    pub fn start_with(replicas: usize, down_after: u64) -> Self {
        let in_memory = ["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"];
        let master = RedisServer::start_with(&in_memory);
        let port = master.port().to_string();
        let replica = || RedisServer::start_with(&[&in_memory[..], &["--replicaof", "127.0.0.1", &port]].concat());
        let servers = (0..replicas).map(|_| replica()).chain([master]).collect();
        let sentinels = (0..3).map(|_| Sentinel::start(&port, down_after)).collect();
        let this = Self { servers, sentinels };
        let all = format!("slaves={replicas},sentinels=3");
        this.sentinels.iter().for_each(|sentinel| while !sentinel.info().contains(&all) {});
        this
    }

    /// The URL of the sentinels.
    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("redis+sentinel://{}/{SERVICE}", hosts.join(","))
    }

    /// The server that all sentinels call the master, once they agree.
    pub fn master(&mut self) -> &mut RedisServer {
        loop {
            let named: Vec<_> = self.sentinels.iter().filter_map(Sentinel::master).collect();
            let is_named = |server: &RedisServer| named.iter().filter(|port| **port == server.port()).count() == 3;
            if let Some(place) = self.servers.iter().position(is_named) {
                return &mut self.servers[place];
            }
        }
    }
}

impl SentinelServers {
    /// Kills sentinels, the last ones of the URL first.
    pub fn kill_sentinels(&mut self, count: usize) {
        for sentinel in self.sentinels.iter_mut().rev().take(count) {
            let _ = sentinel.child.kill();
            let _ = sentinel.child.wait();
        }
    }

    /// The server that the first sentinel calls the master.
    pub fn known_master(&self) -> &RedisServer {
        let named = self.sentinels[0].master();
        self.servers.iter().find(|server| Some(server.port()) == named).expect("it is one of them")
    }

    /// Kills the master, and starts it again as a replica once the sentinels agree on another one.
    pub fn fail_over(&mut self) {
        let mut events = TcpStream::connect(("127.0.0.1", self.sentinels[0].port)).expect("the sentinel is reachable");
        ask(&mut events, &["SUBSCRIBE", "+switch-master"]);
        let killed = self.master();
        let port = killed.port();
        killed.kill();
        // The message ends with the address of the next master.
        let mut lines = BufReader::new(events).lines().map(|line| line.expect("the sentinel lives"));
        let told = lines.find(|line| line.starts_with(SERVICE)).expect("the sentinel goes on");
        let next = told.rsplit(' ').next().expect("it is a port").to_owned();
        let killed = self.servers.iter_mut().find(|server| server.port() == port).expect("it is one of them");
        killed.restart();
        killed.command(&["REPLICAOF", "127.0.0.1", &next]);
    }
}

impl Sentinel {
    fn start(master: &str, down_after: u64) -> Self {
        for _ in 0..TRIES {
            let (port, folder) = (free_port(), new_folder());
            let settings = format!(
                "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {SERVICE} 127.0.0.1 {master} 2\nsentinel down-after-milliseconds \
                 {SERVICE} {down_after}\nsentinel failover-timeout {SERVICE} 5000\n",
                folder.display()
            );
            let file = folder.join("sentinel.conf");
            std::fs::write(&file, settings).expect("the folder can be written");
            let program = std::env::var("DQ_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
            let command =
                Command::new(program).arg(file).arg("--sentinel").stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
            let mut child = command.expect("redis-server is installed (tests/run installs it)");
            let mut log = BufReader::new(child.stdout.take().expect("it is piped"));
            let mut line = String::new();
            while log.read_line(&mut line).is_ok_and(|read| read > 0) {
                if line.contains("+monitor master") {
                    return Self { child, port, folder, _log: log.into_inner() };
                }
                line.clear();
            }
            child.wait().expect("the sentinel is our child");
        }
        panic!("no sentinel starts: is its port free?");
    }

    fn info(&self) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the sentinel is reachable");
        ask(&mut stream, &["INFO", "sentinel"])
    }

    /// The port of the master.
    fn master(&self) -> Option<u16> {
        self.info().split_once("address=127.0.0.1:")?.1.split(',').next()?.parse().ok()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
