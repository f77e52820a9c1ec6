//! The dashboard: its pages, its security and its JSON API in this process, and all of it in a real browser.

#![expect(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod api;
mod browser;
mod chromium;
mod cost;
mod pages;
mod past;
mod python;
mod security;
mod stage;
mod visitor;
