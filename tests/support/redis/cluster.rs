//! A cluster of three masters on free ports of 127.0.0.1, and moves of its slots.

use std::time::{Duration, Instant};

use redis::{Cmd, Connection, FromRedisValue, RedisResult};

use super::{RedisServer, free_port_of_a_cluster};

const MASTERS: usize = 3;
const SLOTS: usize = 16_384;

/// How long the servers may take until each knows what the others have done.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

/// The servers of a cluster: the masters, and behind them a replica of each, if there are any. Dropping the value kills all of
/// them.
#[derive(Debug)]
pub struct ClusterServers {
    pub servers: Vec<RedisServer>,
    /// Of servers that use TLS among themselves: where each listens for it, beside its other port.
    tls_ports: Vec<u16>,
}

/// A slot on its way from one server to another.
#[derive(Debug)]
pub struct SlotMove<'a> {
    cluster: &'a ClusterServers,
    slot: usize,
    from: usize,
    to: usize,
}

fn start(settings: &[&str]) -> RedisServer {
    let in_memory = ["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"];
    let of_a_cluster = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
    let promoted_at_once = ["--cluster-replica-validity-factor", "0"];
    RedisServer::start_with(&[&in_memory[..], &of_a_cluster, &promoted_at_once, settings].concat())
}

fn connect(server: &RedisServer) -> RedisResult<Connection> {
    redis::Client::open(server.url())?.get_connection()
}

fn ask<T: FromRedisValue>(server: &RedisServer, words: &[&str]) -> RedisResult<T> {
    Cmd::new().arg(words).query(&mut connect(server)?)
}

fn asked<T: FromRedisValue>(server: &RedisServer, words: &[&str]) -> T {
    ask(server, words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// The port of the server that this one names for the slot of a key, if it is reachable and the cluster works.
fn named_for(server: &RedisServer, key: &str) -> Option<u16> {
    match ask::<()>(server, &["EXISTS", key]) {
        Ok(()) => Some(server.port()),
        Err(error) => Some(error.redirect_node()?.0.rsplit_once(':')?.1.parse().ok()?),
    }
}

/// Looks until there is something. `otherwise` is the panic after a minute.
fn until<T>(otherwise: &str, look: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < SETTLES_WITHIN, "{otherwise}");
    }
}

impl ClusterServers {
    /// Starts three masters, each with a third of the slots, and waits until each knows all.
    pub fn start() -> Self {
        Self::of((0..MASTERS).map(|_| start(&[])).collect(), Vec::new())
    }

    /// The same over TLS with these settings, among which are the certificate, and `localhost` as the name that each server announces.
    pub fn start_over_tls(settings: &[&str]) -> Self {
        let tls_ports: Vec<_> = (0..MASTERS).map(|_| free_port_of_a_cluster()).collect();
        let start_at =
            |port: &u16| start(&[settings, &["--tls-cluster", "yes", "--tls-port", &port.to_string()]].concat());
        let this = Self::of(tls_ports.iter().map(start_at).collect(), tls_ports);
        let knows_names = |server: &RedisServer| {
            asked::<String>(server, &["CLUSTER", "NODES"]).matches(",localhost").count() == MASTERS
        };
        this.servers.iter().for_each(|server| while !knows_names(server) {});
        this
    }

    /// The same, with a replica of each.
    pub fn start_with_replicas() -> Self {
        let this = Self::of((0..2 * MASTERS).map(|_| start(&[])).collect(), Vec::new());
        for (place, replica) in this.servers[MASTERS..].iter().enumerate() {
            let id = this.id(place);
            while ask::<()>(replica, &["CLUSTER", "REPLICATE", &id]).is_err() {}
            while !replica.command(&["INFO", "replication"]).contains("master_link_status:up") {}
        }
        let count = 2 * MASTERS;
        let is_replicated = |server: &RedisServer| {
            let nodes: String = asked(server, &["CLUSTER", "NODES"]);
            nodes.matches("slave").count() == count - MASTERS
        };
        this.servers.iter().for_each(|server| while !is_replicated(server) {});
        this
    }

    fn of(servers: Vec<RedisServer>, tls_ports: Vec<u16>) -> Self {
        let this = Self { servers, tls_ports };
        let servers = &this.servers;
        for (n, server) in servers.iter().enumerate() {
            asked::<()>(server, &["CLUSTER", "SET-CONFIG-EPOCH", &(n + 1).to_string()]);
            if n < MASTERS {
                let slots: Vec<_> =
                    (0..SLOTS).filter(|slot| slot * MASTERS / SLOTS == n).map(|n| n.to_string()).collect();
                let words: Vec<&str> =
                    ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
                asked::<()>(server, &words);
            }
            asked::<()>(&servers[0], &["CLUSTER", "MEET", "127.0.0.1", &this.port(n).to_string()]);
        }
        let all = format!("cluster_known_nodes:{}\r", servers.len());
        for server in servers {
            let is_ready = |info: &str| info.contains("cluster_state:ok") && info.contains(&all);
            while !is_ready(&server.command(&["CLUSTER", "INFO"])) {}
        }
        this
    }

    /// Where the others reach a server.
    fn port(&self, place: usize) -> u16 {
        self.tls_ports.get(place).copied().unwrap_or_else(|| self.servers[place].port())
    }

    /// The URL of the cluster, which names its first masters.
    pub fn url(&self) -> String {
        let hosts: Vec<_> =
            self.servers[..MASTERS].iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// The URL of a cluster over TLS, which names one server by its name.
    pub fn tls_url(&self) -> String {
        format!("rediss+cluster://localhost:{}", self.tls_ports[0])
    }

    /// The place of the master that has this key, once one has it.
    pub fn owner(&self, key: &str) -> usize {
        until(&format!("no server has the slot of {key}"), || self.serving(key))
    }

    /// Whether all servers name one for this key.
    fn agree(&self, key: &str) -> bool {
        let mut named: Vec<_> = self.servers.iter().map(|server| named_for(server, key)).collect();
        named.dedup();
        matches!(named[..], [Some(_)])
    }

    fn slot(&self, key: &str) -> usize {
        asked(&self.servers[0], &["CLUSTER", "KEYSLOT", key])
    }

    fn id(&self, place: usize) -> String {
        asked(&self.servers[place], &["CLUSTER", "MYID"])
    }

    /// The place of the master that has this key and answers.
    pub fn serving(&self, key: &str) -> Option<usize> {
        self.servers.iter().position(|server| ask::<()>(server, &["EXISTS", key]).is_ok())
    }

    /// The places of the servers that are masters. One that has just started again may take itself for one.
    pub fn masters(&self) -> Vec<usize> {
        (0..self.servers.len()).filter(|place| self.replication(*place).contains("role:master")).collect()
    }

    /// Whether every server is there, each master has a replica with all that it has, and all name one server for this key.
    pub fn is_whole(&self, key: &str) -> bool {
        let is_followed = |place: &usize| self.replication(*place).contains("connected_slaves:1\r");
        let follows = |place: &usize| self.replication(*place).contains("master_link_status:up");
        let masters = self.masters();
        let replicas = (0..self.servers.len()).filter(|place| !masters.contains(place));
        masters.len() == MASTERS
            && masters.iter().all(is_followed)
            && { replicas }.all(|place| follows(&place))
            && self.agree(key)
    }

    /// What a server says of its replication: nothing if it is dead.
    fn replication(&self, place: usize) -> String {
        ask(&self.servers[place], &["INFO", "replication"]).unwrap_or_default()
    }

    /// Waits until a replica of this master, which has the slot of this key, has everything that the master has now.
    pub fn replicate(&self, place: usize, key: &str) {
        let mut master = connect(&self.servers[place]).expect("the server is reachable");
        // WAIT waits for what this connection has written.
        let tag = key.split_inclusive('}').next().unwrap_or(key).trim_start_matches("dq:");
        for words in [&["SET", tag, ""][..], &["DEL", tag]] {
            Cmd::new().arg(words).query::<()>(&mut master).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        }
        while Cmd::new().arg(&["WAIT", "1", "1000"]).query::<u64>(&mut master).expect("it is a number") == 0 {}
    }

    /// Begins to move the slot of this key to another server.
    pub fn begin_to_move(&self, key: &str, to: usize) -> SlotMove<'_> {
        let this = SlotMove { cluster: self, slot: self.slot(key), from: self.owner(key), to };
        this.set_slot(to, "IMPORTING", this.from);
        this.set_slot(this.from, "MIGRATING", to);
        this
    }

    /// Moves the slot of this key to another server: as a whole where the servers can do that, which Valkey 9 can, and otherwise key by key.
    pub fn move_slot(&self, key: &str, to: usize) {
        let (slot, id) = (self.slot(key).to_string(), self.id(to));
        let whole = ["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", &slot, &slot, "NODE", &id];
        if ask::<()>(&self.servers[self.owner(key)], &whole).is_ok() {
            until("the slot has not moved", || (self.serving(key) == Some(to)).then_some(()));
        } else {
            let on_its_way = self.begin_to_move(key, to);
            while on_its_way.move_keys(100) > 0 {}
            on_its_way.finish();
        }
        // Otherwise the next move could give the slot an epoch that is not the highest, and its new master would lose it again.
        until("the servers do not agree which one has the slot", || self.agree(key).then_some(()));
    }
}

impl SlotMove<'_> {
    fn set_slot(&self, at: usize, what: &str, other: usize) {
        let id = self.cluster.id(other);
        asked::<()>(&self.cluster.servers[at], &["CLUSTER", "SETSLOT", &self.slot.to_string(), what, &id]);
    }

    /// Moves at most so many keys. Returns how many it moved.
    pub fn move_keys(&self, most: usize) -> usize {
        let source = &self.cluster.servers[self.from];
        let (slot, most) = (self.slot.to_string(), most.to_string());
        let keys: Vec<String> = asked(source, &["CLUSTER", "GETKEYSINSLOT", &slot, &most]);
        if !keys.is_empty() {
            let port = self.cluster.port(self.to).to_string();
            let to = ["MIGRATE", "127.0.0.1", &port, "", "0", "10000", "KEYS"];
            let words: Vec<&str> = to.into_iter().chain(keys.iter().map(String::as_str)).collect();
            asked::<()>(source, &words);
        }
        keys.len()
    }

    /// Gives the slot to its new server, whose keys have all moved.
    pub fn finish(self) {
        while self.move_keys(100) > 0 {}
        self.set_slot(self.to, "NODE", self.to);
        self.set_slot(self.from, "NODE", self.to);
    }
}
