//! Records what dq reports to `tracing`.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// Records every span and event of dq as a line; the line of an event begins with the name of its span.
#[derive(Clone, Default)]
pub struct Traces(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lines: Vec<String>,
    /// The events alone, without the span.
    events: Vec<(Level, String)>,
    spans: BTreeMap<u64, String>,
    /// The name, level and fields of each span.
    described: Vec<(&'static str, Level, Vec<&'static str>)>,
    entered: Vec<u64>,
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Traces {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("dq::")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = Text(span.metadata().name().to_owned());
        span.record(&mut text);
        let mut state = self.0.lock().unwrap();
        state.lines.push(text.0);
        let fields = span.fields().iter().map(|field| field.name()).collect();
        state.described.push((span.metadata().name(), *span.metadata().level(), fields));
        let id = state.spans.len() as u64 + 1;
        state.spans.insert(id, span.metadata().name().to_owned());
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut state = self.0.lock().unwrap();
        let within = state.entered.last().map(|id| format!("{}: ", state.spans[id])).unwrap_or_default();
        let mut text = Text(String::new());
        event.record(&mut text);
        state.lines.push(format!("{within}{}", text.0));
        state.events.push((*event.metadata().level(), text.0));
    }

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }
}

impl Traces {
    /// The spans and events since the last call, in order.
    pub fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().lines)
    }

    /// The name, level and fields of each span so far.
    pub fn spans(&self) -> Vec<(&'static str, Level, Vec<&'static str>)> {
        self.0.lock().unwrap().described.clone()
    }

    /// The events of this level since the last call of this method for it.
    pub fn events(&self, level: Level) -> Vec<String> {
        let mut state = self.0.lock().unwrap();
        let (of_level, others) = std::mem::take(&mut state.events).into_iter().partition(|(of, _)| *of == level);
        state.events = others;
        let of_level: Vec<(Level, String)> = of_level;
        of_level.into_iter().map(|(_, text)| text).collect()
    }
}

/// Subscribes on this thread.
pub fn subscribe() -> (Traces, DefaultGuard) {
    let traces = Traces::default();
    let guard = tracing::subscriber::set_default(traces.clone());
    (traces, guard)
}
