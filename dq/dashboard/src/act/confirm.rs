//! The page that asks, and the request that does it.

use axum::Form;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use dq::job;
use maud::html;

use super::pages::{Phase, about, fields, progress};
use super::words::Word;
use super::{Order, apply, bulk_action, step};
use crate::app::{App, Shared};
use crate::asked::state;
use crate::audit::audit;
use crate::failure::Failure;
use crate::frame::{Frame, confirmed, failure, html};
use crate::show::{jobs, number};
use crate::visit::Visit;

/// Asks.
pub(crate) async fn confirm(State(app): State<Shared>, visit: Visit, Query(order): Query<Order>) -> Response {
    let frame = Frame::new(&app, &visit);
    let Some(word) = Word::of(&order.action) else {
        return failure(&frame, &Failure::NotThere("such action"));
    };
    match how_many(&app, &order).await {
        Ok(count) => html(ask(&frame, order, word, count)),
        Err(error) => failure(&frame, &error),
    }
}

/// How many jobs a bulk change is about, in words, and how many are in their state. `None`: it is about one thing.
async fn how_many(app: &App, order: &Order) -> Result<Option<(String, usize)>, Failure> {
    if !order.is_bulk() {
        return Ok(None);
    }
    let (state, filter, after) = (state(&order.jobs.state)?, order.jobs.filter()?, order.jobs.cursor()?);
    let page = app.inspector.jobs(&order.jobs.topic, state, &filter, after).await?;
    let topic = app.inspector.topic(&order.jobs.topic).await?;
    let all = match state {
        job::State::Delayed => topic.delayed,
        job::State::Running => topic.running,
        job::State::Unacked => topic.unacked,
        job::State::Dead => topic.dead,
        job::State::Done => topic.done,
    };
    let (matching, at_least) = (jobs(page.jobs.len()), if page.next.is_some() { " at least" } else { "" });
    Ok(Some((format!("{matching}{at_least}, of {} in this state", number(all)), all)))
}

fn ask(frame: &Frame, mut order: Order, word: &Word, count: Option<(String, usize)>) -> maud::Markup {
    let (how_many, all) = count.unwrap_or_default();
    let is_bulk = order.is_bulk();
    if is_bulk {
        order.all = all.to_string();
    }
    let title = if is_bulk { format!("{} all these jobs?", word.verb) } else { format!("{}?", word.verb) };
    // Nobody keeps the former time of each of many jobs.
    let undo = if is_bulk { "" } else { word.undo };
    let class = if undo.is_empty() { "danger" } else { "primary" };
    let body = html! {
        section.panel.confirm {
            h1 { (title) }
            (about(&order))
            @if is_bulk { p { b { (how_many) } ". They are changed in steps of 100, which you can stop." } }
            p { @if is_bulk { "For each of them: " (in_a_sentence(word.what)) } @else { (word.what) } }
            @if undo.is_empty() { p { b { "This cannot be undone." } } } @else { p.quiet { "Undo: " (undo) "." } }
            form method="post" action=(frame.to("act", &[])) {
                (frame.proof())
                (fields(&order))
                @if is_bulk { input type="hidden" name="all" value=(order.all); }
                @if order.action == "limit" { label { "How many" input name="value" required inputmode="numeric" autocomplete="off" autofocus; } }
                @if word.needs_reason { label { "Reason" input name="reason" required maxlength="1000" autofocus[order.action != "limit"]; } }
                @if matches!(order.action.as_str(), "pause" | "pause_group") { label { "For how long (empty: until you resume it)" input name="lasting" placeholder="2h"; } }
                @if order.action == "reschedule" { label { "Due in, or at" input name="due" required value=(order.due) placeholder="15m or 2026-11-23T14:05:00Z" autofocus; } }
                div.actions {
                    button class=(class) { (word.verb) }
                    a.button href=(back(frame, &order)) { "No, go back" }
                }
            }
        }
    };
    frame.page(&title, "-", &body)
}

fn in_a_sentence(text: &str) -> String {
    text.char_indices().map(|(at, letter)| if at == 0 { letter.to_ascii_lowercase() } else { letter }).collect()
}

/// Where somebody came from who changes their mind.
fn back(frame: &Frame, order: &Order) -> String {
    let topic = order.jobs.topic.as_str();
    match order.of().1 {
        _ if order.is_bulk() => frame.to("jobs", &order.jobs.query()),
        "job" => frame.to("job", &[("topic", topic), ("id", &order.id)]),
        page => frame.to(page, &[("topic", topic)]),
    }
}

/// Does it.
pub(crate) async fn act(State(app): State<Shared>, visit: Visit, Form(order): Form<Order>) -> Response {
    let frame = Frame::new(&app, &visit);
    if let Err(error) = app.sessions.sent(&app.access.0, visit.session.as_ref(), &order.form_token, &order.key) {
        let outcome = format!("refused: {error}");
        audit(&visit.user, &order.action, &order.jobs.topic, &order.id, &outcome);
        return failure(&frame, &error);
    }
    let done =
        if order.is_bulk() { many(&app, &frame, &visit, order).await } else { one(&app, &frame, &visit, &order).await };
    done.unwrap_or_else(|error| failure(&frame, &error))
}

async fn one(app: &Shared, frame: &Frame, visit: &Visit, order: &Order) -> Result<Response, Failure> {
    let topic = order.jobs.topic.as_str();
    let applied = apply(app, &visit.user, topic, &order.change()?).await?;
    let said = if applied.changed { order.action.as_str() } else { "nothing" };
    let undo = Word::of(&order.action).map(|word| word.reverse).filter(|_| applied.changed).unwrap_or_default();
    let former = applied.former.map(|due| due.to_string()).unwrap_or_default();
    let query = [("topic", topic), ("id", order.id.as_str()), ("done", said), ("undo", undo), ("former", &former)];
    let to = frame.to(order.of().1, &query);
    Ok(confirmed(to))
}

async fn many(app: &Shared, frame: &Frame, visit: &Visit, mut order: Order) -> Result<Response, Failure> {
    let (state, filter, after) = (state(&order.jobs.state)?, order.jobs.filter()?, order.jobs.cursor()?);
    let action = bulk_action(&order.action, &order.due)?;
    if let dq::inspect::BulkAction::Reschedule(due) = action {
        order.due = due.to_string();
    }
    let stepped = match step(app, &visit.user, &order.jobs.topic, state, filter, action, after).await {
        Ok(stepped) => stepped,
        // Whoever asked for it can go on from here, once the store answers again.
        Err(error) if error.status() == StatusCode::SERVICE_UNAVAILABLE => {
            let page = progress(frame, &order, &Phase::Failed(&error));
            return Ok((error.status(), html(page)).into_response());
        }
        Err(error) => return Err(error),
    };
    let so_far = |text: &str| text.parse::<usize>().unwrap_or(0);
    order.changed = (so_far(&order.changed) + stepped.changed).to_string();
    order.looked_at = (so_far(&order.looked_at) + stepped.looked_at).to_string();
    let phase = if stepped.next.is_none() { Phase::Over } else { Phase::Working };
    let next = stepped.next.map(|(at, id)| (at.to_string(), id));
    (order.jobs.after_at, order.jobs.after_id) = next.unwrap_or_default();
    Ok(html(progress(frame, &order, &phase)))
}
