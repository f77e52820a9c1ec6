//! The signals of the operating system that end a program: SIGTERM and SIGINT on Unix, Ctrl-C elsewhere.
//!
//! A node counts them in one place, for itself and for whatever the program runs beside it. So the signal that ends a web server is
//! never taken for a second one.

use std::future::{Future, pending};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::task::{self, Poll};

use futures_util::future::{BoxFuture, Shared};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::watch;

use crate::context::error::Error;
use crate::environment::{Environment, Runtime};

/// The signal that ends a program without a node, as a future: SIGTERM or SIGINT on Unix, Ctrl-C elsewhere. A node has
/// [`Context::signals`](crate::context::Context::signals), which it counts as its own.
///
/// It also resolves for a signal that came since this call. From then on, these signals no longer end the program by themselves.
///
/// # Errors
/// When the operating system refuses to deliver signals.
///
/// # Panics
/// Outside of a tokio runtime with its IO driver.
pub fn signals() -> Result<impl Future<Output = ()> + Clone + Send + Sync + Unpin + 'static, Error> {
    let mut signals = termination_signals()?;
    Ok(async move { _ = signals.next().await }.boxed().shared())
}

/// Where a node keeps its count, once it has one.
#[derive(Debug, Default)]
pub(super) struct Counted(Mutex<Option<SignalCount>>);

impl Counted {
    /// The signals that have come since this was first asked for.
    pub(super) fn count(&self, environment: &Environment) -> io::Result<SignalCount> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = &*counted {
            return Ok(count.clone());
        }
        let count = SignalCount::begin(environment)?;
        *counted = Some(count.clone());
        Ok(count)
    }
}

/// How many signals have come, and the name of the last.
#[derive(Debug, Clone)]
pub(super) struct SignalCount(watch::Receiver<(u32, &'static str)>);

impl SignalCount {
    fn begin(environment: &Environment) -> io::Result<Self> {
        let mut signals = termination_signals()?;
        let (count, seen) = watch::channel((0_u32, ""));
        environment.spawn(Runtime::Own, async move {
            loop {
                tokio::select! {
                    biased;
                    Some(name) = signals.next() => count.send_modify(|seen| *seen = (seen.0.saturating_add(1), name)),
                    () = count.closed() => return,
                }
            }
        });
        Ok(Self(seen))
    }

    /// Resolves at the first signal, and so do all clones.
    pub(super) fn first(mut self) -> Shared<BoxFuture<'static, ()>> {
        async move { _ = self.reaches(1).await }.boxed().shared()
    }

    /// Waits until so many signals have come, and returns the name of the last. Cancel safe.
    pub(super) async fn reaches(&mut self, number: u32) -> &'static str {
        let name = self.0.wait_for(|(count, _)| *count >= number).await.ok().map(|seen| seen.1);
        match name {
            Some(name) => name,
            // The thread that counts has ended, and with it the program.
            None => pending().await,
        }
    }
}

/// The names of SIGTERM and SIGINT as they come. From now on, these signals no longer end the program by themselves.
#[cfg(unix)]
fn termination_signals() -> io::Result<BoxStream<'static, &'static str>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let next = move |cx: &mut task::Context<'_>| match terminate.poll_recv(cx) {
        Poll::Ready(_) => Poll::Ready(Some("SIGTERM")),
        Poll::Pending => interrupt.poll_recv(cx).map(|_| Some("SIGINT")),
    };
    Ok(stream::poll_fn(next).boxed())
}

/// Names Ctrl-C as it comes. From now on, it no longer ends the program by itself.
#[cfg(not(unix))]
fn termination_signals() -> io::Result<BoxStream<'static, &'static str>> {
    let next = |()| async { tokio::signal::ctrl_c().await.ok().map(|()| ("Ctrl-C", ())) };
    Ok(stream::unfold((), next).chain(stream::pending()).boxed())
}
