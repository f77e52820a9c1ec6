//! The stream below the client library: it notes when bytes last came.
//!
//! A long answer on a slow link takes longer than any caller waits for one that does not come. So a caller gives a
//! request up only once no byte has come for that long either. With TLS the stream lies below TLS: a part of an
//! encrypted record is a sign of life, too.

use std::io::Result;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::environment::{Boottime, Clock};

/// When bytes last came over a connection, in milliseconds of the node's clock.
#[derive(Debug, Clone)]
pub(super) struct LastByte(Arc<AtomicU64>);

impl LastByte {
    /// A connection that is opened now.
    pub(super) fn now() -> Self {
        let this = Self(Arc::default());
        this.note();
        this
    }

    fn note(&self) {
        self.0.store(millis(), Ordering::Relaxed);
    }

    /// Whether bytes came just now, so that the connection need not be looked at before a request.
    pub(super) fn is_recent(&self) -> bool {
        self.silent_for() <= Duration::from_millis(1)
    }

    /// For how long no byte has come.
    pub(super) fn silent_for(&self) -> Duration {
        Duration::from_millis(millis().saturating_sub(self.0.load(Ordering::Relaxed)))
    }
}

fn millis() -> u64 {
    u64::try_from(Boottime.now().as_millis()).unwrap_or(u64::MAX)
}

/// A stream that notes when bytes come.
#[derive(Debug)]
pub(super) struct TimedStream<S> {
    inner: S,
    last_byte: LastByte,
}

impl<S> TimedStream<S> {
    pub(super) const fn new(inner: S, last_byte: LastByte) -> Self {
        Self { inner, last_byte }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.last_byte.note();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
