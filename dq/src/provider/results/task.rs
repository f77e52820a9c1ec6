//! The task that waits for the results of a topic, for all callers of a provider.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::super::events::{Event, Events, Source};
use super::table::{PAUSES, Table, Waiter};
use crate::environment::or_never;
use crate::job::JobId;
use crate::store::step::MAX_JOBS;
use crate::store::{StoreError, Stored};

/// How long the task listens after the last caller has left, so that one wait after the other needs one subscription.
const LINGER: Duration = Duration::from_secs(10);

/// What callers tell the task.
#[derive(Debug)]
pub(super) enum Message {
    Wait(JobId, Waiter),
    Leave(JobId, u64),
}

/// A query for jobs, on its way.
struct Look {
    ids: Arc<[JobId]>,
    left: Duration,
    answer: BoxFuture<'static, Result<Vec<Option<Stored>>, StoreError>>,
}

/// What comes next.
enum Next {
    /// The inbox of the topic is gone, and with it all callers.
    Over,
    Told(Message),
    Event(Event),
    Answer(Result<Vec<Option<Stored>>, StoreError>),
    Time,
}

pub(super) struct Watching {
    source: Source,
    messages: mpsc::UnboundedReceiver<Message>,
    table: Table,
    /// While callers wait, and for a while after.
    events: Option<Events>,
    /// The subscription stands, or cannot be made just now. Before that a query could miss what comes between it and the first event.
    is_settled: bool,
    /// When the task stops to listen, if no caller comes before.
    lingers_until: Duration,
    /// All jobs were looked at then, or will be.
    all_at: Duration,
    look: Option<Look>,
}

impl Watching {
    pub(super) fn new(source: Source, messages: mpsc::UnboundedReceiver<Message>) -> Self {
        Self {
            source,
            messages,
            table: Table::default(),
            events: None,
            is_settled: false,
            lingers_until: Duration::ZERO,
            all_at: Duration::ZERO,
            look: None,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let now = self.source.environment.now();
            self.listen_while_awaited(now);
            self.look_at_due(now);
            match self.next().await {
                Next::Over => return,
                Next::Told(message) => self.on_message(message),
                Next::Event(event) => self.on_event(event),
                Next::Answer(answer) => self.on_answer(answer),
                Next::Time => {}
            }
        }
    }

    fn listen_while_awaited(&mut self, now: Duration) {
        if !self.table.is_empty() {
            self.lingers_until = now + LINGER;
            self.events.get_or_insert_with(|| Events::new(self.source.clone()));
        } else if now >= self.lingers_until {
            (self.events, self.is_settled) = (None, false);
        }
    }

    /// One query at a time: what becomes due meanwhile goes with the next one.
    fn look_at_due(&mut self, now: Duration) {
        if self.look.is_some() {
            return;
        }
        let ids: Arc<[JobId]> = self.table.take_due(now, MAX_JOBS).into();
        if ids.is_empty() {
            return;
        }
        let (source, asked) = (self.source.clone(), Arc::clone(&ids));
        let answer = Box::pin(async move { source.answered("get", source.store.get(&source.topic, &asked)).await });
        self.look = Some(Look { ids, left: now, answer });
    }

    async fn next(&mut self) -> Next {
        let lingers = self.events.as_ref().filter(|_| self.table.is_empty()).map(|_| self.lingers_until);
        let at = if self.look.is_none() { self.table.next() } else { None };
        let at = at.into_iter().chain(lingers).min();
        let Self { look, events, messages, source, .. } = self;
        tokio::select! {
            biased;
            answer = or_never(look.as_mut().map(|look| &mut look.answer)) => Next::Answer(answer),
            message = messages.recv() => message.map_or(Next::Over, Next::Told),
            event = or_never(events.as_mut().map(Events::next)) => event.map_or(Next::Over, Next::Event),
            () = or_never(at.map(|at| source.environment.sleep_until(at))) => Next::Time,
        }
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::Wait(id, waiter) => {
                let now = self.source.environment.now();
                self.table.wait(&id, waiter, if self.is_settled { now } else { now + PAUSES.0 });
            }
            Message::Leave(id, number) => self.table.leave(&id, number),
        }
    }

    fn on_event(&mut self, event: Event) {
        let now = self.source.environment.now();
        match event {
            Event::Job { id, what, .. } => self.table.moved(&id, &what, now),
            Event::Listening => {
                (self.is_settled, self.all_at) = (true, now);
                self.table.look_at_all(now);
            }
            // The reader of a busy topic may miss events again and again, and each look reads all jobs.
            Event::Missed(_) => self.look_at_all_soon(now),
            Event::Interrupted(_) => {
                self.is_settled = true;
                self.look_at_all_soon(now);
            }
        }
    }

    /// Looks at all jobs, a pause after the last time at the earliest.
    fn look_at_all_soon(&mut self, now: Duration) {
        if self.all_at <= now {
            self.all_at = (self.all_at + PAUSES.0).max(now);
            self.table.look_at_all(self.all_at);
        }
    }

    fn on_answer(&mut self, answer: Result<Vec<Option<Stored>>, StoreError>) {
        let Some(Look { ids, left, .. }) = self.look.take() else { return };
        let now = self.source.environment.now();
        match answer {
            Ok(found) => self.table.answered(&ids, found, left, now),
            Err(error) => self.table.failed(&ids, error, left, now),
        }
    }
}
