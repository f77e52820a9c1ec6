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
    *metadata.level() == Level::DEBUG && metadata.target() == "dq::context::topic::ack" && metadata.is_event()
}

/// The fields of a verdict.
#[derive(Debug, Default)]
struct Fields {
    id: String,
    fence: u64,
    change: String,
    verdict: String,
    is_verdict: bool,
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "fence" {
            self.fence = value;
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = match field.name() {
            "job.id" => &mut self.id,
            "change" => &mut self.change,
            "verdict" => &mut self.verdict,
            "message" => {
                self.is_verdict = format!("{value:?}") == "settled";
                return;
            }
            _ => return,
        };
        *text = format!("{value:?}");
    }
}

impl<S: Subscriber> Layer<S> for Verdicts {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields { id, fence, change, verdict, is_verdict } = fields;
        if is_verdict {
            self.0.note(Entry::Settled { id, fence, change, verdict });
        }
    }
}
