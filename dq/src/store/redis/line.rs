//! One line, for those who send over it, and the requests on their way to its task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use redis::Value;
use tokio::runtime::Id;
use tokio::sync::{mpsc, oneshot};

use super::connect::Connector;
use super::errors::not_sent;
use super::scripts::ScriptCall;
use super::stream::LastByte;
use crate::store::StoreError;

/// Lines that anybody may take.
pub(super) type Pool = Mutex<Vec<Arc<Line>>>;

/// One line, for those who send over it: its pool, and each user with requests in flight. It closes when the last of them is gone.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) queue: mpsc::UnboundedSender<QueuedCall>,
    /// Where its task runs.
    pub(super) runtime: Id,
    pub(super) refusal: LineRefusal,
    pub(super) last_byte: LastByte,
    pub(super) pool: Weak<Pool>,
    pub(super) connector: Arc<Connector>,
}

/// Why nothing leaves over a line any more, once its connection broke or could not be made. It outlives the line.
pub(super) type LineRefusal = Arc<OnceLock<StoreError>>;

impl Line {
    /// Whether a line in the pool has no user.
    pub(super) fn is_free(this: &Arc<Self>) -> bool {
        Arc::strong_count(this) == 1
    }

    /// Nothing new goes over this line. Its server may be no master any more.
    pub(super) fn retire(&self) {
        leave(&self.pool, &self.refusal, |_| true);
        self.connector.doubt();
    }
}

/// Takes the line of this refusal out of its pool, if this is so.
pub(super) fn leave(pool: &Weak<Pool>, refusal: &LineRefusal, is_so: fn(&Arc<Line>) -> bool) {
    let Some(pool) = pool.upgrade() else { return };
    let is_this = |line: &mut Arc<Line>| Arc::ptr_eq(&line.refusal, refusal) && is_so(line);
    let gone: Vec<_> = pool.lock().unwrap_or_else(PoisonError::into_inner).extract_if(.., is_this).collect();
    // Not under the lock: the last user of a line drops what waits in its queue.
    drop(gone);
}

/// The use of a line by one user. Each of its requests has it from its sending to its answer, and the last one ends it.
#[derive(Debug)]
pub(super) struct LineUse {
    pub(super) line: Arc<Line>,
    pub(super) is_given_up: AtomicBool,
    /// Set once its first request leaves, or once it is taken back and none ever will.
    pub(super) is_taken_back: OnceLock<bool>,
}

impl LineUse {
    /// Whether a request may leave now: nobody has given it up. Nothing is taken back any more then.
    pub(super) fn may_send(&self) -> bool {
        !self.is_taken_back.get_or_init(|| false) && !self.is_given_up.load(Ordering::Acquire)
    }

    pub(super) fn is_taken_back(&self) -> bool {
        self.is_taken_back.get() == Some(&true)
    }
}

/// A call on its way to the server.
#[derive(Debug)]
pub(super) struct QueuedCall {
    pub(super) call: ScriptCall,
    pub(super) reply: oneshot::Sender<Result<Value, StoreError>>,
    /// Comes after `reply`: the answer is there before the use ends.
    pub(super) line_use: Arc<LineUse>,
}

impl QueuedCall {
    /// Answers a call that was not sent.
    pub(super) fn refuse(self, error: &StoreError) {
        let operation = self.call.step.name();
        // The caller may have stopped waiting.
        drop(self.reply.send(Err(not_sent(operation, error))));
    }
}

/// Why a connection is missing that took longer than its caller waits. A firewall that drops packets is the usual cause.
pub(super) const TOO_SLOW: &str = "no connection was made in time (are host and port in the URL right, is it the TLS port if and \
                                   only if the URL begins with rediss://, and does a firewall let this program through?)";
