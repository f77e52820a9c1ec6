//! Lines: the shared connections of a store, each of which keeps the order of its requests.
//!
//! What needs order is the requests of one link or one producer (rules 6, 7 and 18), and they need it only while one
//! of them is in flight: once all are answered, the server has executed all. So a link or producer keeps its line while
//! a request of it is in flight, and otherwise takes the line with the fewest requests. A large answer holds up the
//! topics on its own line only, and the number of connections does not grow with the number of topics.
//!
//! A line that a caller gave up is retired: nothing new goes over it, and it closes once nobody waits for an answer
//! over it. A line that was not used for a while closes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::mpsc;

use super::confirm::Confirm;
use super::connect::Connector;
use super::line::{LineTask, QueuedCall};
use super::scripts::Scripts;
use super::stream::LastByte;
use crate::store::StoreError;

/// The lines of one purpose.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) connector: Arc<Connector>,
    pub(super) scripts: Arc<Scripts>,
    pub(super) confirm: Option<Confirm>,
    most: usize,
    open: Mutex<Vec<Arc<Line>>>,
}

/// One line, for those who send over it. It closes when the last of them is gone.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) queue: mpsc::UnboundedSender<QueuedCall>,
    pub(super) state: Arc<LineState>,
}

/// What is known of a line.
#[derive(Debug)]
pub(super) struct LineState {
    in_flight: AtomicUsize,
    is_broken: AtomicBool,
    /// Why the connection could not be made.
    pub(super) refusal: OnceLock<StoreError>,
    pub(super) last_byte: LastByte,
}

impl LineState {
    fn new() -> Self {
        Self {
            in_flight: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            refusal: OnceLock::new(),
            last_byte: LastByte::now(),
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn began(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// The connection broke, or could not be made.
    pub(super) fn break_off(&self) {
        self.is_broken.store(true, Ordering::Release);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }
}

impl Lines {
    /// At most `most` lines. None is opened yet. With `confirm`, a request is answered once enough replicas have
    /// confirmed it.
    pub(super) fn new(connector: Arc<Connector>, scripts: Arc<Scripts>, confirm: Option<Confirm>, most: usize) -> Self {
        Self { connector, scripts, confirm, most, open: Mutex::default() }
    }

    /// The line with the fewest requests in flight: a new one while all are in use and there may be more. Counts a
    /// request that the caller is about to send. A new line lives on the current runtime.
    pub(super) fn take(self: &Arc<Self>) -> Arc<Line> {
        let mut open = self.lock();
        // Dropping a line may drop a request, which must not happen under this lock.
        let broken: Vec<_> = open.extract_if(.., |line| line.state.is_broken()).collect();
        let idlest = open.iter().min_by_key(|line| line.state.in_flight());
        let line = match idlest {
            Some(line) if line.state.in_flight() == 0 || open.len() >= self.most => Arc::clone(line),
            _ => {
                let line = self.open_line();
                open.push(Arc::clone(&line));
                line
            }
        };
        line.state.began();
        drop(open);
        drop(broken);
        line
    }

    fn open_line(self: &Arc<Self>) -> Arc<Line> {
        let (queue, requests) = mpsc::unbounded_channel();
        let state = Arc::new(LineState::new());
        super::spawn(LineTask { lines: Arc::downgrade(self), state: Arc::clone(&state) }.run(
            Arc::clone(&self.connector),
            Arc::clone(&self.scripts),
            self.confirm,
            requests,
        ));
        Arc::new(Line { queue, state })
    }

    /// Nothing new goes over this line.
    pub(super) fn retire(&self, line: &Arc<Line>) {
        let retired: Vec<_> = self.lock().extract_if(.., |open| Arc::ptr_eq(open, line)).collect();
        drop(retired);
    }

    /// Closes this line if no request of it is in flight.
    pub(super) fn close_if_idle(&self, state: &Arc<LineState>) {
        let is_idle = |line: &mut Arc<Line>| Arc::ptr_eq(&line.state, state) && state.in_flight() == 0;
        let closed: Vec<_> = self.lock().extract_if(.., is_idle).collect();
        drop(closed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Line>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
