//! Shutdown: a node stops when its handle or a signal of the operating system says so.
//!
//! The stop order goes to every task of the node. `topic/shutdown.rs` has the phases in which a topic follows it.

use std::future::Future;
use std::io;
use std::time::Duration;

use super::handle::Context;
use crate::context::error::Error;
use crate::context::topic::stats::TopicHealth;

/// What a node left behind when it stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Jobs that the node still held: the store did not answer in time, or `crash_rollback` is off. Other nodes reclaim them.
    pub left: usize,
    /// Handlers that were cancelled and have not returned, because they block their thread.
    pub still_running: usize,
}

impl Context {
    /// Stops the node, in this order: claiming ends; jobs that have not started go back at once; handlers go on for at most
    /// `grace`; unfinished handlers are cancelled and their jobs go back without a spent attempt; the last outcomes are sent;
    /// the lease ends. Takes at most about `grace` and 15 s.
    ///
    /// Cancel safe: when the future is dropped, the stop goes on in the background without the rest of the grace.
    pub async fn shutdown(self, grace: Duration) -> Stopped {
        self.running.order_stop(grace);
        self.stopped().await
    }

    /// Runs until SIGTERM or SIGINT (Ctrl-C), then stops as [`shutdown`](Self::shutdown) does, with the `grace` of the
    /// settings. A second signal ends the grace at once.
    ///
    /// # Errors
    /// When the operating system refuses to deliver signals. The node has stopped then.
    pub async fn run_until_signal(self) -> Result<(), Error> {
        self.run_until(std::future::pending::<()>()).await.map(|_| ())
    }

    /// Runs as [`run_until_signal`](Self::run_until_signal) does, and also ends when `work` is done. Returns the output of
    /// `work`, or `None` if a signal came first and `work` was dropped. For a program that ends without a signal, or that
    /// runs more than jobs.
    ///
    /// # Errors
    /// When the operating system refuses to deliver signals. The node has stopped then, and `work` was dropped.
    pub async fn run_until<T>(self, work: impl Future<Output = T>) -> Result<Option<T>, Error> {
        let mut signals = match TerminationSignals::listen() {
            Ok(signals) => signals,
            Err(error) => {
                let grace = self.grace;
                self.shutdown(grace).await;
                return Err(error.into());
            }
        };
        let done = tokio::select! {
            biased;
            name = signals.next() => {
                tracing::info!(signal = name, grace = %humantime::format_duration(self.grace), "a signal arrived; the node stops");
                None
            }
            done = work => Some(done),
        };
        self.running.order_stop(self.grace);
        tokio::select! {
            biased;
            () = self.running.stopped() => {}
            name = signals.next() => {
                tracing::info!(signal = name, "a second signal arrived; the grace ends now");
                self.running.order_stop(Duration::ZERO);
            }
        }
        self.stopped().await;
        Ok(done)
    }

    /// Waits for the end of the stop, then sends the adds that callers have started.
    async fn stopped(&self) -> Stopped {
        self.running.stopped().await;
        self.provider.close().await;
        let topics = self.running.health().topics;
        let sum = |of: fn(&TopicHealth) -> usize| topics.iter().map(of).sum();
        Stopped { left: sum(|topic| topic.held), still_running: sum(|topic| topic.running) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.running.order_stop(Duration::ZERO);
    }
}

/// SIGTERM and SIGINT on Unix, Ctrl-C elsewhere.
struct TerminationSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl TerminationSignals {
    /// Listens from now on. These signals no longer end the program by themselves.
    #[cfg(unix)]
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal and returns its name.
    #[cfg(unix)]
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Listens from now on.
    #[cfg(not(unix))]
    fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next signal and returns its name.
    #[cfg(not(unix))]
    async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}
