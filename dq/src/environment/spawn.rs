//! Where tasks run: links, leases and time-outs on a thread of dq's own, handlers on the user's runtime.

use std::fmt;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// Which of the two runtimes of a node a task belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// dq's own: everything that must go on while a handler blocks its thread.
    Own,
    /// The user's: handlers.
    Handler,
}

/// A running task; dropping this lets it run on.
#[derive(Debug)]
pub struct Task(AbortHandle);

impl Task {
    /// The task behind this handle.
    pub const fn new(handle: AbortHandle) -> Self {
        Self(handle)
    }

    /// Drops the task's future at its next `await`.
    pub fn abort(&self) {
        self.0.abort();
    }
}

/// Starts tasks. The one place where dq does so.
pub trait Spawn: fmt::Debug + Send + Sync + 'static {
    /// Starts a task.
    fn spawn(&self, place: Runtime, task: BoxFuture<'static, ()>) -> Task;

    /// Starts many tasks at once.
    fn spawn_all(&self, place: Runtime, tasks: Vec<BoxFuture<'static, ()>>) {
        for task in tasks {
            self.spawn(place, task);
        }
    }
}

/// Starts tasks on tokio runtimes.
#[derive(Debug, Clone)]
pub struct SpawnOn {
    /// The runtime of [`Runtime::Own`].
    pub link: Handle,
    /// The runtime of [`Runtime::Handler`].
    pub handler: Handle,
}

impl Spawn for SpawnOn {
    fn spawn(&self, place: Runtime, task: BoxFuture<'static, ()>) -> Task {
        let runtime = match place {
            Runtime::Own => &self.link,
            Runtime::Handler => &self.handler,
        };
        Task::new(runtime.spawn(task).abort_handle())
    }

    /// One task crosses to the other runtime and starts the rest there: a crossing wakes a thread, a start on the spot
    /// does not.
    fn spawn_all(&self, place: Runtime, tasks: Vec<BoxFuture<'static, ()>>) {
        self.spawn(
            place,
            Box::pin(async move {
                for task in tasks {
                    tokio::spawn(task);
                }
            }),
        );
    }
}
