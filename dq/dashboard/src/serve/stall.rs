//! A stream that fails when the other side reads nothing for too long.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Bounds the time in which nothing can be written. Reads have no bound: a live page reads nothing for hours.
pub(super) struct Stalling<S> {
    stream: S,
    most: Duration,
    /// The time is over then. There is none while writes make progress.
    end: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Stalling<S> {
    pub(super) fn new(stream: S, most: Duration) -> Self {
        Self { stream, most, end: None }
    }

    fn bounded<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<Result<T>>,
    ) -> Poll<Result<T>> {
        let written = write(Pin::new(&mut self.stream), cx);
        if written.is_ready() {
            self.end = None;
            return written;
        }
        let most = self.most;
        ready!(self.end.get_or_insert_with(|| Box::pin(sleep(most))).as_mut().poll(cx));
        Poll::Ready(Err(Error::from(ErrorKind::TimedOut)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.bounded(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, all: &[IoSlice<'_>]) -> Poll<Result<usize>> {
        self.bounded(cx, |stream, cx| stream.poll_write_vectored(cx, all))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.bounded(cx, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.bounded(cx, AsyncWrite::poll_shutdown)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stands_still_ends_the_stream_and_a_slow_one_does_not() {
        let limit = Duration::from_secs(30);
        let (near, mut far) = duplex(1);
        let mut near = Stalling::new(near, limit);
        let slow = async {
            for _ in 0..10 {
                sleep(limit - Duration::from_secs(1)).await;
                far.read_u8().await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&[0; 11]), slow);
        written.unwrap();
        let stands = Instant::now();
        let failed = near.write_all(&[0; 2]).await.unwrap_err();
        assert_eq!((failed.kind(), stands.elapsed()), (ErrorKind::TimedOut, limit));
    }
}
