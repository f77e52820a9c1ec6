//! The machine alone: no store, no link, no handler and no clock.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::*;
use crate::config::{NodeSettings, TopicSettings};
use crate::context::node_permits::NodePermits;
use crate::context::topic::run::{Ended, LeaseEnd, RunId};
use crate::context::topic::stats::TopicStats;
use crate::context::topic::window::WaitingBytes;
use crate::environment::{Environment, Seeded};
use crate::job::{AppName, Codec, Fence, Metadata, Record, Sequence, Token, TopicKey, TopicName};
use crate::listener::erased::{ErasedListener, HandlerCall, Returned};
use crate::listener::{Decision, Delivery, Failure, RetryDelay};
use crate::store::step::{Reconciled, Sequenced, Settled, Transferred, Verdict};
use crate::store::{Outage, Request};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct NeverCalled;

impl ErasedListener for NeverCalled {
    fn call(self: Arc<Self>, _: HandlerCall, _: Record, _: Delivery) -> BoxFuture<'static, Returned> {
        Box::pin(std::future::pending())
    }

    fn retry_delay(&self, _: u32, _: &Failure) -> RetryDelay {
        RetryDelay::BySettings
    }
}

fn machine() -> Machine {
    let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
    let outage = Outage::new(environment.clone(), String::new());
    let listener = Arc::new(NeverCalled);
    let (events, _) = mpsc::unbounded_channel();
    let tasks = Tasks {
        listener: listener.clone(),
        environment: environment.clone(),
        lease: Arc::<LeaseEnd>::default(),
        events,
    };
    let parts = Parts {
        key: TopicKey { app: AppName::new("a").unwrap(), topic: TopicName::new("t").unwrap() },
        listener,
        topic: TopicSettings::default(),
        node: NodeSettings::default(),
        environment,
        stats: Arc::new(TopicStats::new("t".into(), String::new(), String::new(), None, &outage)),
        permits: NodePermits::shares(None, [4].into_iter()).remove(0),
        waiting: WaitingBytes::default(),
        outage,
        schedules: Arc::from([]),
    };
    Machine::new(Arc::new(parts), NodeId::new("n"), tasks, SECOND)
}

/// What the machine sends.
fn sent(machine: &mut Machine) -> Vec<Request> {
    machine.flight().outgoing().collect()
}

/// The answer to the oldest request. Returns whether claims follow.
fn answer(machine: &mut Machine, answer: Answer, now: Duration) -> Option<Event> {
    let asked = machine.flight().answered(false);
    machine.on(Event::Answered(asked, Ok(answer), 0), now)
}

fn status(sequence: u64, rows: usize) -> LeaseStatus {
    LeaseStatus { sequence: Sequence(sequence), rows }
}

/// A machine that agrees with the store and has asked for jobs.
fn claiming() -> Machine {
    let mut machine = machine();
    machine.due(SECOND);
    assert!(matches!(sent(&mut machine)[..], [Request::Reconcile(_)]), "it claims nothing before both sides agree");
    let page = Reconciled { lease_status: status(1, 0), rows: Vec::new(), next: None };
    answer(&mut machine, Answer::Reconcile(Sequenced::Done(page)), SECOND);
    machine.due(SECOND);
    assert!(matches!(&sent(&mut machine)[..], [Request::Transfer(transfer)] if transfer.last_seen == Sequence(1)));
    machine
}

fn transferred() -> Transferred {
    let token = Token { fence: Fence(7), due: Timestamp::EPOCH };
    let record = Record::new(&Metadata::default(), Codec::Json, b"{}");
    Transferred {
        lease_status: status(2, 1),
        clock: Timestamp::EPOCH,
        micros: 0,
        role: None,
        sleep: SECOND,
        more: false,
        foreign_lease: None,
        claims: vec![Claim { id: JobId::new("j").unwrap(), token, record, crashes: 0 }],
        dropped: Vec::new(),
        state: None,
        left: 0,
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_from_its_claim_to_its_ack_without_a_store() {
    let mut machine = claiming();
    let claimed = answer(&mut machine, Answer::Transfer(Sequenced::Done(transferred())), SECOND).unwrap();
    assert!(machine.on(claimed, SECOND).is_none());
    machine.due(SECOND);
    assert!(sent(&mut machine).is_empty());
    assert_eq!(machine.tasks().len(), 1, "a runner takes the run");
    let acked = Ended::Returned(Returned::Decided(Decision::Ack));
    machine.on(Event::Run(RunEvent::Ended(RunId::default().next(), acked)), 2 * SECOND);
    machine.due(2 * SECOND);
    assert!(matches!(&sent(&mut machine)[..], [Request::Settle(settle), ..] if settle.outcomes.len() == 1));
    let settled = Settled { lease_status: status(2, 0), verdicts: vec![Verdict::Done] };
    answer(&mut machine, Answer::Settle(settled), 2 * SECOND);
    assert!(machine.outcomes.jobs().counts().all == 0);
    assert_eq!(machine.parts.stats.read().counters.acked, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_link_is_followed_by_a_reconcile_and_the_held_job_stays() {
    let mut machine = claiming();
    let claimed = answer(&mut machine, Answer::Transfer(Sequenced::Done(transferred())), SECOND).unwrap();
    machine.on(claimed, SECOND);
    machine.on(Event::Unanswered(SECOND), 2 * SECOND);
    let again = machine.due(2 * SECOND).unwrap();
    assert!(sent(&mut machine).is_empty() && again <= 3 * SECOND, "the link is made after a pause");
    machine.due(again);
    assert!(matches!(sent(&mut machine)[..], [Request::Reconcile(_)]));
    assert_eq!(machine.outcomes.jobs().counts().all, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nothing_renewed_takes_the_run_back() {
    let mut machine = claiming();
    let claimed = answer(&mut machine, Answer::Transfer(Sequenced::Done(transferred())), SECOND).unwrap();
    machine.on(claimed, SECOND);
    machine.due(SECOND);
    let end = machine.lease.good_until();
    assert_eq!(machine.outcomes.jobs().counts().settling, 0);
    machine.due(end);
    machine.due(end);
    assert_eq!(machine.runs.table().running(), 0, "nothing runs under a lease that has ended");
    assert!(!sent(&mut machine).is_empty());
}
