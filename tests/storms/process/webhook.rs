//! The caller who ends parked jobs from outside.

use std::sync::Arc;
use std::time::Duration;

use dq::Provider;
use dq::job::Fence;
use dq::provider::{CommandOutcome, TopicProvider};
use fastrand::Rng;
use futures_util::future::join_all;

use super::callers::sent;
use super::work::Kind;
use crate::ledger::{Entry, Ledger, Verb};

/// How often it asks for parked jobs.
const PERIOD: Duration = Duration::from_millis(200);

/// Acks parked jobs, whichever run parked them or by its fence, and requeues some.
pub(super) struct Webhook {
    pub(super) provider: Provider,
    pub(super) ledger: Arc<Ledger>,
    pub(super) rng: Rng,
    /// How many processes share the jobs, and which of them this one is.
    pub(super) share: [u64; 2],
}

impl Webhook {
    /// Runs for as long as the process.
    pub(super) async fn run(mut self) {
        let mut period = tokio::time::interval(PERIOD);
        let topic = self.provider.topic(Kind::Park.topic()).expect("the name is valid");
        loop {
            period.tick().await;
            let mut pages = topic.unacked().per_page(1_000);
            // A query that fails is repeated with the next period.
            let Ok(Some(page)) = pages.next_page().await else { continue };
            let mut rng = self.rng.fork();
            let commands = page.into_iter().filter_map(|parked| {
                let id = parked.id.to_string();
                let fence = parked.details.ok().and_then(|details| details.parked_by);
                let is_own = id.bytes().map(u64::from).sum::<u64>() % self.share[0] == self.share[1];
                is_own.then(|| self.end(&topic, id, fence, rng.u32(0..10)))
            });
            let commands: Vec<_> = commands.collect();
            join_all(commands).await;
        }
    }

    async fn end(&self, topic: &TopicProvider, id: String, fence: Option<Fence>, drawn: u32) {
        let verb = match (drawn, fence) {
            (0..2, _) => Verb::Requeue,
            (2..5, Some(_)) => Verb::AckRun,
            _ => Verb::Ack,
        };
        self.ledger.note(Entry::Sending { id: id.clone(), verb });
        let answer = match (verb, fence) {
            (Verb::Requeue, _) => topic.requeue(&id).await,
            (Verb::AckRun, Some(fence)) => topic.ack(&id).fence(fence).await,
            _ => topic.ack(&id).await,
        };
        self.ledger.note(Entry::Sent { id, verb, answer: sent(answer.map(CommandOutcome::from)) });
    }
}
