//! When a live view is read again: as soon as something happens to the jobs of its topic, but at most once a second; by a timer
//! where nobody says what happens, and for what changes by itself, such as what falls due.

use std::time::Duration;

use dq::provider::{Event, Events};
use futures_util::FutureExt;
use tokio::time::{Instant, sleep_until};

/// The shortest time between two reads. A view without events is read this often.
pub(crate) const SHORTEST: Duration = Duration::from_secs(1);

/// The longest one while events come. The page takes itself for not live after eight seconds.
const LONGEST: Duration = Duration::from_secs(4);

/// How a view learns that it may have changed.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    events: Option<Events>,
    /// The store passes events on.
    listens: bool,
    /// Something has happened since the last read.
    is_stale: bool,
}

impl Pace {
    /// Without events it is a timer.
    pub(crate) fn new(events: Option<Events>) -> Self {
        Self { events, ..Self::default() }
    }

    /// A read begins, and shows all that has happened so far.
    pub(crate) fn reads(&mut self) {
        while let Some(event) = self.events.as_mut().and_then(|events| events.next().now_or_never()) {
            self.note(event.as_ref());
        }
        self.is_stale = false;
    }

    /// Waits until the next read after one that began at `read`. Cancel safe.
    pub(crate) async fn next(&mut self, read: Instant) {
        let earliest = read + SHORTEST;
        loop {
            let until = match (self.listens, self.is_stale) {
                (true, false) => read + LONGEST,
                _ => earliest,
            };
            tokio::select! {
                biased;
                event = next_of(&mut self.events) => self.note(event.as_ref()),
                () = sleep_until(until) => return,
            }
        }
    }

    fn note(&mut self, event: Option<&Event>) {
        match event {
            Some(Event::Listening) => (self.listens, self.is_stale) = (true, true),
            Some(Event::Interrupted(_)) => self.listens = false,
            Some(_) => self.is_stale = true,
            // The runtime of the provider has ended.
            None => (self.events, self.listens) = (None, false),
        }
    }
}

async fn next_of(events: &mut Option<Events>) -> Option<Event> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn waited(pace: &mut Pace, since: Duration) -> Duration {
        let now = Instant::now();
        pace.next(now.checked_sub(since).unwrap()).await;
        now.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_view_is_read_once_a_second_at_most_and_by_a_timer_where_nobody_tells() {
        let (mut pace, second) = (Pace::new(None), SHORTEST);
        tokio::time::advance(10 * second).await;
        assert_eq!(waited(&mut pace, Duration::ZERO).await, second, "nobody tells what happens");
        pace.note(Some(&Event::Listening));
        assert_eq!(waited(&mut pace, Duration::ZERO).await, second, "something may have happened before");
        pace.reads();
        assert_eq!(waited(&mut pace, Duration::ZERO).await, LONGEST, "nothing happens");
        pace.note(Some(&Event::Missed(7)));
        assert_eq!(waited(&mut pace, second / 4).await, second * 3 / 4, "it was read a moment ago");
        assert_eq!(waited(&mut pace, 2 * second).await, Duration::ZERO, "it was read a while ago");
        pace.reads();
        pace.note(Some(&Event::Interrupted("an outage".into())));
        assert_eq!(waited(&mut pace, Duration::ZERO).await, second, "nobody tells any more");
    }
}
