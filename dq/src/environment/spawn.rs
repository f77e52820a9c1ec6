//! The runtimes of tasks: links, leases and timeouts run on dq's own thread, handlers on the user's runtime.

use std::any::Any;
use std::fmt;

use futures_util::future::BoxFuture;
use tokio::runtime::{Handle, Id};
use tokio::sync::oneshot;

/// A running task. Dropping this does not stop the task.
pub use tokio::task::AbortHandle as Task;

/// The text of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no message)").into()
}

/// One of the two runtimes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// dq's own runtime, for everything that must go on while a handler blocks its thread.
    Own,
    /// The user's runtime, for handlers.
    Handler,
}

/// Starts tasks. dq starts every task through this trait.
pub trait Spawn: fmt::Debug + Send + Sync + 'static {
    /// Starts a task.
    fn spawn(&self, runtime: Runtime, task: BoxFuture<'static, ()>) -> Task;

    /// The runtime of handlers, if it has several threads, timers and sockets, and is not dq's own. Callers usually run there too, so a task there
    /// exchanges messages with them without waking another thread. But it may stop at any time, because handlers block its
    /// threads or because its runtime ends.
    fn shared(&self) -> Option<Id> {
        None
    }

    /// Starts many tasks at once.
    fn spawn_all(&self, runtime: Runtime, tasks: Vec<BoxFuture<'static, ()>>) {
        for task in tasks {
            self.spawn(runtime, task);
        }
    }
}

/// Starts tasks on two tokio runtimes, which may be the same.
#[derive(Debug)]
pub struct SpawnOn {
    pub(super) own: Handle,
    pub(super) handlers: Handle,
    pub(super) shared: Option<Id>,
    /// Ends the thread of `own` once it is dropped, if dq has started it.
    pub(super) _stop: Option<oneshot::Sender<()>>,
}

impl SpawnOn {
    /// Starts tasks on the runtimes of [`Runtime::Own`] and [`Runtime::Handler`].
    pub const fn new(own: Handle, handlers: Handle) -> Self {
        Self { own, handlers, shared: None, _stop: None }
    }
}

impl Spawn for SpawnOn {
    fn shared(&self) -> Option<Id> {
        self.shared
    }

    fn spawn(&self, runtime: Runtime, task: BoxFuture<'static, ()>) -> Task {
        let handle = match runtime {
            Runtime::Own => &self.own,
            Runtime::Handler => &self.handlers,
        };
        handle.spawn(task).abort_handle()
    }

    /// Sends one task to the runtime, which starts the others there: starting a task from another runtime wakes a
    /// thread, starting it on its own does not.
    fn spawn_all(&self, runtime: Runtime, tasks: Vec<BoxFuture<'static, ()>>) {
        self.spawn(
            runtime,
            Box::pin(async move {
                for task in tasks {
                    tokio::spawn(task);
                }
            }),
        );
    }
}
