//! Live pages: each view that somebody looks at is read again and again, for all who look at it together.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

use crate::app::Shared;
use crate::failure::Failure;
use crate::pace::{Pace, SHORTEST};
use crate::pages::View;

/// The most connections.
const MOST_CONNECTIONS: usize = 100;

/// The most views that are read.
const MOST_VIEWS: usize = 16;

type Fragment = Arc<str>;

#[derive(Debug)]
pub(crate) struct Live {
    connections: Arc<Semaphore>,
    views: Mutex<HashMap<View, watch::Sender<Fragment>>>,
}

impl Default for Live {
    fn default() -> Self {
        Self { connections: Arc::new(Semaphore::new(MOST_CONNECTIONS)), views: Mutex::default() }
    }
}

impl Live {
    /// Joins those who look at a view; the first one starts its reads.
    fn join(&self, app: &Shared, view: &View) -> Result<watch::Receiver<Fragment>, Failure> {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = views.get(view) {
            let mut seen = sender.subscribe();
            seen.mark_changed();
            return Ok(seen);
        }
        if views.len() >= MOST_VIEWS {
            return Err(Failure::TooManyLive);
        }
        let (sender, receiver) = watch::channel(Fragment::default());
        views.insert(view.clone(), sender.clone());
        tokio::spawn(keep_reading(Arc::clone(app), view.clone(), sender));
        Ok(receiver)
    }

    /// Passes a fragment on; `false` and the end of the view if nobody looks any more.
    fn send(&self, view: &View, fragment: Fragment) -> bool {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        let has_viewers = views.get(view).is_some_and(|sender| sender.receiver_count() > 0);
        match views.get(view).filter(|_| has_viewers) {
            Some(sender) => drop(sender.send_replace(fragment)),
            None => drop(views.remove(view)),
        }
        has_viewers
    }
}

async fn keep_reading(app: Shared, view: View, sender: watch::Sender<Fragment>) {
    let (mut pace, mut last) = (Pace::new(view.events(&app)), Fragment::default());
    loop {
        let began = Instant::now();
        pace.reads();
        let (fragment, is_whole) = match view.fragment(&app).await {
            Ok(fragment) => (Fragment::from(fragment.into_string()), true),
            Err(failure) => (crate::pages::stale(&failure, &last).into_string().into(), false),
        };
        if is_whole {
            last = Arc::clone(&fragment);
        }
        if !app.live.send(&view, fragment) {
            return;
        }
        tokio::select! {
            biased;
            () = pace.next(began) => {}
            // Somebody who loads the page again comes back within this time, and finds the view as it is.
            () = sender.closed() => sleep_until(began + SHORTEST).await,
        }
    }
}

struct Viewer {
    seen: watch::Receiver<Fragment>,
    _place: OwnedSemaphorePermit,
}

/// Answers with a stream of fragments.
pub(crate) fn stream_of(app: &Shared, view: &View) -> Result<Response, Failure> {
    let connections = Arc::clone(&app.live.connections);
    let place = connections.try_acquire_owned().map_err(|_| Failure::TooManyLive)?;
    let viewer = Viewer { seen: app.live.join(app, view)?, _place: place };
    let events = stream::unfold(viewer, |mut viewer| async move {
        loop {
            viewer.seen.changed().await.ok()?;
            let fragment = Arc::clone(&viewer.seen.borrow_and_update());
            if !fragment.is_empty() {
                return Some((Ok::<_, Infallible>(Event::default().data(&*fragment)), viewer));
            }
        }
    });
    let mut answer = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    // A browser would let a second stream of the same view wait until it has the first one in its cache.
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}
