//! dq's own thread: its runtime goes on while handlers block theirs.

use std::io;
use std::panic::catch_unwind;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use super::spawn::SpawnOn;

/// Starts a thread for work that blocks, as a store on a disk has.
///
/// # Errors
/// If the operating system refuses.
pub fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(work)
}

impl SpawnOn {
    /// Starts a thread for dq's own tasks. Handlers will run on the current runtime. Dropping it drops its tasks and ends the thread.
    ///
    /// # Errors
    /// If the operating system cannot start a thread or make an event queue.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn own_thread() -> io::Result<Self> {
        let handlers = Handle::current();
        let is_shared = handlers.runtime_flavor() == RuntimeFlavor::MultiThread && has_drivers();
        let runtime = Builder::new_current_thread().enable_all().thread_name("dq").build()?;
        let own = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("dq".into()).spawn(move || {
            // Dropping the sender ends the wait with an error: that is the signal to stop.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        let shared = is_shared.then(|| handlers.id());
        Ok(Self { own, handlers, shared, _stop: Some(stop) })
    }
}

/// Whether the current runtime has timers and, for the Redis store, sockets: a builder without `enable_all` makes runtimes that
/// have neither. Tokio tells it only by a panic. A program that aborts at a panic must not find out that way.
fn has_drivers() -> bool {
    let use_them = || {
        drop(tokio::time::sleep(Duration::ZERO));
        #[cfg(feature = "redis")]
        drop(
            tokio::net::TcpSocket::new_v4()
                .map(|socket| socket.bind(([127, 0, 0, 1], 0).into()).map(|()| socket.listen(1))),
        );
    };
    cfg!(panic = "unwind") && catch_unwind(use_them).is_ok()
}
