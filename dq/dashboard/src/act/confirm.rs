//! The page that asks, and the request that does it.

use axum::Form;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::html;

use super::pages::{WORDS, about, fields, progress};
use super::{Order, apply, bulk_action, change, step};
use crate::app::Shared;
use crate::audit::audit;
use crate::failure::Failure;
use crate::pages::{Frame, confirmed, failure, html, state};
use crate::visit::Visit;

/// Asks.
pub(crate) async fn confirm(State(app): State<Shared>, visit: Visit, Query(order): Query<Order>) -> Response {
    let frame = Frame::new(&app, &visit);
    if app.read_only {
        return failure(&frame, &Failure::ReadOnly);
    }
    let Some(word) = WORDS.iter().find(|word| word.action == order.action) else {
        return failure(&frame, &Failure::NotThere("such action"));
    };
    let title = if order.is_bulk() { format!("{} all these jobs?", word.verb) } else { format!("{}?", word.verb) };
    let class = if word.undo.is_empty() { "danger" } else { "primary" };
    let body = html! {
        section.panel.confirm {
            h1 { (title) }
            (about(&order))
            p { (word.what) }
            @if word.undo.is_empty() { p { b { "This cannot be undone." } } } @else { p.quiet { "Undo: " (word.undo) "." } }
            form method="post" action=(frame.to("act", &[])) {
                (frame.proof())
                (fields(&order))
                @if word.needs_reason { label { "Reason" input name="reason" required maxlength="1000" autofocus; } }
                @if order.action == "pause" { label { "For how long (empty: until somebody resumes)" input name="lasting" placeholder="2h"; } }
                @if order.action == "reschedule" { label { "Due in, or at" input name="due" required placeholder="15m or 2026-11-23T14:05:00Z" autofocus; } }
                div.actions {
                    button class=(class) { (word.verb) }
                    a.button href=(back(&frame, &order)) { "No, go back" }
                }
            }
        }
    };
    html(frame.page(&title, "-", &body))
}

/// Where somebody came from who changes their mind.
fn back(frame: &Frame, order: &Order) -> String {
    let topic = order.jobs.topic.as_str();
    if order.action.ends_with("_schedule") {
        frame.to("schedules", &[("topic", topic)])
    } else if order.is_bulk() {
        frame.to("jobs", &order.jobs.query())
    } else if order.id.is_empty() {
        frame.to("topic", &[("topic", topic)])
    } else {
        frame.to("job", &[("topic", topic), ("id", &order.id)])
    }
}

/// Does it.
pub(crate) async fn act(State(app): State<Shared>, visit: Visit, Form(order): Form<Order>) -> Response {
    let frame = Frame::new(&app, &visit);
    let is_ours = visit.session.as_ref().is_some_and(|session| session.sent(&app.access.0, &order.form_token));
    if !is_ours {
        audit(&visit.user, &order.action, &order.jobs.topic, &order.id, "refused: the form has no valid token");
        return failure(&frame, &Failure::Forged);
    }
    let done =
        if order.is_bulk() { many(&app, &frame, &visit, order).await } else { one(&app, &frame, &visit, &order).await };
    done.unwrap_or_else(|error| failure(&frame, &error))
}

async fn one(app: &Shared, frame: &Frame, visit: &Visit, order: &Order) -> Result<Response, Failure> {
    let change = change(&order.action, &order.id, &order.reason, &order.lasting, &order.due)?;
    let topic = order.jobs.topic.as_str();
    let applied = apply(app, &visit.user, topic, change).await?;
    let said = if applied.changed { order.action.as_str() } else { "nothing" };
    let word = WORDS.iter().find(|word| word.action == order.action);
    let undo = word.map(|word| word.reverse).filter(|_| applied.changed).unwrap_or_default();
    let to = match order.action.as_str() {
        action if action.ends_with("_schedule") => frame.to("schedules", &[("topic", topic), ("done", said)]),
        _ if order.id.is_empty() => frame.to("topic", &[("topic", topic), ("done", said), ("undo", undo)]),
        _ => frame.to("job", &[("topic", topic), ("id", &order.id), ("done", said)]),
    };
    Ok(confirmed(to))
}

async fn many(app: &Shared, frame: &Frame, visit: &Visit, mut order: Order) -> Result<Response, Failure> {
    let (state, filter, after) = (state(&order.jobs.state)?, order.jobs.filter()?, order.jobs.cursor()?);
    let action = bulk_action(&order.action, &order.due)?;
    if let dq::inspect::BulkAction::Reschedule(due) = action {
        order.due = due.as_millis().to_string();
    }
    let stepped = step(app, &visit.user, &order.jobs.topic, state, filter, action, after).await?;
    let so_far = |text: &str| text.parse::<usize>().unwrap_or(0);
    order.changed = (so_far(&order.changed) + stepped.changed).to_string();
    order.looked_at = (so_far(&order.looked_at) + stepped.looked_at).to_string();
    let next = stepped.next.as_ref();
    order.jobs.after_at = next.map(|next| next.at.as_millis().to_string()).unwrap_or_default();
    order.jobs.after_id = next.map(|next| next.id.clone()).unwrap_or_default();
    Ok(html(progress(frame, &order, next.is_none())))
}
