//! How long a visitor may watch a live page.

use std::sync::Arc;

use axum::http::request::Parts;
use tokio::sync::watch;

use crate::access::Kind;
use crate::app::Shared;
use crate::serve::Connection;
use crate::visit::Visit;

/// A visitor of a live page, who was let in when it began.
pub(crate) struct Stay {
    app: Shared,
    visit: Visit,
    /// The request, for a hook that is called again.
    parts: Parts,
    ended: watch::Receiver<()>,
}

impl Stay {
    pub(crate) fn new(app: &Shared, visit: Visit, parts: Parts) -> Self {
        Self { app: Arc::clone(app), visit, parts, ended: app.sessions.changes() }
    }

    /// Waits until the visitor is not let in any more, or the server stops. It looks when it is first polled and when a session ends.
    pub(crate) async fn is_over(&mut self) {
        while self.is_let_in() {
            let stopping = async {
                match self.parts.extensions.get::<Arc<Connection>>() {
                    Some(connection) => connection.server_stops().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stopping => return,
                ended = self.ended.changed() => if ended.is_err() { return },
            }
        }
    }

    fn is_let_in(&self) -> bool {
        match &self.app.access.0 {
            Kind::Tokens(_) => self.visit.session.as_ref().is_some_and(|session| self.app.sessions.lasts(session)),
            Kind::Hook(who) => who(&self.parts).is_some_and(|user| user == self.visit.user),
            Kind::Everyone => true,
        }
    }
}
