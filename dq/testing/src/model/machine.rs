//! Which steps are drawn, and how often. A history shrinks to fewer and plainer steps: what comes first here is plainest.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;
use proptest_state_machine::ReferenceStateMachine;

use super::reference::Choice;
use super::step::{
    Adding, By, Change, Due, Fence, JOBS, NODES, Number, PRODUCERS, Seen, Settling, Step, Token, Turn, Withdrawing,
};
use super::world::World;
use dq::job::{Deliver, State};
use dq::store::step::MOST_JOBS;
use dq::store::{OnDuplicate, WithdrawVerb};

/// Histories of one topic.
#[derive(Debug)]
pub(super) struct Machine;

impl ReferenceStateMachine for Machine {
    type State = World;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<World> {
        Just(World::new()).boxed()
    }

    fn transitions(world: &World) -> BoxedStrategy<Step> {
        // A node that the store does not know is refused until it reconciles, which one that knows nothing does first.
        let unknown = u32::from(NODES) - world.topic.turns.len() as u32;
        let running = world.topic.leases.len() as u32;
        let counts = world.topic.counts();
        let (ready, aside) = (counts.ready as u32, (counts.unacked + counts.dead) as u32);
        let expired = world.topic.expired().count() as u32;
        prop_oneof![
            12 => adds(prop_oneof![job().boxed(), job_in(world, &[State::Running])].boxed()),
            4 => clock(),
            1 + 4 * running => node().prop_map(Step::PastLease),
            3 + 12 * ready => transfer(),
            2 + 40 * unknown => reconcile(),
            1 + 14 * running => settle(job_in(world, &[State::Running])),
            3 + 3 * (running + aside) => withdraw(job_in(world, &[State::Running, State::Unacked, State::Dead])),
            1 + 2 * running => notes(job_in(world, &[State::Running])),
            2 => (0..PRODUCERS, 0..4_u8).prop_map(|(producer, back)| Step::Repeat { producer, back }),
            1 + running => reclaim(),
            1 + 20 * expired => reclaim_expired(),
            1 => (node(), turn(), lease()).prop_map(|(node, turn, lease)| Step::Hold { node, turn, lease }),
            1 + 8 * aside => age(),
            2 => cast(),
            1 => (node(), turn()).prop_map(|(node, turn)| Step::Release { node, turn }),
            1 => node().prop_map(|node| Step::Wake { node }),
            1 => (node(), 0..PRODUCERS).prop_map(|(node, producer)| Step::Anew { node, producer }),
        ]
        .boxed()
    }

    fn apply(mut world: World, step: &Step) -> World {
        let exchange = world.resolve(step);
        world.execute(&exchange, Choice(None));
        world
    }
}

fn node() -> impl Strategy<Value = u8> {
    0..NODES
}

/// One of them mostly: much has to happen to one job before the deep rules show.
fn job() -> impl Strategy<Value = u8> {
    prop_oneof![1 => Just(0), 1 => 0..JOBS]
}

/// Mostly one of those in these states.
fn job_in(world: &World, states: &[State]) -> BoxedStrategy<u8> {
    let state = |n| world.topic.jobs.get(&super::world::job(n)).map(|job| job.place.state());
    let there: Vec<u8> = (0..JOBS).filter(|n| state(*n).is_some_and(|state| states.contains(&state))).collect();
    if there.is_empty() { job().boxed() } else { prop_oneof![1 => job(), 6 => select(there)].boxed() }
}

fn lost() -> impl Strategy<Value = bool> {
    prop_oneof![12 => Just(false), 1 => Just(true)]
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![10 => Just(Turn::Right), 2 => Just(Turn::Heard), 1 => select(vec![-1, 1, 3]).prop_map(Turn::Off)]
}

fn token() -> impl Strategy<Value = Token> {
    prop_oneof![12 => Just(Token::Right), 2 => (0..4_u8).prop_map(Token::Old), 1 => Just(Token::OtherDue)]
}

fn by() -> impl Strategy<Value = By> {
    prop_oneof![8 => Just(By::Holder), 1 => node().prop_map(By::Node)]
}

fn limit() -> impl Strategy<Value = usize> {
    prop_oneof![3 => Just(MOST_JOBS), 2 => 1..4_usize]
}

/// Also one beyond the longest there is.
fn lease() -> impl Strategy<Value = u64> {
    select(vec![15_000, 3_000, 400_000])
}

/// Delays, ms.
fn wait() -> impl Strategy<Value = u64> {
    select(vec![0, 0, 1, 40, 2_000, 20_000])
}

fn clock() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => select(vec![1, 1_000, 40_000, 999_999, 2_000_000, 15_000_000, 20_200_000]).prop_map(Step::Forward),
        2 => any::<bool>().prop_map(|early| Step::ToDue { early }),
        1 => select(vec![1, 3_000, 400_000]).prop_map(Step::Back),
    ]
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        10 => Just(Number::Next),
        1 => select(vec![1, 2, 17]).prop_map(Number::Gap),
        1 => (1..20_u8).prop_map(Number::Below),
    ]
}

fn adds(job: BoxedStrategy<u8>) -> impl Strategy<Value = Step> {
    let due = prop_oneof![4 => wait().prop_map(Due::After), 1 => select(vec![-5, 0, 700]).prop_map(Due::In)];
    let expires_after = weighted(0.2, select(vec![0, 1_000, 30_000]));
    let on_duplicate = select(vec![OnDuplicate::Reject, OnDuplicate::Keep, OnDuplicate::Replace]);
    let deliver = prop_oneof![6 => Just(Deliver::Queue), 1 => Just(Deliver::Broadcast), 2 => Just(Deliver::Both)];
    let retain = select(vec![0, 0, 10_000]);
    let adding = (job, due, expires_after, retain, on_duplicate, deliver);
    let adding = adding.prop_map(|(job, due, expires_after, retain, on_duplicate, deliver)| Adding {
        job,
        due,
        expires_after,
        retain,
        on_duplicate,
        deliver,
    });
    (0..PRODUCERS, number(), vec(adding, 1..4), lost()).prop_map(|(producer, number, jobs, lost)| Step::Add {
        producer,
        number,
        jobs,
        lost,
    })
}

fn withdraw(job: BoxedStrategy<u8>) -> impl Strategy<Value = Step> {
    let verb = select(vec![
        WithdrawVerb::Delete,
        WithdrawVerb::Cancel,
        WithdrawVerb::Ack,
        WithdrawVerb::Ack,
        WithdrawVerb::Requeue,
    ]);
    let fence = prop_oneof![
        4 => Just(Fence::None),
        3 => Just(Fence::Right),
        2 => (1..4_u8).prop_map(Fence::Old),
        1 => Just(Fence::Wrong),
    ];
    let item = (job, verb, fence).prop_map(|(job, verb, fence)| Withdrawing { job, verb, fence });
    (0..PRODUCERS, number(), vec(item, 1..3), lost()).prop_map(|(producer, number, items, lost)| Step::Withdraw {
        producer,
        number,
        items,
        lost,
    })
}

fn transfer() -> impl Strategy<Value = Step> {
    (node(), turn(), limit(), lease(), lost()).prop_map(|(node, turn, limit, lease, lost)| Step::Transfer {
        node,
        turn,
        limit,
        lease,
        lost,
    })
}

fn settle(job: BoxedStrategy<u8>) -> impl Strategy<Value = Step> {
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
    ];
    let outcome = (job, token(), change, any::<bool>());
    let outcome = outcome.prop_map(|(job, token, change, front)| Settling { job, token, change, front });
    (by(), turn(), vec(outcome, 1..4), lost()).prop_map(|(by, turn, outcomes, lost)| Step::Settle {
        by,
        turn,
        outcomes,
        lost,
    })
}

fn notes(job: BoxedStrategy<u8>) -> impl Strategy<Value = Step> {
    (by(), turn(), job, token(), any::<bool>()).prop_map(|(by, turn, job, token, last)| match last {
        false => Step::Begin { by, turn, job, token },
        true => Step::Exhaust { by, turn, job, token },
    })
}

fn reconcile() -> impl Strategy<Value = Step> {
    (node(), turn(), weighted(0.1, job()), limit(), lost())
        .prop_map(|(node, turn, behind, limit, lost)| Step::Reconcile { node, turn, behind, limit, lost })
}

fn reclaim() -> impl Strategy<Value = Step> {
    let seen = prop_oneof![8 => Just(Seen::Right), 1 => (0..3_u8).prop_map(Seen::Old), 1 => Just(Seen::Zero)];
    (node(), node(), seen, limit(), 0..4_u32).prop_map(|(node, of, seen, limit, max_crashes)| Step::Reclaim {
        node,
        of,
        seen,
        limit,
        max_crashes,
    })
}

/// Of whoever's lease ended first.
fn reclaim_expired() -> impl Strategy<Value = Step> {
    (node(), limit(), 1..4_u32).prop_map(|(node, limit, max_crashes)| Step::Reclaim {
        node,
        of: NODES,
        seen: Seen::Right,
        limit,
        max_crashes,
    })
}

fn age() -> impl Strategy<Value = Step> {
    let kept = || select(vec![1_000_000, 2_000, 0]);
    (node(), turn(), limit(), select(vec![0, 0, 2_000]), kept(), select(vec![100, 1, 0])).prop_map(
        |(node, turn, limit, unacked_age, dead_kept, dead_most)| Step::Age {
            node,
            turn,
            limit,
            unacked_age,
            dead_kept,
            dead_most,
        },
    )
}

fn cast() -> impl Strategy<Value = Step> {
    let expires_after = select(vec![3_600_000, 1_000]);
    (node(), limit(), expires_after).prop_map(|(node, limit, expires_after)| Step::Cast { node, limit, expires_after })
}
