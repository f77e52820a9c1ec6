//! Settings and where they come from.

use axum::extract::State;
use dq::config::Source;
use maud::html;

use super::{Answer, table};
use crate::app::Shared;
use crate::frame::Frame;
use crate::visit::Visit;

pub(crate) async fn show(State(app): State<Shared>, visit: Visit) -> Answer {
    let frame = Frame::new(&app, &visit);
    let body = html! {
        h1 { "Settings" }
        @if app.settings.is_empty() {
            section.panel { p.empty { "This program runs no node, so it has no settings of one. " code { "Dashboard::settings_of" } " shows the settings of a node in the same program." } }
        }
        @for (name, listing) in &app.settings {
            section.panel {
                h2 { (name) }
                @let title = format!("Settings of {name}");
                (table(&title, &title, &["Setting", "Value", "From"], &html! { @for listed in listing.all() {
                    tr {
                        th scope="row" { code { (listed.key) } } td { code { (listed.value) } }
                        td { @if listed.source == Source::Default { span.none { "default" } } @else { (listed.source) } }
                    }
                } }))
            }
        }
        section.panel {
            h2 { "This dashboard" }
            dl.record {
                dt { "App" } dd { (app.provider.app()) }
                dt { "Read-only" } dd { (if app.read_only { "yes" } else { "no" }) }
                dt { "Payloads" } dd { (if app.redact.is_some() { "shown, redacted by the program" } else { "hidden" }) }
                dt { "Version of dq" } dd { (env!("CARGO_PKG_VERSION")) }
                dt { "For programs" } dd { a href=(frame.to("api/v1/openapi.json", &[])) { "OpenAPI description of the JSON API" } }
            }
        }
        @if frame.may_log_out {
            section.panel {
                h2 { "Sessions" }
                p.quiet { "All browsers that logged in with your token have to log in again, and their live pages end." }
                form method="post" action=(frame.to("logout", &[])) {
                    (frame.proof())
                    input type="hidden" name="everywhere" value="1";
                    button.danger { "Log out everywhere" }
                }
            }
        }
    };
    Ok(frame.answer("Settings", "settings", &body))
}
