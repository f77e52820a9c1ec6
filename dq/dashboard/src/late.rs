//! Bodies of requests that must arrive in time.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

/// A body that fails when its time is over.
pub(crate) struct Timely {
    body: Body,
    end: Pin<Box<Sleep>>,
    /// Each part of it gives the next one this time.
    each: Option<Duration>,
    late: Arc<AtomicBool>,
}

impl Timely {
    /// A body that must be whole after this time, and whether it was late.
    pub(crate) fn within(body: Body, time: Duration) -> (Body, Arc<AtomicBool>) {
        let late = Arc::<AtomicBool>::default();
        (Body::new(Self { body, end: Box::pin(sleep(time)), each: None, late: Arc::clone(&late) }), late)
    }

    /// A body that may pause for this time.
    pub(crate) fn pausing(body: Body, time: Duration) -> Body {
        Body::new(Self { body, end: Box::pin(sleep(time)), each: Some(time), late: Arc::default() })
    }
}

impl HttpBody for Timely {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_pending() && self.end.as_mut().poll(cx).is_ready() {
            self.late.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err(Error::new("the body did not arrive in time"))));
        }
        if let (Poll::Ready(_), Some(each)) = (&polled, self.each) {
            self.end.as_mut().reset(Instant::now() + each);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
