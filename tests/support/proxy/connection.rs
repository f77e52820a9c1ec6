//! One connection of a client, passed on to the server and back under the rules of the moment.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::replies::Replies;
use super::{Counts, Direction, Rules, Way};

/// The bytes that are read at once.
const PIECE: usize = 1 << 16;

/// How many pieces of a direction may wait in the proxy. Behind them the sender's own buffers fill.
const WAITING: usize = 256;

/// The pieces in which a limited direction passes its bytes, each second.
const PIECES_A_SECOND: u64 = 10;

/// Bytes, and when they were received.
type Piece = (Instant, Vec<u8>);

/// A connection by its number, counted from 0.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) rules: watch::Receiver<Rules>,
    pub(super) counts: Arc<Counts>,
}

impl Connection {
    /// Passes bytes in both directions until one side closes the connection, or the proxy cuts it.
    pub(super) async fn pass(self, client: TcpStream, server: TcpStream) {
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::select! {
            biased;
            () = self.clone().until_cut() => {}
            _ = self.pass_on(Direction::Up, from_client, to_server) => {}
            _ = self.pass_on(Direction::Down, from_server, to_client) => {}
        }
    }

    /// Passes on what comes from one side, until that side is closed and all has been passed, or the other side is closed.
    async fn pass_on(&self, direction: Direction, from: OwnedReadHalf, to: OwnedWriteHalf) -> Option<()> {
        let (received, waiting) = mpsc::channel(WAITING);
        let receive = async { Ok(self.receive(direction, from, received).await) };
        let send = async { self.send(direction, waiting, to).await.ok_or(()) };
        tokio::try_join!(receive, send).ok().map(drop)
    }

    async fn until_cut(mut self) {
        let number = self.number;
        // The proxy lives as long as the process, so an error can only mean the end of the process.
        let _ = self.rules.wait_for(|rules| number < rules.cut_below).await;
    }

    fn way(&self, direction: Direction) -> Way {
        *self.rules.borrow().clone().of(direction)
    }

    /// Reads what comes from one side. Returns when that side closes, or at the reply that is to be lost.
    async fn receive(&self, direction: Direction, mut from: OwnedReadHalf, to: mpsc::Sender<Piece>) -> Option<()> {
        let (mut bytes, mut replies) = (vec![0; PIECE], Replies::default());
        loop {
            let read = from.read(&mut bytes).await.ok().filter(|read| *read > 0)?;
            let mut passed = read;
            match direction {
                Direction::Up => drop(self.counts.writes.fetch_add(1, SeqCst)),
                Direction::Down => passed = replies.read(&bytes[..read], || self.counts.loses_reply()),
            }
            if self.number >= self.way(direction).lost_below {
                to.send((Instant::now(), bytes[..passed].to_vec())).await.ok()?;
            }
            if passed < read {
                return None;
            }
        }
    }

    /// Writes what came from one side to the other, when the rules allow it.
    async fn send(&self, direction: Direction, mut from: mpsc::Receiver<Piece>, mut to: OwnedWriteHalf) -> Option<()> {
        let mut rules = self.rules.clone();
        while let Some((received, bytes)) = from.recv().await {
            let mut at = 0;
            while at < bytes.len() {
                tokio::time::sleep_until(received + self.way(direction).delay).await;
                rules.wait_for(|rules| !rules.clone().of(direction).is_held).await.ok()?;
                let way = self.way(direction);
                if self.number < way.lost_below {
                    break;
                }
                let piece = way.rate.map_or(bytes.len(), |rate| (rate / PIECES_A_SECOND).max(1) as usize);
                let end = bytes.len().min(at + piece);
                to.write_all(&bytes[at..end]).await.ok()?;
                at = end;
                if way.rate.is_some() {
                    tokio::time::sleep_until(Instant::now() + Duration::from_secs(1) / PIECES_A_SECOND as u32).await;
                }
            }
        }
        Some(())
    }
}
