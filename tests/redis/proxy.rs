//! A way to a server that breaks without a word, as when a host is gone or a router forgets a connection: it stays open, and
//! nothing that the server says arrives.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::spawn;

use dq_tests::redis::RedisServer;

/// See the module. It lives as long as the test's process.
pub struct Proxy {
    port: u16,
    opened: Arc<AtomicU64>,
    silent_below: Arc<AtomicU64>,
}

impl Proxy {
    /// A way to this server.
    pub fn to(server: &RedisServer) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (opened, silent_below) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let this = Self { port: listener.local_addr().unwrap().port(), opened, silent_below };
        let (opened, silent_below, server) = (this.opened.clone(), this.silent_below.clone(), server.port());
        spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let (number, silent_below) = (opened.fetch_add(1, SeqCst), silent_below.clone());
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                spawn(move || pass_on(from, to, || true));
                spawn(move || pass_on(server, client, || number >= silent_below.load(SeqCst)));
            }
        });
        this
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Breaks every connection there is; new ones are whole.
    pub fn fall_silent(&self) {
        self.silent_below.store(self.opened.load(SeqCst), SeqCst);
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_received: impl Fn() -> bool) -> Option<()> {
    let mut bytes = [0; 4096];
    loop {
        let read = from.read(&mut bytes).ok().filter(|read| *read > 0)?;
        if is_received() {
            to.write_all(&bytes[..read]).ok()?;
        }
    }
}
