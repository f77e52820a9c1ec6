//! Lines: the shared connections of a store, each of which keeps the order of its requests.
//!
//! What needs order is the requests of one link or one producer (rules 6, 7 and 18), and they need it only while one
//! of them is in flight: once all are answered, the server has executed all. So a link or producer keeps its line while
//! a request of it is in flight, and otherwise takes the line with the fewest users. A large answer holds up the
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
use super::line::{Line, LineRefusal, Pool};
use super::stream::LastByte;

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

    /// The line of the current runtime with the fewest users: a new one while all are in use and there may be more.
    pub(super) fn take(&self) -> Arc<Line> {
        let here = Handle::current().id();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropping a line may drop a request, which must not happen under this lock.
        let broken: Vec<_> = open.extract_if(.., |line| line.refusal.get().is_some()).collect();
        let lines = open.iter().filter(|line| line.runtime == here);
        let count = lines.clone().count();
        let line = match lines.min_by_key(|line| Arc::strong_count(line)) {
            Some(line) if Line::is_free(line) || count >= self.most => Arc::clone(line),
            _ => {
                let line = self.open_line(here);
                open.push(Arc::clone(&line));
                line
            }
        };
        drop(open);
        drop(broken);
        line
    }

    fn open_line(&self, runtime: Id) -> Arc<Line> {
        let (queue, requests) = mpsc::unbounded_channel();
        let (refusal, last_byte, pool) = (LineRefusal::default(), LastByte::default(), Arc::downgrade(&self.open));
        let task = LineTask {
            refusal: Arc::clone(&refusal),
            last_byte: last_byte.clone(),
            pool: pool.clone(),
            requests,
            is_unused: false,
        };
        super::spawn(task.run(Arc::clone(&self.connector), self.confirm));
        Arc::new(Line { queue, runtime, refusal, last_byte, pool, connector: Arc::clone(&self.connector) })
    }
}
