//! The answers of the store to the outcomes of runs, which jobs will run alone, and until when leases are valid, as a program learns of them: dq
//! reports each to `tracing`.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::ledger::{Entry, Ledger, now};

/// A lease that is valid for this much longer, in µs, is written down again. Nearly every answer of the store renews it.
const LONGER: u64 = 100_000;

/// Writes down every verdict, each job that will run alone, and until when the leases of the node are valid.
#[derive(Debug)]
pub struct Verdicts {
    ledger: Arc<Ledger>,
    /// Until when they are, by topic, as it was written down last.
    leases: Mutex<HashMap<String, u64>>,
}

impl Verdicts {
    pub fn new(ledger: Arc<Ledger>) -> Self {
        Self { ledger, leases: Mutex::default() }
    }

    fn renewed(&self, topic: String, until: u64) {
        let mut leases = self.leases.lock().expect("no writer panics but at the end of the storm");
        if leases.get(&topic).is_none_or(|last| *last + LONGER <= until) {
            leases.insert(topic.clone(), until);
            self.ledger.note(Entry::Lease { topic, until });
        }
    }
}

/// The target of renewals.
const LEASES: &str = "dq::context::topic::lease";

/// Whether an event may be one of them.
pub fn is_wanted(metadata: &Metadata<'_>) -> bool {
    let is_verdict = *metadata.level() == Level::DEBUG && metadata.target() == "dq::context::topic::outcomes::ack";
    let others = ["dq::context::topic::runs::isolation", LEASES];
    metadata.is_event() && (is_verdict || others.contains(&metadata.target()))
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
    topic: String,
    /// For how many µs a lease is valid.
    good_for: Option<u64>,
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "fence" => self.fence = value,
            "good_for_us" => self.good_for = Some(value),
            _ => {}
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
            "topic" => self.topic = format!("{value:?}"),
            "message" => self.message = format!("{value:?}"),
            _ => {}
        }
    }
}

impl<S: Subscriber> Layer<S> for Verdicts {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // The time is taken first, so that the lease is not valid for longer than it says.
        let (at, mut fields) = (now(), Fields::default());
        event.record(&mut fields);
        let Fields { id, fence, outcome, verdict, ids, message, topic, good_for } = fields;
        if let Some(good_for) = good_for {
            return self.renewed(topic, at + good_for);
        }
        if message.contains("alone") {
            // The ids of a storm need no escapes.
            let ids = serde_json::from_str(&ids).expect("it is a list of texts");
            self.ledger.note(Entry::Alone { ids });
        }
        if !verdict.is_empty() {
            self.ledger.note(Entry::Settled { id, fence, change: outcome, verdict });
        }
    }
}
