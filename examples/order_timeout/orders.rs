//! The events of the shop, as they are read from a file: one JSON object a line.
//!
//! A line that cannot be used is reported with its number and skipped; the others count.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What happened to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Happening {
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
    pub(crate) event: Happening,
}

/// A line that cannot be used, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLine {
    pub(crate) number: usize,
    pub(crate) why: String,
}

/// The usable events in the order of their time, and the lines that are not.
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
            (Happening::Placed, None) => {
                placed.insert(order, number);
                return true;
            }
            (Happening::Placed, Some(first)) => format!("order {order} was placed by line {first} already"),
            (_, None) => format!("order {order} was not placed before"),
            (_, Some(_)) => return true,
        };
        bad.push(BadLine { number, why });
        false
    });
    bad.sort_by_key(|bad| bad.number);
    (events.into_iter().map(|(_, event)| event).collect(), bad)
}
