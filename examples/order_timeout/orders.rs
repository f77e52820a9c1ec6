//! Reads the events of the shop from a file with one JSON object per line.
//!
//! A line that cannot be used is reported with its number and skipped.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What happened to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventKind {
    Placed,
    Paid,
    Cancelled,
}

/// One line: `{"at_ms":1200,"order":17,"event":"paid"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Event {
    /// When it happens, in milliseconds from the start of the day.
    pub(crate) at_ms: u64,
    pub(crate) order: u64,
    pub(crate) event: EventKind,
}

/// A line that cannot be used, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLine {
    pub(crate) number: usize,
    pub(crate) why: String,
}

/// Returns the usable events, sorted by time, and the lines that cannot be used.
pub(crate) fn read(text: &str) -> (Vec<Event>, Vec<BadLine>) {
    let (mut events, mut bad) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Event>(line) {
            Ok(event) => events.push((number, event)),
            Err(error) => bad.push(BadLine { number, why: error.to_string() }),
        }
    }
    events.sort_by_key(|(number, event)| (event.at_ms, *number));
    let mut placed = BTreeMap::new();
    events.retain(|&(number, Event { order, event, .. })| {
        let first = placed.get(&order).copied();
        let why = match (event, first) {
            (EventKind::Placed, None) => {
                placed.insert(order, number);
                return true;
            }
            (EventKind::Placed, Some(first)) => format!("order {order} was already placed by line {first}"),
            (_, None) => format!("order {order} was never placed"),
            (_, Some(_)) => return true,
        };
        bad.push(BadLine { number, why });
        false
    });
    bad.sort_by_key(|bad| bad.number);
    (events.into_iter().map(|(_, event)| event).collect(), bad)
}
