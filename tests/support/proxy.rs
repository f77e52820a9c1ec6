//! A TCP proxy in front of a server that does to connections what networks do: it cuts, delays and slows them, holds one direction
//! back, loses one direction for good, and loses the n-th reply.
//!
//! Bytes within a connection are never lost one by one, as TCP loses none: a connection that loses something loses all that
//! follows in that direction, or is cut there.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tokio::sync::watch;

use crate::redis::RedisServer;
use connection::Connection;

mod connection;
mod replies;

/// Where bytes come from and go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the clients to the server: requests.
    Up,
    /// From the server to the clients: replies.
    Down,
}

/// What the proxy does to the bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Way {
    /// How long after their receipt bytes are passed on. Later bytes do not wait for earlier ones.
    delay: Duration,
    /// How many bytes pass in a second, over each connection.
    rate: Option<u64>,
    /// Nothing passes; what waits passes later.
    is_held: bool,
    /// Nothing of the connections with smaller numbers passes any more. They stay open.
    lost_below: u64,
}

/// What the proxy does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Rules {
    up: Way,
    down: Way,
    /// The connections with smaller numbers are closed.
    cut_below: u64,
}

impl Rules {
    fn of(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}

/// What has passed.
#[derive(Debug, Default)]
struct Counts {
    opened: AtomicU64,
    writes: AtomicU64,
    /// How many replies pass before one is lost; 0: none is.
    replies_until_loss: AtomicU64,
}

impl Counts {
    /// A reply begins. Returns whether it is the one to lose.
    fn loses_reply(&self) -> bool {
        let counted = self.replies_until_loss.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        counted == Ok(1)
    }
}

/// A proxy in front of a server on this machine. It lives as long as the process, on a thread of its own.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    rules: Arc<watch::Sender<Rules>>,
    counts: Arc<Counts>,
}

impl Proxy {
    /// Starts a proxy in front of `server`.
    pub fn to(server: &RedisServer) -> Self {
        Self::start(server.port())
    }

    /// Starts a proxy that keeps what a client sends for this long, before it passes it on.
    pub fn slow(server: &RedisServer, latency: Duration) -> Self {
        let proxy = Self::to(server);
        proxy.delay(Direction::Up, latency);
        proxy
    }

    /// Starts a proxy that passes on what the server sends in pieces of this many bytes, ten a second.
    pub fn slow_to(server: &RedisServer, piece: usize) -> Self {
        let proxy = Self::to(server);
        proxy.limit(Direction::Down, Some(piece as u64 * 10));
        proxy
    }

    /// Starts a proxy in front of a port of this machine.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start(to: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let proxy = Self { port, rules: Arc::new(watch::Sender::new(Rules::default())), counts: Arc::default() };
        let (rules, counts) = (Arc::clone(&proxy.rules), Arc::clone(&proxy.counts));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("the system gives a poll").block_on(accept(listener, to, &rules, &counts));
        });
        proxy
    }

    /// Returns the URL of the server behind the proxy.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns the port that clients connect to.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns how often clients have sent something, at 64 KiB each at most: no less than the round trips to the server.
    pub fn writes(&self) -> u64 {
        self.counts.writes.load(SeqCst)
    }

    /// Breaks every open connection silently, as when a router forgets them: they stay open, and nothing that the server sends
    /// arrives. New connections work.
    pub fn fall_silent(&self) {
        let opened = self.counts.opened.load(SeqCst);
        self.change(|rules| rules.down.lost_below = opened);
    }

    /// Closes every open connection. New ones work.
    pub fn cut(&self) {
        let opened = self.counts.opened.load(SeqCst);
        self.change(|rules| rules.cut_below = opened);
    }

    /// From now on, bytes in this direction are passed on so long after their receipt.
    pub fn delay(&self, direction: Direction, delay: Duration) {
        self.change(|rules| rules.of(direction).delay = delay);
    }

    /// From now on, so many bytes a second pass in this direction over each connection, in ten pieces.
    pub fn limit(&self, direction: Direction, rate: Option<u64>) {
        self.change(|rules| rules.of(direction).rate = rate);
    }

    /// From now on nothing passes in this direction, until a [`mend`](Self::mend): then what waited arrives, late.
    pub fn hold(&self, direction: Direction) {
        self.change(|rules| rules.of(direction).is_held = true);
    }

    /// From now on everything in this direction is lost, over new connections too, until a [`mend`](Self::mend). Connections that
    /// lost something lose all that follows.
    pub fn lose(&self, direction: Direction) {
        self.change(|rules| rules.of(direction).lost_below = u64::MAX);
    }

    /// Loses the n-th of the replies that begin from now on, over all connections, and cuts its connection there: the server
    /// executed the request, and its client does not learn of it.
    pub fn lose_reply(&self, n: u64) {
        self.counts.replies_until_loss.store(n, SeqCst);
    }

    /// Ends every delay, limit, hold and loss. What was lost stays lost.
    pub fn mend(&self) {
        self.counts.replies_until_loss.store(0, SeqCst);
        let opened = self.counts.opened.load(SeqCst);
        self.change(|rules| {
            let still_lost = |way: Way| Way { lost_below: way.lost_below.min(opened), ..Way::default() };
            (rules.up, rules.down) = (still_lost(rules.up), still_lost(rules.down));
        });
    }

    fn change(&self, change: impl FnOnce(&mut Rules)) {
        self.rules.send_modify(change);
    }
}

/// Accepts clients. One that comes while the server cannot be reached is closed at once.
async fn accept(listener: TcpListener, to: u16, rules: &watch::Sender<Rules>, counts: &Arc<Counts>) {
    listener.set_nonblocking(true).expect("a socket can be made non-blocking");
    let listener = tokio::net::TcpListener::from_std(listener).expect("this is a runtime");
    let to = SocketAddr::from(([127, 0, 0, 1], to));
    while let Ok((client, _)) = listener.accept().await {
        let (rules, counts) = (rules.subscribe(), Arc::clone(counts));
        tokio::spawn(async move {
            if let Ok(server) = tokio::net::TcpStream::connect(to).await {
                let number = counts.opened.fetch_add(1, SeqCst);
                Connection { number, rules, counts }.pass(client, server).await;
            }
        });
    }
}

#[cfg(test)]
mod tests;
