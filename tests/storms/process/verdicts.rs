//! The answers of the store to the outcomes of runs, and which jobs will run alone, as a program learns of them: dq reports each to `tracing`.

use std::fmt::Debug;
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::ledger::{Entry, Ledger};

/// Writes down every verdict, and each job that will run alone.
#[derive(Debug)]
pub struct Verdicts(pub Arc<Ledger>);

/// Whether an event may be one of them.
pub fn is_wanted(metadata: &Metadata<'_>) -> bool {
    let is_verdict = *metadata.level() == Level::DEBUG && metadata.target() == "dq::context::topic::outcomes::report";
    metadata.is_event() && (is_verdict || metadata.target() == "dq::context::topic::runs::isolation")
}

/// The fields of a verdict.
#[derive(Debug, Default)]
struct Fields {
    id: String,
    fence: u64,
    outcome: String,
    verdict: String,
    /// The ids of jobs that will not run as usual, and how they will.
    ids: String,
    message: String,
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
        match field.name() {
            "job.id" => self.id = format!("{value:?}"),
            "ids" => self.ids = format!("{value:?}"),
            "message" => self.message = format!("{value:?}"),
            _ => {}
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
        let Fields { id, fence, outcome, verdict: word, ids, message } = fields;
        if message.contains("alone") {
            // The ids of a storm need no escapes.
            let ids = serde_json::from_str(&ids).expect("it is a list of texts");
            self.0.note(Entry::Alone { ids });
        }
        if !word.is_empty() {
            let (change, verdict) = (change(&outcome).to_owned(), verdict(&word).to_owned());
            self.0.note(Entry::Settled { id, fence, change, verdict });
        }
    }
}
