//! What the pages around a change say.

use maud::{Markup, html};

use super::Order;
use crate::failure::Failure;
use crate::frame::Frame;
use crate::show::number;

/// What a change is about.
pub(super) fn about(order: &Order) -> Markup {
    let names = [
        ("Topic", &order.jobs.topic),
        (order.of().0, &order.id),
        ("Limit", &order.limit),
        ("State", &order.jobs.state),
        ("Id begins with", &order.jobs.id_prefix),
        ("Header", &order.jobs.header),
        ("Error has", &order.jobs.error),
        ("Failed at least", &order.jobs.attempts),
        ("Time from", &order.jobs.from),
        ("Time before", &order.jobs.until),
    ];
    html! { dl.record { @for (name, value) in names { @if !value.is_empty() { dt { (name) } dd { code { (value) } } } } } }
}

/// The order as hidden fields. What people type has fields of its own.
pub(super) fn fields(order: &Order) -> Markup {
    let query = order.jobs.query();
    let more = [
        ("action", order.action.as_str()),
        ("id", order.id.as_str()),
        ("limit", order.limit.as_str()),
        ("version", order.version.as_str()),
    ];
    html! { @for (name, value) in query.into_iter().chain(more) { @if !value.is_empty() { input type="hidden" name=(name) value=(value); } } }
}

/// Where a bulk change is.
#[derive(Debug)]
pub(super) enum Phase<'a> {
    Working,
    Over,
    /// The last step failed, and can be sent again.
    Failed(&'a Failure),
}

/// How far a bulk change has come.
pub(super) fn progress(frame: &Frame, order: &Order, phase: &Phase<'_>) -> Markup {
    let is_over = matches!(phase, Phase::Over);
    let count = |text: &str| text.parse::<usize>().unwrap_or(0);
    let (all, looked_at) = (count(&order.all), count(&order.looked_at));
    let so_far = html! {
        p.sum role="status" { b { (number(count(&order.changed))) } " changed of " b { (number(looked_at)) } " looked at." }
        @if all > 0 { progress max=(all) value=(if is_over { all } else { looked_at.min(all) }) aria-label="Jobs looked at" {} }
    };
    let back = frame.to("jobs", &[("topic", &order.jobs.topic), ("state", &order.jobs.state)]);
    let (title, next) = match phase {
        Phase::Working => ("Working on it", "Continue with the next 100"),
        Phase::Over => ("All done", ""),
        Phase::Failed(_) => ("A step failed", "Try again"),
    };
    let body = html! {
        section.panel.confirm {
            h1 { (title) }
            (about(order))
            @if let Phase::Failed(error) = phase { p.notice.bad role="alert" { (error) ". Jobs that are done already are not changed twice." } }
            (so_far)
            @if is_over { p { a.button href=(back) { "To the jobs" } } } @else {
                form method="post" action=(frame.to("act", &[])) data-go-on=[matches!(phase, Phase::Working).then_some("1")] {
                    (frame.proof())
                    (fields(order))
                    (kept(order))
                    div.actions { button.primary { (next) } a.button href=(back) { "Stop here" } }
                }
            }
        }
    };
    frame.page(title, "-", &body)
}

/// What the next step has to know.
fn kept(order: &Order) -> Markup {
    let kept = [
        ("due", &order.due),
        ("all", &order.all),
        ("changed", &order.changed),
        ("looked_at", &order.looked_at),
        ("after_at", &order.jobs.after_at),
        ("after_id", &order.jobs.after_id),
    ];
    html! { @for (name, value) in kept { input type="hidden" name=(name) value=(value); } }
}
