//! The groups of a topic, on its page.

use dq::inspect::{GroupSeat, GroupSummary, GroupsPage};
use dq::time::Timestamp;
use maud::{Markup, html};

use super::table;
use crate::frame::Frame;
use crate::show::{moment, number};

/// How many rows the table has.
const MAX_ROWS: usize = 10;

const COLUMNS: [&str; 4] = ["Group", "#Waiting", "Jobs that run, or for which the group waits", "State"];

/// The first groups, those that are paused or stopped before the others.
pub(super) fn groups_of(frame: &Frame, page: &GroupsPage, now: Timestamp) -> Markup {
    let topic = page.topic.as_str();
    let mut groups: Vec<_> = page.groups.iter().collect();
    groups.sort_by_key(|group| group.stopped_by.is_none() && group.pause.is_none());
    let is_cut = groups.len() > MAX_ROWS || page.next.is_some();
    html! {
        section.panel {
            h2 { "Groups" }
            (table("Groups", "Groups of the topic that have jobs or are paused", &COLUMNS,
                &html! { @for group in groups.iter().take(MAX_ROWS) { (row(frame, topic, group, now)) } }))
            @if is_cut { p.quiet { "There are more: " code { "dq groups list " (topic) } } }
        }
    }
}

fn row(frame: &Frame, topic: &str, group: &GroupSummary, now: Timestamp) -> Markup {
    let name = group.group.as_str();
    html! { tr {
        th scope="row" { (name) }
        td.n { (number(group.waiting)) }
        td { @for seat in group.seats.iter().take(3) { (seat_of(frame, topic, seat, now)) " " } }
        td {
            @if let Some(pause) = &group.pause {
                span.badge.odd { "paused" } " by " b { (pause.by) } ", " (moment(pause.since, now)) ": " (pause.reason) " "
                @if let Some(until) = pause.until { "until " (moment(until, now)) " " }
            }
            @if let Some(job) = &group.stopped_by { span.badge.bad { "stopped" } " by " code { (job) } " " }
            @if !frame.read_only {
                @if group.pause.is_none() { (button(frame, topic, name, "pause_group", "Pause…")) }
                @if group.pause.is_some() || group.stopped_by.is_some() { (button(frame, topic, name, "resume_group", "Resume…")) }
            }
        }
    } }
}

fn button(frame: &Frame, topic: &str, group: &str, action: &str, text: &str) -> Markup {
    html! { a.button href=(frame.to("confirm", &[("action", action), ("topic", topic), ("id", group)])) { (text) } " " }
}

fn seat_of(frame: &Frame, topic: &str, seat: &GroupSeat, now: Timestamp) -> Markup {
    html! {
        a href=(frame.to("job", &[("topic", topic), ("id", seat.id.as_str())])) { code { (seat.id) } } " " (seat.state)
        @if let Some(node) = &seat.node { " on " code { (node) } }
        @if let Some(at) = seat.at { ", " (moment(at, now)) }
    }
}
