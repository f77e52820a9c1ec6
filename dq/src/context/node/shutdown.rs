//! Shutdown: a node stops when its handle or a signal of the operating system says so.
//!
//! The stop order goes to every task of the node. `topic/shutdown.rs` has the phases in which a topic follows it.

use std::future::Future;
use std::io;
use std::time::Duration;

use super::handle::Context;
use crate::context::error::Error;
use crate::context::topic::stats::TopicEnding;

/// The result of a stop: what became of what the node held when it was told to stop. The log has the same as one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stopped {
    /// Jobs whose run ended by itself during the stop, with an outcome that the store took: acks, retries, rejoins and so on.
    pub finished: usize,
    /// Jobs that went back as they were, without a spent attempt: those that waited, and those whose handlers were cancelled.
    pub given_back: usize,
    /// Handlers that were cancelled, because the grace ended before they did.
    pub cancelled: usize,
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
    /// settings, and returns what became of what it held. A second signal ends the grace at once.
    ///
    /// # Errors
    /// When the operating system refuses to deliver signals. The node has stopped then.
    pub async fn run_until_signal(self) -> Result<Stopped, Error> {
        self.run_until(std::future::pending::<()>()).await.map(|(_, stopped)| stopped)
    }

    /// Runs as [`run_until_signal`](Self::run_until_signal) does, and also ends when `work` is done. Returns the output of
    /// `work`, or `None` if a signal came first and `work` was dropped, and the result of the stop. For a program that ends
    /// without a signal, or that runs more than jobs.
    ///
    /// # Errors
    /// When the operating system refuses to deliver signals. The node has stopped then, and `work` was dropped.
    pub async fn run_until<T>(self, work: impl Future<Output = T>) -> Result<(Option<T>, Stopped), Error> {
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
        Ok((done, self.stopped().await))
    }

    /// Waits for the end of the stop, then sends the adds that callers have started.
    async fn stopped(&self) -> Stopped {
        self.running.stopped().await;
        self.provider.close().await;
        let topics: Vec<_> = self.running.endings().collect();
        let sum = |of: fn(&TopicEnding) -> usize| topics.iter().map(of).sum();
        let stopped = Stopped {
            finished: sum(|topic| topic.finished),
            given_back: sum(|topic| topic.given_back),
            cancelled: sum(|topic| topic.cancelled),
            left: sum(|topic| topic.held),
            still_running: sum(|topic| topic.running),
        };
        let Stopped { finished, given_back, cancelled, left, still_running } = stopped;
        tracing::info!(finished, given_back, cancelled, left, still_running, "the node has stopped");
        stopped
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A subscriber that panics during a panic would abort the process.
        if !self.is_quiet && self.running.works() && !std::thread::panicking() {
            tracing::warn!(
                "the node was dropped, so it stops now: its handlers are cancelled, and no job runs here any more, although a \
                 clone of its provider still adds. Keep the node: `let dq = factory.start().await?;` (`let _ = ..` and \
                 `.start().await?.provider().clone()` drop it), and end with `dq.run_until_signal().await` or \
                 `dq.shutdown(grace).await`. A program that only adds jobs uses `Provider::connect`"
            );
        }
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
