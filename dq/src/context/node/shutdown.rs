//! Shutdown: a node stops when its handle or a signal of the operating system says so.
//!
//! `signals.rs` has the signals. The stop order goes to every task of the node. `topic/machine/stop.rs` has the phases in which a topic follows it.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use super::handle::Context;
use crate::context::error::Error;
use crate::context::topic::stats::Stopped;

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

    /// The signal that [`run_until_signal`](Self::run_until_signal) waits for, as a future that every part of a program can wait
    /// for: SIGTERM or SIGINT on Unix, Ctrl-C elsewhere. Pass it to `axum::serve(..).with_graceful_shutdown(..)`, and the server
    /// to [`run_until`](Self::run_until): one signal then stops both, and the server finishes its requests.
    ///
    /// It also resolves for a signal that came since the first call. From the first call on, these signals no longer end the
    /// program by themselves. Cheap to clone and cancel safe; all clones resolve together.
    ///
    /// # Errors
    /// When the operating system refuses to deliver signals.
    ///
    /// # Panics
    /// Outside of a tokio runtime with its IO driver.
    pub fn signals(&self) -> Result<impl Future<Output = ()> + Clone + Send + Sync + Unpin + use<>, Error> {
        Ok(self.signals.count(&self.running.environment)?.first())
    }

    /// Runs until SIGTERM or SIGINT (Ctrl-C), then stops as [`shutdown`](Self::shutdown) does, with the `grace` of the
    /// settings, and returns what became of what it held. A second signal ends the grace at once.
    ///
    /// # Errors
    /// When the operating system refuses to deliver signals. The node has stopped then.
    pub async fn run_until_signal(self) -> Result<Stopped, Error> {
        match self.signals() {
            Ok(signal) => self.run_until(signal).await.map(|(_, stopped)| stopped),
            Err(error) => Err(self.stopped_for(error).await),
        }
    }

    /// Runs as [`run_until_signal`](Self::run_until_signal) does, and also ends when `work` is done. For a program that ends without a
    /// signal, or that runs more than jobs, such as a web server.
    ///
    /// A signal stops the node, and `work` goes on for as long as the `grace` of the settings lasts: let it end by
    /// [`signals`](Self::signals). It can still add jobs. Returns the output of `work`, or `None` if the grace was over first, or a
    /// second signal came, and `work` was dropped; and the result of the stop.
    ///
    /// # Errors
    /// When the operating system refuses to deliver signals. The node has stopped then, and `work` was dropped.
    pub async fn run_until<T>(self, work: impl Future<Output = T>) -> Result<(Option<T>, Stopped), Error> {
        let mut signals = match self.signals.count(&self.running.environment) {
            Ok(signals) => signals,
            Err(error) => return Err(self.stopped_for(error.into()).await),
        };
        let mut work = pin!(work);
        let mut done = tokio::select! {
            biased;
            name = signals.reaches(1) => {
                tracing::info!(signal = name, grace = %humantime::format_duration(self.grace), "a signal arrived; the node stops");
                None
            }
            done = &mut work => Some(done),
        };
        self.running.order_stop(self.grace);
        let environment = &self.running.environment;
        let grace_over = environment.sleep_until(environment.now() + self.grace);
        let ends_grace = async {
            let name = signals.reaches(2).await;
            tracing::info!(signal = name, "a second signal arrived; the grace ends now");
            self.running.order_stop(Duration::ZERO);
        };
        let work_ends = async {
            if done.is_none() {
                tokio::select! {
                    biased;
                    output = work => done = Some(output),
                    () = grace_over => {
                        tracing::warn!("the grace is over, and what runs beside the node has not ended: it is dropped");
                    }
                }
            }
        };
        let ends = async { tokio::join!(work_ends, self.running.stopped()) };
        tokio::select! {
            biased;
            _ = ends => {}
            () = ends_grace => {}
        }
        Ok((done, self.stopped().await))
    }

    /// Stops the node because of this error.
    async fn stopped_for(self, error: Error) -> Error {
        let grace = self.grace;
        self.shutdown(grace).await;
        error
    }

    /// Waits for the end of the stop, then sends the adds that callers have started.
    async fn stopped(&self) -> Stopped {
        self.running.stopped().await;
        self.provider.close().await;
        let stopped = self.running.ending();
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
    }
}
