//! What endangers the store as a whole, before an add fails.

use axum::extract::State;
use dq::inspect::{Finding, FindingCode, Severity};
use maud::{Markup, html};

use super::{Answer, table};
use crate::app::Shared;
use crate::frame::{Frame, failure};
use crate::visit::Visit;

pub(crate) async fn show(State(app): State<Shared>, visit: Visit) -> Answer {
    let frame = Frame::new(&app, &visit);
    let findings = app.inspector.examine_store().await.map_err(|error| failure(&frame, &error.into()))?;
    let body = html! {
        h1 { "Doctor" }
        p.quiet { "The settings, the memory and the clock of the store. " code { "dq doctor" } " also examines every topic, and repairs." }
        section.panel {
            h2 { "The store" }
            @if findings.is_empty() { p.empty { "Nothing is wrong with the store." } } @else { (table_of(&findings)) }
        }
    };
    Ok(frame.answer("Doctor", "doctor", &body))
}

fn table_of(findings: &[Finding]) -> Markup {
    let rows = html! { @for finding in findings {
        @let class = if finding.severity == Severity::Error { "badge bad" } else { "badge odd" };
        tr {
            th scope="row" { code { (finding.code) } }
            td { span class=(class) { (finding.severity) } }
            td { (finding.text) } td { (finding.advice) }
        }
    } };
    let columns = ["Finding", "Severity", "What is wrong", "What to do"];
    table("Findings", "What is wrong with the store", &columns, &rows)
}

/// What cannot wait, at the head of the overview.
pub(crate) fn alerts(frame: &Frame, findings: &[Finding]) -> Markup {
    let cannot_wait =
        |finding: &&Finding| finding.severity == Severity::Error || finding.code == FindingCode::MemoryNearlyFull;
    html! {
        @for finding in findings.iter().filter(cannot_wait) {
            p.notice.bad { (finding.text) ". " a href=(frame.to("doctor", &[])) { "What to do" } }
        }
    }
}
