//! Which operations a history may have, and how often. A history shrinks to fewer and simpler operations: the first
//! alternative of each choice is the simplest.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;

use super::cluster::{ClusterState, ms};
use super::operation::{
    AddItem, Batch, By, Change, ChangeItem, CommandItem, Due, Fence, JOBS, LeaseEnd, NODES, Number, Operation,
    OutcomeItem, PRODUCERS, Run, Sequence, Setting, Token, Version, What,
};
use dq::job::{Delivery, Priority, State};
use dq::store::step::MAX_JOBS;
use dq::store::{CommandKind, OnDuplicate};

/// The operations that may come next.
pub(super) fn operations(cluster: &ClusterState) -> BoxedStrategy<Operation> {
    // The store refuses an unknown node until it reconciles, so reconciles are likely while a node is unknown.
    let unknown = u32::from(NODES) - cluster.sequences.len() as u32;
    let running = cluster.topic.view.leases.len() as u32;
    let counts = &cluster.topic.counts;
    let (ready, aside) = (counts.ready as u32, (counts.unacked + counts.dead) as u32);
    let expired = cluster.topic.expired().count() as u32;
    prop_oneof![
        12 => adds(prop_oneof![job().boxed(), job_in(cluster, &[State::Running])].boxed()),
        4 => clock(),
        1 + 4 * running => node().prop_map(Operation::PastLease),
        3 + 12 * ready => transfer(),
        2 + 40 * unknown => reconcile(),
        1 + 14 * running => settle(job_in(cluster, &[State::Running])),
        3 + 3 * (running + aside) => command(job_in(cluster, &[State::Running, State::Unacked, State::Dead])),
        4 + 2 * aside => changes(job_in(cluster, &[State::Delayed, State::Delayed, State::Unacked, State::Dead])),
        1 + 2 * running => notes(job_in(cluster, &[State::Running])),
        2 => (0..PRODUCERS, 0..4_u8).prop_map(|(producer, back)| Operation::Repeat { producer, back }),
        1 + running => reclaim(),
        1 + 20 * expired => reclaim_expired(),
        1 => (node(), sequence(), lease()).prop_map(|(node, sequence, lease)| Operation::Renew { node, sequence, lease }),
        1 + 8 * aside => sweep(),
        2 => publish(),
        1 => set(),
        1 + 14 * u32::from(cluster.topic.is_held) => Just(Setting::Resume).prop_map(unset),
        1 + 14 * u32::from(cluster.topic.is_held) => Just(Setting::Undrain).prop_map(unset),
        1 => (node(), sequence()).prop_map(|(node, sequence)| Operation::Release { node, sequence }),
        1 => node().prop_map(|node| Operation::Wake { node }),
        1 => (node(), 0..PRODUCERS).prop_map(|(node, producer)| Operation::Reconnect { node, producer }),
    ]
    .boxed()
}

fn node() -> impl Strategy<Value = u8> {
    0..NODES
}

/// Mostly the same job: much must happen to one job before the intricate rules apply.
fn job() -> impl Strategy<Value = u8> {
    prop_oneof![1 => Just(0), 1 => 0..JOBS]
}

/// Mostly a job in one of these states.
fn job_in(cluster: &ClusterState, states: &[State]) -> BoxedStrategy<u8> {
    let state = |n| cluster.topic.view.jobs.get(&super::cluster::job(n)).map(|job| job.state);
    let there: Vec<u8> = (0..JOBS).filter(|n| state(*n).is_some_and(|state| states.contains(&state))).collect();
    if there.is_empty() { job().boxed() } else { prop_oneof![1 => job(), 6 => select(there)].boxed() }
}

fn lost() -> impl Strategy<Value = bool> {
    prop_oneof![12 => Just(false), 1 => Just(true)]
}

fn sequence() -> impl Strategy<Value = Sequence> {
    prop_oneof![10 => Just(Sequence::Right), 2 => Just(Sequence::LastSeen), 1 => select(vec![-1, 1, 3]).prop_map(Sequence::Off)]
}

fn token() -> impl Strategy<Value = Token> {
    prop_oneof![12 => Just(Token::Right), 2 => (0..4_u8).prop_map(Token::Old), 1 => Just(Token::OtherDue)]
}

fn by() -> impl Strategy<Value = By> {
    prop_oneof![8 => Just(By::Holder), 1 => node().prop_map(By::Node)]
}

fn limit() -> impl Strategy<Value = usize> {
    prop_oneof![3 => Just(MAX_JOBS), 2 => 1..4_usize]
}

/// In ms; one is longer than the longest lease.
fn lease() -> impl Strategy<Value = u64> {
    select(vec![15_000, 3_000, 400_000])
}

/// Delays in ms.
fn wait() -> impl Strategy<Value = u64> {
    select(vec![0, 0, 1, 40, 2_000, 20_000])
}

fn clock() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => select(vec![1, 1_000, 40_000, 999_999, 2_000_000, 15_000_000, 20_200_000]).prop_map(Operation::Forward),
        2 => any::<bool>().prop_map(|early| Operation::ToDue { early }),
        1 => select(vec![1, 3_000, 400_000]).prop_map(Operation::Back),
    ]
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        10 => Just(Number::Next),
        1 => select(vec![1, 2, 17]).prop_map(Number::Gap),
        1 => (1..20_u8).prop_map(Number::Below),
    ]
}

fn batch(what: impl Strategy<Value = Batch>) -> impl Strategy<Value = Operation> {
    let all = (0..PRODUCERS, number(), what, lost());
    all.prop_map(|(producer, number, what, lost)| Operation::Batch { producer, number, what, lost })
}

fn adds(job: BoxedStrategy<u8>) -> impl Strategy<Value = Operation> {
    let due = prop_oneof![
        4 => wait().prop_map(Due::After),
        1 => select(vec![-5, 0, 700]).prop_map(Due::In),
        1 => wait().prop_map(Due::Usual),
    ];
    let expires_after = weighted(0.2, select(vec![0, 1_000, 30_000]));
    let on_duplicate = prop_oneof![
        3 => select(vec![OnDuplicate::Reject, OnDuplicate::Keep, OnDuplicate::Replace]),
        1 => weighted(0.7, select(vec![0, 3_000, 30_000])).prop_map(|most| OnDuplicate::Extend { at_most: most.map(ms) }),
    ];
    let deliver = deliver();
    let retain = select(vec![0, 0, 10_000]);
    let priority = prop_oneof![2 => Just(Priority::Normal), 1 => Just(Priority::High), 1 => Just(Priority::Low)];
    let unique_for = weighted(0.3, select(vec![300, 9_000, 900_000]));
    let item = (job, due, expires_after, retain, on_duplicate, deliver, priority, unique_for);
    let item = item.prop_map(|(job, due, expires_after, retain, on_duplicate, deliver, priority, unique_for)| {
        AddItem { job, due, expires_after, retain, on_duplicate, deliver, priority, unique_for }
    });
    batch(vec(item, 1..4).prop_map(Batch::Add))
}

fn command(job: BoxedStrategy<u8>) -> impl Strategy<Value = Operation> {
    let verb = select(vec![
        CommandKind::Delete,
        CommandKind::Cancel,
        CommandKind::Ack,
        CommandKind::Ack,
        CommandKind::Requeue,
    ]);
    let fence = prop_oneof![
        4 => Just(Fence::None),
        3 => Just(Fence::Right),
        2 => (1..4_u8).prop_map(Fence::Old),
        1 => Just(Fence::Wrong),
    ];
    let item = (job, verb, fence, version());
    let item = item.prop_map(|(job, verb, fence, version)| CommandItem { job, verb, fence, version });
    batch(vec(item, 1..3).prop_map(Batch::Command))
}

fn changes(job: BoxedStrategy<u8>) -> impl Strategy<Value = Operation> {
    let due = prop_oneof![4 => wait().prop_map(Due::After), 1 => select(vec![-5, 0, 700]).prop_map(Due::In)];
    let what = prop_oneof![
        2 => due.prop_map(What::Reschedule),
        1 => wait().prop_map(What::ExtendBy),
        1 => Just(What::RunNow),
        2 => Just(What::Update),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(headers, retain)| What::Options { headers, retain }),
    ];
    let item = (job, what, version()).prop_map(|(job, what, version)| ChangeItem { job, what, version });
    batch(vec(item, 1..4).prop_map(Batch::Change))
}

fn version() -> impl Strategy<Value = Version> {
    select(vec![Version::Any, Version::Any, Version::Any, Version::Right, Version::Wrong])
}

fn transfer() -> impl Strategy<Value = Operation> {
    let lookahead = prop_oneof![3 => Just(0), 1 => select(vec![1, 5, 50])];
    let all = (node(), sequence(), limit(), lease(), lookahead, lost());
    all.prop_map(|(node, sequence, limit, lease, lookahead, lost)| Operation::Transfer {
        node,
        sequence,
        limit,
        lease,
        lookahead,
        lost,
    })
}

fn deliver() -> impl Strategy<Value = Delivery> {
    prop_oneof![6 => Just(Delivery::Queue), 1 => Just(Delivery::Broadcast), 2 => Just(Delivery::Both)]
}

fn tick() -> impl Strategy<Value = Change> {
    let next = weighted(0.8, select(vec![-4, 0, 5, 900]));
    let all = (next, job(), deliver(), weighted(0.3, job()));
    all.prop_map(|(next, adds, deliver, unless)| Change::Tick { next, adds, deliver, unless })
}

fn settle(job: BoxedStrategy<u8>) -> impl Strategy<Value = Operation> {
    let change = prop_oneof![
        1 => Just(Change::Ack),
        1 => Just(Change::RejoinAsAdded),
        1 => wait().prop_map(Change::RejoinAfter),
        1 => select(vec![-4, 0, 900]).prop_map(Change::RejoinIn),
        1 => wait().prop_map(Change::Retry),
        1 => Just(Change::Rollback),
        2 => Just(Change::Park),
        1 => Just(Change::Dead),
        1 => Just(Change::Drop),
        2 => tick(),
    ];
    let outcome = (job, token(), change, any::<bool>());
    let outcome = outcome.prop_map(|(job, token, change, metadata)| OutcomeItem { job, token, change, metadata });
    let all = (by(), sequence(), vec(outcome, 1..4), lost());
    all.prop_map(|(by, sequence, outcomes, lost)| Operation::Settle { by, sequence, outcomes, lost })
}

fn notes(job: BoxedStrategy<u8>) -> impl Strategy<Value = Operation> {
    (by(), sequence(), job, token(), 0..8_u8, 0..6_u64).prop_map(|(by, sequence, job, token, which, number)| {
        let run = Run { by, sequence, job, token };
        match which {
            0..2 => Operation::Isolate { run, alone: which == 0 },
            2..4 => Operation::Exhaust(run),
            _ => Operation::Note { run, number, is_large: which == 4 },
        }
    })
}

fn reconcile() -> impl Strategy<Value = Operation> {
    (node(), sequence(), weighted(0.1, job()), limit(), lost())
        .prop_map(|(node, sequence, behind, limit, lost)| Operation::Reconcile { node, sequence, behind, limit, lost })
}

fn reclaim() -> impl Strategy<Value = Operation> {
    let seen =
        prop_oneof![8 => Just(LeaseEnd::Right), 1 => (0..3_u8).prop_map(LeaseEnd::Old), 1 => Just(LeaseEnd::Zero)];
    let all = (node(), node(), seen, limit(), 0..4_u32);
    all.prop_map(|(node, of, seen, limit, max_crashes)| Operation::Reclaim { node, of, seen, limit, max_crashes })
}

/// A reclaim from the node whose lease expired first.
fn reclaim_expired() -> impl Strategy<Value = Operation> {
    let (of, seen) = (NODES, LeaseEnd::Right);
    let all = (node(), limit(), 1..4_u32);
    all.prop_map(move |(node, limit, max_crashes)| Operation::Reclaim { node, of, seen, limit, max_crashes })
}

fn sweep() -> impl Strategy<Value = Operation> {
    let kept = || select(vec![1_000_000, 2_000, 0]);
    let most = (select(vec![100, 1, 0]), select(vec![None, Some(1), Some(0)]));
    let all = (node(), sequence(), limit(), select(vec![0, 0, 2_000]), kept(), most);
    all.prop_map(|(node, sequence, limit, park_timeout, dead_retention, most)| Operation::Sweep {
        node,
        sequence,
        limit,
        park_timeout,
        dead_retention,
        most,
    })
}

fn set() -> impl Strategy<Value = Operation> {
    let until = prop_oneof![
        1 => Just(None),
        2 => select(vec![1, 2_000, 40_000]).prop_map(|time| Some(Due::After(time))),
        1 => select(vec![-3, 0, 700]).prop_map(|time| Some(Due::In(time))),
    ];
    let setting = prop_oneof![
        1 => Just(Setting::Resume),
        1 => Just(Setting::Undrain),
        2 => weighted(0.7, wait()).prop_map(Setting::Delay),
        2 => Just(Setting::Drain),
        3 => until.prop_map(Setting::Pause),
        2 => weighted(0.6, 1..3_usize).prop_map(Setting::Waiting),
    ];
    batch(setting.prop_map(Batch::Set))
}

const fn unset(setting: Setting) -> Operation {
    Operation::Batch { producer: 0, number: Number::Next, what: Batch::Set(setting), lost: false }
}

fn publish() -> impl Strategy<Value = Operation> {
    let expires_after = select(vec![3_600_000, 1_000]);
    let all = (node(), limit(), expires_after);
    all.prop_map(|(node, limit, expires_after)| Operation::Publish { node, limit, expires_after })
}
