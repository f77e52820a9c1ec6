//! The signals that ask a program to end.

use std::io;
use std::time::Duration;

/// What the supervisor has told its topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::context) enum StopOrder {
    /// Go on.
    Work,
    /// Stop; handlers may go on until this time of the node's clock.
    Stop {
        /// The end of the grace.
        grace_until: Duration,
    },
}

/// SIGTERM and SIGINT where there are signals; Ctrl-C elsewhere.
pub(super) struct TerminationSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl TerminationSignals {
    /// Listens from now on; the program does not end by these signals any more.
    #[cfg(unix)]
    pub(super) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one; its name.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Listens from now on.
    #[cfg(not(unix))]
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next one; its name.
    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}
