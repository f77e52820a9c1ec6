//! What the pages around a change say.

use maud::{Markup, html};

use super::Order;
use crate::pages::Frame;

/// What a change is called, does, and is undone by.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) action: &'static str,
    pub(super) verb: &'static str,
    pub(super) what: &'static str,
    pub(super) done: &'static str,
    pub(super) undo: &'static str,
    /// The action that undoes it at once.
    pub(super) reverse: &'static str,
    pub(super) needs_reason: bool,
}

const fn word(
    action: &'static str,
    verb: &'static str,
    what: &'static str,
    done: &'static str,
    undo: &'static str,
) -> Word {
    Word { action, verb, what, done, undo, reverse: "", needs_reason: false }
}

pub(super) const WORDS: [Word; 12] = [
    Word {
        reverse: "resume",
        needs_reason: true,
        ..word(
            "pause",
            "Pause the topic",
            "No node takes its jobs any more. Those that run go on.",
            "The topic is paused.",
            "resume it",
        )
    },
    Word {
        reverse: "pause",
        ..word("resume", "Resume the topic", "Nodes take its jobs again.", "The topic is resumed.", "pause it again")
    },
    Word {
        reverse: "undrain",
        needs_reason: true,
        ..word(
            "drain",
            "Drain the topic",
            "It refuses new jobs, and nodes run only what is due already.",
            "The topic drains.",
            "end the drain",
        )
    },
    Word {
        reverse: "drain",
        ..word("undrain", "End the drain", "The topic takes new jobs again.", "The drain has ended.", "drain it again")
    },
    word(
        "requeue",
        "Requeue",
        "It becomes due now, with all its attempts.",
        "The job was requeued.",
        "delete it before a node takes it",
    ),
    word("delete", "Delete", "The job is removed; a running one when its run ends.", "The job was deleted.", ""),
    word("ack", "Ack", "The job counts as done, and its handler does not see it again.", "The job was acked.", ""),
    word(
        "run_now",
        "Run now",
        "It becomes due now, and the next free node takes it.",
        "The job is due now.",
        "reschedule it before a node takes it",
    ),
    word(
        "reschedule",
        "Reschedule",
        "It gets another due time.",
        "The job has another due time.",
        "reschedule it again",
    ),
    Word {
        needs_reason: true,
        ..word(
            "pause_schedule",
            "Pause the schedule",
            "It adds no jobs until somebody resumes it.",
            "The schedule is paused.",
            "resume it",
        )
    },
    word("resume_schedule", "Resume the schedule", "It adds jobs again.", "The schedule is resumed.", "pause it again"),
    word(
        "remove_schedule",
        "Remove the schedule",
        "It adds no more jobs. Those that it has added stay.",
        "The schedule was removed.",
        "",
    ),
];

/// What a change is about.
pub(super) fn about(order: &Order) -> Markup {
    let names = [
        ("Topic", &order.jobs.topic),
        (if order.action.ends_with("_schedule") { "Schedule" } else { "Job" }, &order.id),
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
    let more = [("action", order.action.as_str()), ("id", order.id.as_str())];
    html! { @for (name, value) in query.into_iter().chain(more) { @if !value.is_empty() { input type="hidden" name=(name) value=(value); } } }
}

/// How far a bulk change has come.
pub(super) fn progress(frame: &Frame, order: &Order, is_over: bool) -> Markup {
    let so_far =
        html! { p.sum role="status" { b { (order.changed) } " changed of " b { (order.looked_at) } " looked at." } };
    let kept = [
        ("due", &order.due),
        ("changed", &order.changed),
        ("looked_at", &order.looked_at),
        ("after_at", &order.jobs.after_at),
        ("after_id", &order.jobs.after_id),
    ];
    let back = frame.to("jobs", &[("topic", &order.jobs.topic), ("state", &order.jobs.state)]);
    let title = if is_over { "All done" } else { "Working on it" };
    let body = html! {
        section.panel.confirm {
            h1 { (title) }
            (about(order))
            (so_far)
            @if is_over { p { a.button href=(back) { "To the jobs" } } } @else {
                form method="post" action=(frame.to("act", &[])) data-go-on="1" {
                    (frame.proof())
                    (fields(order))
                    @for (name, value) in kept { input type="hidden" name=(name) value=(value); }
                    div.actions { button.primary { "Go on with the next 100" } a.button href=(back) { "Stop here" } }
                }
            }
        }
    };
    frame.page(title, "-", &body)
}

/// What was just done, above the page that shows its result, with what undoes it.
pub(crate) fn done(frame: &Frame, action: &str, undo: &str, topic: &str) -> Markup {
    let said = WORDS.iter().find(|word| word.action == action).map(|word| word.done);
    let said =
        said.or_else(|| (action == "nothing").then_some("Nothing changed: it had gone, moved, or was so already."));
    let undo = WORDS.iter().find(|word| word.action == undo && !frame.read_only);
    html! {
        @if let Some(said) = said {
            p.notice.good role="status" { (said) @if let Some(undo) = undo {
                " " a href=(frame.to("confirm", &[("action", undo.action), ("topic", topic)])) { "Undo: " (undo.verb) "…" }
            } }
        }
    }
}
