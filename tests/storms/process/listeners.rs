//! The listeners of a node, which write down every run.

use std::sync::Arc;
use std::time::Duration;

use dq::prelude::*;
use serde::{Deserialize, Serialize};

use super::work::{Kind, Work, adds_member, next_of, set_of};
use crate::ledger::{End, Entry, Ledger, micros, now};

/// A run whose handler began. If dq drops it, the file says so.
struct Run<'a> {
    ledger: &'a Ledger,
    id: &'a str,
    fence: u64,
    end: Option<End>,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let end = self.end.unwrap_or(End::Dropped);
        self.ledger.note(Entry::End { id: self.id.to_owned(), fence: self.fence, end });
    }
}

async fn handle<P: Send + Sync>(
    ledger: &Ledger,
    kind: Kind,
    job: &Job<P>,
    work: &Work,
    channel: Channel,
) -> Result<Decided, JobError> {
    let due = micros(job.due());
    let (id, fence) = (job.id().as_str(), job.fence().0);
    ledger.note(Entry::Start { id: id.to_owned(), fence, due, attempt: job.attempt() });
    if kind == Kind::Last {
        let count = |name: &str| job.header(name).and_then(|count| count.parse().ok());
        let counts = ["dq-set-acked", "dq-set-dead", "dq-set-left"].map(|name| count(name).unwrap_or(u64::MAX));
        ledger.note(Entry::Counts { id: id.to_owned(), counts });
    }
    let mut run = Run { ledger, id, fence, end: None };
    let handler_takes = Duration::from_millis(work.takes);
    tokio::time::sleep(handler_takes).await;
    let end = work.end(kind, job.attempt(), now());
    run.end = Some(end);
    drop(run);
    match end {
        End::Ack => Ok(match (kind, next_of(id)) {
            (Kind::First, Some(next_id)) => {
                channel.ack().then(|next| _ = next.add(ToSecond(work.clone())).id(next_id))?
            }
            (Kind::Second, Some(next_id)) => {
                channel.ack().then(|next| _ = next.add(ToThird(work.clone())).id(next_id))?
            }
            _ => match adds_member(id).zip(set_of(id)) {
                Some((next_id, (set, _))) => channel
                    .ack()
                    .then(|next| _ = next.add(ToLine(work.clone())).id(next_id).member_of::<ToLast>(set))?,
                None => channel.ack(),
            },
        }),
        End::Rejoin(after) => Ok(channel.rejoin_after(Duration::from_millis(after))),
        End::Park => Ok(channel.park()),
        // Every other failure is a panic, of which nothing is printed.
        End::Failed(_) if job.attempt() % 2 == 1 => std::panic::resume_unwind(Box::new("as the job wants")),
        End::Failed(_) | End::Dropped => Err("as the job wants".into()),
    }
}

macro_rules! listener {
    ($payload:ident, $listener:ident, $kind:ident, $topic:literal, $retry:literal $(, $limit:ident = $most:literal)?) => {
        #[derive(Debug, Serialize, Deserialize, DelayJob)]
        #[job(topic = $topic)]
        struct $payload(Work);

        #[delay_listener(topic = $topic, retry = $retry $(, $limit = $most)?)]
        struct $listener {
            ledger: Arc<Ledger>,
        }

        impl DelayListener for $listener {
            type Job = $payload;

            async fn on_due(&self, job: Job<$payload>, channel: Channel) -> Result<Decided, JobError> {
                handle(&self.ledger, Kind::$kind, &job, &job.0, channel).await
            }

            async fn on_exhausted(&self, job: Job<$payload>, failure: &Failure) {
                let (id, fence) = (job.id().to_string(), job.fence().0);
                self.ledger.note(Entry::Final { id, fence, cause: failure.cause.as_str().to_owned() });
            }
        }
    };
}

listener!(ToAck, OnAck, Ack, "ack", "none");
listener!(ToRetry, OnRetry, Retry, "retry", "200ms x 20");
listener!(ToRejoin, OnRejoin, Rejoin, "rejoin", "none", cluster_concurrency = 5); // `SLOTS`
listener!(ToPark, OnPark, Park, "park", "none");
listener!(ToDelete, OnDelete, Deleted, "deleted", "none");
listener!(ToCut, OnCut, Cut, "cut", "none");
listener!(ToDie, OnDeath, Dead, "dead", "200ms x 2");
listener!(ToGroup, OnGroup, Grouped, "grouped", "200ms x 20", group_concurrency = 1);
listener!(ToFirst, OnFirst, First, "first", "none");
listener!(ToSecond, OnSecond, Second, "second", "none");
listener!(ToThird, OnThird, Third, "third", "none");
listener!(ToRow, OnRow, Row, "row", "none");
listener!(ToLine, OnLine, Line, "line", "none");
listener!(ToLast, OnLast, Last, "last", "none");
