//! The table of routes. A route is added with what it needs, so there is none without.

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, on};

use crate::app::Shared;
use crate::guard::{self, Needs, Row};

/// Routes with what they need.
pub(crate) struct Table {
    app: Shared,
    router: Router<Shared>,
    rows: Vec<Row>,
}

impl Table {
    pub(crate) fn new(app: &Shared) -> Self {
        Self { app: app.clone(), router: Router::new(), rows: Vec::new() }
    }

    /// Adds a route, which refuses visitors without what it needs.
    pub(crate) fn row<H, T>(mut self, method: MethodFilter, path: &'static str, needs: Needs, handler: H) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        let row = Row { method, path, needs };
        let check = from_fn_with_state((self.app.clone(), row), guard::row);
        self.router = self.router.route(path, on(method, handler).route_layer(check));
        self.rows.push(row);
        self
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn into_router(self) -> Router<Shared> {
        self.router
    }
}
