//! Live pages: each view that somebody looks at is read again and again, for all who look at it together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dq::inspect::Scale;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::failure::Failure;

/// The most connections.
const MAX_CONNECTIONS: usize = 100;

/// The most views that are read.
const MAX_VIEWS: usize = 16;

/// A part of a page that changes, and whatever its text depends on. Those who look at the same view share one poll.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) base: String,
    /// Without buttons.
    pub(crate) read_only: bool,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Overview { after: String, scale: Scale, sort: String },
    Topic { topic: String, scale: Scale },
}

pub(crate) type Fragment = Arc<str>;

#[derive(Debug)]
pub(crate) struct Live {
    connections: Arc<Semaphore>,
    views: Mutex<HashMap<View, watch::Sender<Fragment>>>,
}

impl Default for Live {
    fn default() -> Self {
        Self { connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)), views: Mutex::default() }
    }
}

impl Live {
    /// Joins those who look at a view, and says where to send its fragments if it is the first one and is to start its reads.
    pub(crate) fn join(&self, view: &View) -> Result<(Viewer, Option<watch::Sender<Fragment>>), Failure> {
        let connections = Arc::clone(&self.connections);
        let place = connections.try_acquire_owned().map_err(|_| Failure::TooManyLive)?;
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = views.get(view) {
            let mut seen = sender.subscribe();
            seen.mark_changed();
            return Ok((Viewer { seen, _place: place }, None));
        }
        if views.len() >= MAX_VIEWS {
            return Err(Failure::TooManyLive);
        }
        let (sender, seen) = watch::channel(Fragment::default());
        views.insert(view.clone(), sender.clone());
        Ok((Viewer { seen, _place: place }, Some(sender)))
    }

    /// Passes a fragment on; `false` and the end of the view if nobody looks any more.
    pub(crate) fn send(&self, view: &View, fragment: Fragment) -> bool {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        let has_viewers = views.get(view).is_some_and(|sender| sender.receiver_count() > 0);
        match views.get(view).filter(|_| has_viewers) {
            Some(sender) => drop(sender.send_replace(fragment)),
            None => drop(views.remove(view)),
        }
        has_viewers
    }
}

/// Somebody who looks at a view.
pub(crate) struct Viewer {
    pub(crate) seen: watch::Receiver<Fragment>,
    _place: OwnedSemaphorePermit,
}
