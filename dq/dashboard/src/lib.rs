//! The dashboard of dq: what falls due, what is late and why, and what to do about it, in a browser and as a JSON API.
//!
//! ```no_run
//! use dq_dashboard::{Access, Dashboard};
//!
//! # async fn serve(provider: dq::Provider, app: axum::Router) -> Result<axum::Router, dq_dashboard::DashboardError> {
//! let dashboard = Dashboard::new(provider, Access::token("ann", std::env::var("DQ_DASHBOARD_TOKEN").unwrap_or_default()));
//! let app = app.merge(dashboard.at("/admin/dq")?);
//! # Ok(app)
//! # }
//! ```
//!
//! Pages are plain HTML that works without scripts; a small one keeps them live. They load nothing from elsewhere. Below `/api/v1` there is
//! the same for programs, described at `/api/v1/openapi.json`. `/healthz` says that the process lives, `/readyz` that its store
//! answers; these two ask for no token.
//!
//! # Limits
//!
//! A page makes at most 20 queries. A live page is read again at most once a second as long as somebody looks at it, and all who look share
//! what was read: at most 100 connections and 16 views. The page of a topic is read when events say that something happened to its jobs, and
//! every four seconds otherwise; the overview once a second. Each user gets 100 requests a second answered at each address, in bursts of 200, and
//! each address without a user 20, in bursts of 100; others get 429. A form has up to 16 KiB, an add up to 1 MiB, and both have 20 s to
//! arrive. [`serve`] says what a server has to bound.

mod access;
mod act;
mod api;
mod app;
mod asked;
mod assets;
mod audit;
mod dashboard;
mod error;
mod failure;
mod frame;
mod guard;
mod host;
mod late;
mod live;
mod outlooks;
mod pace;
mod pages;
mod rate;
mod ready;
mod routes;
mod secret;
mod serve;
mod session;
mod show;
mod stay;
mod table;
mod user;
mod visit;

pub use access::Access;
pub use dashboard::Dashboard;
pub use error::DashboardError;
pub use serve::serve;
pub use user::{Role, User};
