//! Lines: the shared connections of a store, each of which keeps the order of its requests.
//!
//! What needs order is the requests of one link or one producer (rules 6, 7 and 18), and they need it only while one
//! of them is in flight: once all are answered, the server has executed all. So a link or producer keeps its line while
//! a request of it is in flight, and otherwise takes the line with the fewest requests. A large answer holds up the
//! topics on its own line only, and the number of connections does not grow with the number of topics.
//!
//! A line that a caller gave up is retired: nothing new goes over it, and it closes once nobody waits for an answer
//! over it. A line that was not used for a while closes.

use std::sync::{Arc, PoisonError};

use tokio::runtime::{Handle, Id};
use tokio::sync::mpsc;

use super::confirm::Confirm;
use super::connect::Connector;
use super::exchange::LineTask;
use super::line::{Line, LineState, Pool};

/// The lines of one purpose.
#[derive(Debug)]
pub(super) struct Lines {
    connector: Arc<Connector>,
    confirm: Option<Confirm>,
    most: usize,
    open: Arc<Pool>,
}

impl Lines {
    /// At most `most` lines on each runtime. None is opened yet. With `confirm`, a request is answered once enough replicas have
    /// confirmed it.
    pub(super) fn new(connector: Arc<Connector>, confirm: Option<Confirm>, most: usize) -> Self {
        Self { connector, confirm, most, open: Arc::default() }
    }

    /// The line of the current runtime with the fewest requests in flight: a new one while all are in use and there may be
    /// more. Counts a request that the caller is about to send.
    pub(super) fn take(&self) -> Arc<Line> {
        let here = Handle::current().id();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropping a line may drop a request, which must not happen under this lock.
        let broken: Vec<_> = open.extract_if(.., |line| line.state.is_broken()).collect();
        let lines = open.iter().filter(|line| line.runtime == here);
        let count = lines.clone().count();
        let line = match lines.min_by_key(|line| line.state.in_flight()) {
            Some(line) if line.state.in_flight() == 0 || count >= self.most => Arc::clone(line),
            _ => {
                let line = self.open_line(here);
                open.push(Arc::clone(&line));
                line
            }
        };
        line.state.began();
        drop(open);
        drop(broken);
        line
    }

    fn open_line(&self, runtime: Id) -> Arc<Line> {
        let (queue, requests) = mpsc::unbounded_channel();
        let state = Arc::<LineState>::default();
        let task = LineTask { state: Arc::clone(&state), pool: Arc::downgrade(&self.open) };
        super::spawn(task.run(Arc::clone(&self.connector), self.confirm, requests));
        let (pool, connector) = (Arc::downgrade(&self.open), Arc::clone(&self.connector));
        Arc::new(Line { queue, runtime, state, pool, connector })
    }
}
