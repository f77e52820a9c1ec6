//! The answers of the store to the outcomes of runs, as a program learns of them: dq reports each to `tracing`.

use std::fmt::Debug;
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::ledger::{Entry, Ledger};

/// Writes down every verdict.
#[derive(Debug)]
pub struct Verdicts(pub Arc<Ledger>);

/// Whether an event may be a verdict.
pub fn is_wanted(metadata: &Metadata<'_>) -> bool {
    *metadata.level() == Level::DEBUG
        && metadata.target() == "dq::context::topic::outcomes::report"
        && metadata.is_event()
}

/// The fields of a verdict.
#[derive(Debug, Default)]
struct Fields {
    id: String,
    fence: u64,
    outcome: String,
    verdict: String,
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "fence" {
            self.fence = value;
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "outcome" => value.clone_into(&mut self.outcome),
            "verdict" => value.clone_into(&mut self.verdict),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "job.id" {
            self.id = format!("{value:?}");
        }
    }
}

/// The change that the log calls by this word.
fn change(outcome: &str) -> &str {
    match outcome {
        "acked" => "Ack",
        "rejoined" => "Rejoin",
        "retried" => "Retry",
        "given back" => "Rollback",
        "parked" => "Park",
        "DEAD" => "Dead",
        "dropped" => "Drop",
        other => other,
    }
}

/// The verdict that the log calls by this word.
fn verdict(word: &str) -> &str {
    match word {
        "taken" => "Done",
        "stale" => "Stale",
        "dropped" => "Dropped",
        "later" => "Later",
        "failed" => "Failed",
        other => other,
    }
}

impl<S: Subscriber> Layer<S> for Verdicts {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields { id, fence, outcome, verdict: word } = fields;
        if !word.is_empty() {
            let (change, verdict) = (change(&outcome).to_owned(), verdict(&word).to_owned());
            self.0.note(Entry::Settled { id, fence, change, verdict });
        }
    }
}
