//! The dashboard: its pages, its security and its JSON API in this process, and all of it in a real browser.

#![expect(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod actions;
mod api;
mod browser;
mod changes;
mod chromium;
mod cost;
mod document;
mod live;
mod pages;
mod past;
mod python;
mod schema;
mod security;
mod stage;
mod visitor;
