//! dq's own thread: a runtime that no handler can block.

use std::fmt;
use std::io;

use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::spawn::{Runtime, Spawn, SpawnOn, Task};

/// Starts link tasks on a thread of its own and handlers on the runtime it was made in.
///
/// The thread ends when this is dropped; its tasks are dropped with it.
pub struct OwnThread {
    runtimes: SpawnOn,
    _stop: oneshot::Sender<()>,
}

impl OwnThread {
    /// Starts the thread. Handlers will run on the current runtime.
    ///
    /// # Errors
    /// When the operating system gives no thread or no event queue.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start() -> io::Result<Self> {
        let handler = Handle::current();
        let runtime = Builder::new_current_thread().enable_all().thread_name("dq").build()?;
        let link = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("dq".into()).spawn(move || {
            // Ends with an error when the sender is dropped, which is the signal.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        Ok(Self { runtimes: SpawnOn { link, handler }, _stop: stop })
    }
}

impl Spawn for OwnThread {
    fn spawn(&self, place: Runtime, task: BoxFuture<'static, ()>) -> Task {
        self.runtimes.spawn(place, task)
    }

    fn spawn_all(&self, place: Runtime, tasks: Vec<BoxFuture<'static, ()>>) {
        self.runtimes.spawn_all(place, tasks);
    }
}

impl fmt::Debug for OwnThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnThread").finish_non_exhaustive()
    }
}
