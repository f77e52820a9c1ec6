//! The machine alone: no store, no link, no handler and no clock.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use super::*;
use crate::config::{NodeSettings, TopicSettings};
use crate::context::node_permits::NodePermits;
use crate::context::topic::run::{Ended, LeaseEnd};
use crate::context::topic::stats::TopicStats;
use crate::context::topic::window::WaitingBytes;
use crate::context::topic::{RelayWake, StopOrder, Topic};
use crate::environment::{Environment, Seeded};
use crate::job::{
    AppName, Codec, Fence, Isolation, JobId, Metadata, NodeId, ProducerId, Record, Sequence, Token, TopicKey, TopicName,
};
use crate::listener::{Decision, ErasedListener, Returned};
use crate::provider::DefinitionsWake;
use crate::store::step::{Isolated, NoteVerdict, Reconciled, Sequenced, Settled, Transferred, Verdict};
use crate::store::{
    Interest, Link, LinkOptions, Outage, Pending, Producer, Query, QueryReply, Request, Signals, Store,
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn parts(store: Arc<dyn Store>) -> Parts {
    let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
    let outage = Outage::new(environment.clone(), String::new());
    Parts {
        key: TopicKey { app: AppName::new("a").unwrap(), topic: TopicName::new("t").unwrap() },
        store,
        id: NodeId::new("n"),
        listener: <dyn ErasedListener>::whose_handlers_hang(),
        topic: TopicSettings::default(),
        node: NodeSettings::default(),
        environment,
        stats: Arc::new(TopicStats::new("t".into(), String::new(), String::new(), None, &outage)),
        permits: NodePermits::shares(None, [4].into_iter()).remove(0),
        waiting: WaitingBytes::default(),
        outage,
        relay: RelayWake::default(),
        schedules: Arc::from([]),
        definitions: DefinitionsWake::default(),
    }
}

fn machine() -> Machine {
    let parts = parts(Arc::new(Stops::new(watch::channel(None).0)));
    let (events, _) = mpsc::unbounded_channel();
    let (listener, environment) = (parts.listener.clone(), parts.environment.clone());
    let tasks = Tasks { listener, environment, lease: Arc::<LeaseEnd>::default(), events };
    Machine::new(Arc::new(parts), tasks, SECOND)
}

/// What the machine sends.
fn sent(machine: &mut Machine) -> Vec<Request> {
    std::iter::from_fn(|| machine.flight().next_outgoing()).collect()
}

/// The answer to the oldest request.
fn answer(machine: &mut Machine, answer: Answer, now: Duration) {
    let asked = machine.flight().answered(false);
    machine.on(Event::Answered(asked, Ok(answer), 0), now);
    machine.admit();
}

fn status(sequence: u64, rows: usize) -> LeaseStatus {
    LeaseStatus { sequence: Sequence(sequence), rows }
}

fn reconciled() -> Sequenced<Reconciled> {
    Sequenced::Done(Reconciled { lease_status: status(1, 0), rows: Vec::new(), next: None, born: 0 })
}

/// A machine that agrees with the store and has asked for jobs.
fn claiming() -> Machine {
    let mut machine = machine();
    machine.due(SECOND);
    assert!(matches!(sent(&mut machine)[..], [Request::Reconcile(_)]), "it claims nothing before both sides agree");
    answer(&mut machine, Answer::Reconcile(reconciled()), SECOND);
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
    answer(&mut machine, Answer::Transfer(Sequenced::Done(transferred())), SECOND);
    machine.due(SECOND);
    assert!(sent(&mut machine).is_empty());
    assert_eq!(machine.tasks().len(), 1, "a runner takes the run");
    let acked = Ended::Returned(Returned::Decided(Decision::Ack));
    let job = machine.moment.held.find(&JobId::new("j").unwrap()).unwrap();
    let run = machine.moment.held.run_of(job).unwrap();
    machine.on(Event::Run(RunEvent::Ended(run, acked)), 2 * SECOND);
    machine.due(2 * SECOND);
    assert!(matches!(&sent(&mut machine)[..], [Request::Settle(settle), ..] if settle.outcomes.len() == 1));
    let settled = Settled { lease_status: status(2, 0), verdicts: vec![Verdict::Done] };
    answer(&mut machine, Answer::Settle(settled), 2 * SECOND);
    assert!(machine.moment.held.counts().all == 0);
    assert_eq!(machine.parts.stats.read().counters.acked, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_link_is_followed_by_a_reconcile_and_the_held_job_stays() {
    let mut machine = claiming();
    answer(&mut machine, Answer::Transfer(Sequenced::Done(transferred())), SECOND);
    machine.on(Event::Unanswered(SECOND), 2 * SECOND);
    let again = machine.due(2 * SECOND).unwrap();
    assert!(sent(&mut machine).is_empty(), "the link is made after a pause");
    assert!(2 * SECOND < again && again <= 3 * SECOND, "{again:?}");
    machine.due(again);
    assert!(matches!(sent(&mut machine)[..], [Request::Reconcile(_)]));
    assert_eq!(machine.moment.held.counts().all, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nothing_renewed_takes_the_run_back() {
    let mut machine = claiming();
    answer(&mut machine, Answer::Transfer(Sequenced::Done(transferred())), SECOND);
    machine.due(SECOND);
    let end = machine.lease.good_until();
    assert_eq!(machine.moment.held.counts().settling, 0);
    machine.due(end);
    machine.due(end);
    assert_eq!(machine.runs.table().running(), 0, "nothing runs under a lease that has ended");
    assert!(!sent(&mut machine).is_empty());
}

/// While a node was paused, others took its jobs. A claim makes a new lease, which is none of those that the node held before.
#[tokio::test(start_paused = true)]
async fn a_lease_that_a_claim_makes_anew_starts_no_job_of_the_one_before() {
    let mut machine = claiming();
    let now = 60 * SECOND;
    let first = Transferred { more: true, ..transferred() };
    answer(&mut machine, Answer::Transfer(Sequenced::Done(first)), now);
    machine.due(now);
    let requests = sent(&mut machine);
    assert!(requests.iter().any(|request| matches!(request, Request::Transfer(_))), "{requests:?}");
    let mut another = transferred();
    (another.lease_status, another.claims[0].id) = (status(3, 1), JobId::new("k").unwrap());
    answer(&mut machine, Answer::Transfer(Sequenced::Done(another)), now);
    machine.due(now);
    assert_eq!((machine.tasks().len(), machine.moment.held.counts().all), (0, 2));
    assert!(sent(&mut machine).iter().any(|request| matches!(request, Request::Reconcile(_))));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_alone_stays_so_after_its_lease_until_the_store_confirms_its_outcome() {
    let mut machine = claiming();
    let mut quarantined = transferred();
    quarantined.claims[0].crashes = 9;
    answer(&mut machine, Answer::Transfer(Sequenced::Done(quarantined)), SECOND);
    machine.due(SECOND);
    assert!(
        matches!(&sent(&mut machine)[..], [Request::Isolate(isolate)] if isolate.isolation == Some(Isolation::Alone))
    );
    let isolated = Isolated { lease_status: status(2, 1), notes: Some(vec![NoteVerdict::Done]) };
    answer(&mut machine, Answer::Isolate(isolated), SECOND);
    machine.due(SECOND);
    assert_eq!(machine.tasks().len(), 1);
    let process = machine.parts.environment.process().clone();
    let end = machine.lease.good_until();
    machine.due(end);
    machine.due(end);
    assert_eq!(machine.runs.table().running(), 0, "nothing runs under a lease that has ended");
    let others_start = |process: &Arc<crate::environment::Process>| process.enter(SECOND).is_some();
    assert!(!others_start(&process), "the store may have renewed the lease, and would charge a crash to this job");
    let latest = end + 2 * machine.parts.topic.timeout.unwrap();
    machine.due(latest - SECOND);
    assert!(!others_start(&process));
    machine.due(latest);
    assert!(others_start(&process), "the store may be away for hours");
}

#[tokio::test(start_paused = true)]
async fn a_topic_whose_job_waits_to_run_alone_keeps_no_other_from_starting_once_it_has_no_lease_or_pauses() {
    let others_start = |machine: &Machine| machine.parts.environment.process().enter(HOUR).is_some();
    let waiting = || {
        let mut machine = claiming();
        let runs = machine.parts.environment.process().enter(HOUR).expect("nothing is alone");
        let mut quarantined = transferred();
        quarantined.claims[0].crashes = 9;
        answer(&mut machine, Answer::Transfer(Sequenced::Done(quarantined)), SECOND);
        machine.due(SECOND);
        assert!(!others_start(&machine), "the job waits for the handler of another topic");
        (machine, runs)
    };
    let (mut machine, _runs) = waiting();
    let end = machine.lease.good_until();
    machine.due(end);
    assert!(others_start(&machine), "it would not see that its turn has come");
    let (mut machine, _runs) = waiting();
    machine.on(Event::Signal(Signal::Paused), SECOND);
    machine.due(SECOND);
    assert!(others_start(&machine), "it goes back");
}

/// A store, and its link, whose claim is answered together with a stop order. It says that more is due, and answers nothing else.
#[derive(Debug, Clone)]
struct Stops {
    order: Arc<watch::Sender<StopOrder>>,
    transfers: Arc<AtomicUsize>,
}

impl Stops {
    fn new(order: watch::Sender<StopOrder>) -> Self {
        Self { order: Arc::new(order), transfers: Arc::default() }
    }
}

impl Link for Stops {
    fn ask(&self, request: Request) -> Pending<Answer> {
        Box::pin(std::future::ready(Ok(match request {
            Request::Reconcile(_) => Answer::Reconcile(reconciled()),
            Request::Transfer(_) => {
                self.transfers.fetch_add(1, Relaxed);
                self.order.send_replace(Some(Duration::ZERO));
                Answer::Transfer(Sequenced::Done(Transferred { more: true, ..transferred() }))
            }
            _ => return Box::pin(std::future::pending()),
        })))
    }
}

impl Store for Stops {
    fn url(&self) -> String {
        String::new()
    }

    fn ask<'a>(&'a self, _: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        Box::pin(std::future::pending())
    }

    fn link_with(&self, _: &TopicKey, _: &NodeId, _: LinkOptions) -> Arc<dyn Link> {
        Arc::new(self.clone())
    }

    fn producer(&self, _: &TopicKey, _: &ProducerId) -> Arc<dyn Producer> {
        unreachable!("nothing is added")
    }

    fn signals<'a>(&'a self, _: &'a TopicKey, _: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_order_that_arrives_together_with_an_answer_is_seen_before_that_is_taken_in() {
    let (order, ordered) = watch::channel(None);
    let store = Stops::new(order);
    Topic::new(Arc::new(parts(Arc::new(store.clone()))), ordered).run().await;
    assert_eq!(store.transfers.load(Relaxed), 1, "a topic that stops claims no more, even if more is due");
}
