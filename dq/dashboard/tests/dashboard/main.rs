//! The dashboard: its pages, its security and its JSON API in this process, and all of it in a real browser.

#![expect(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod access;
mod actions;
mod api;
mod assets;
mod browser;
mod changes;
mod chromium;
mod cost;
mod document;
mod live;
mod log;
mod pages;
mod past;
mod ports;
mod python;
mod roles;
mod scenes;
mod schema;
mod security;
mod serve;
mod stage;
mod visitor;
