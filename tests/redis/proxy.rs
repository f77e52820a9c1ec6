//! A proxy whose connections break silently, as when a host is lost or a router forgets a connection: they stay open, and
//! nothing that the server sends arrives. It can also be slow, and counts what passes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::Duration;

use dq_tests::redis::RedisServer;

/// A proxy in front of a server. It lives as long as the test's process.
pub struct Proxy {
    port: u16,
    opened: Arc<AtomicU64>,
    silent_below: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

impl Proxy {
    /// Starts a proxy in front of `server`.
    pub fn to(server: &RedisServer) -> Self {
        Self::start(server, Duration::ZERO, None)
    }

    /// Starts a proxy that keeps what a client sends for this long, before it passes it on.
    pub fn slow(server: &RedisServer, latency: Duration) -> Self {
        Self::start(server, latency, None)
    }

    /// Starts a proxy that passes on what the server sends in pieces of this many bytes, ten a second.
    pub fn slow_to(server: &RedisServer, piece: usize) -> Self {
        Self::start(server, Duration::ZERO, Some(piece))
    }

    fn start(server: &RedisServer, latency: Duration, piece: Option<usize>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (opened, silent_below) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let this = Self { port: listener.local_addr().unwrap().port(), opened, silent_below, writes: Arc::default() };
        let (opened, silent_below, server) = (this.opened.clone(), this.silent_below.clone(), server.port());
        let writes = this.writes.clone();
        spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let (number, silent_below) = (opened.fetch_add(1, SeqCst), silent_below.clone());
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let writes = writes.clone();
                spawn(move || {
                    forward(from, to, None, || {
                        writes.fetch_add(1, SeqCst);
                        sleep(latency);
                        true
                    })
                });
                spawn(move || forward(server, client, piece, || number >= silent_below.load(SeqCst)));
            }
        });
        this
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    /// How often clients have sent something, at 64 KiB each at most: no less than the round trips to the server.
    pub fn writes(&self) -> u64 {
        self.writes.load(SeqCst)
    }

    /// Breaks every open connection; new ones work.
    pub fn fall_silent(&self) {
        self.silent_below.store(self.opened.load(SeqCst), SeqCst);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, piece: Option<usize>, is_open: impl Fn() -> bool) -> Option<()> {
    let mut bytes = vec![0; piece.unwrap_or(1 << 16)];
    let (_never, tick) = channel::<()>();
    loop {
        let read = from.read(&mut bytes).ok().filter(|read| *read > 0)?;
        if is_open() {
            to.write_all(&bytes[..read]).ok()?;
        }
        if read == piece.unwrap_or(usize::MAX) {
            let _ = tick.recv_timeout(Duration::from_millis(100));
        }
    }
}
