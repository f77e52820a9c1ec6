//! Random steps of all kinds.

use super::*;
use crate::job::{GroupName, Isolation, Metadata};
use crate::store::HistorySetting;

/// A step, or a move of the clock: its kind and three numbers that say what it does.
pub(super) type Step = (u8, u8, u8, u8);

/// How many kinds there are.
pub(super) const KINDS: u8 = 18;

const JOBS: [&str; 5] = ["a", "b", "c", "d", "a job with a longer name, as callers choose them"];
const NODES: [&str; 2] = ["n", "m"];

fn pick<T: Copy>(from: &[T], n: u8) -> T {
    from[usize::from(n) % from.len()]
}

/// Takes the step. Steps that mean nothing in this state do nothing.
pub(super) fn take(bench: &mut Bench, (kind, a, b, c): Step) {
    let name = pick(&JOBS, a);
    bench.topic.begin_step(bench.now, false);
    match kind % KINDS {
        0..=2 if bench.topic.takes_jobs().is_err() => {}
        0..=2 => drop(bench.add(new_job(name, b, c))),
        3 | 4 => drop(bench.transfer(pick(&NODES, a), 1 + usize::from(b % 4))),
        5..=8 => settle(bench, a, b, c),
        9 | 10 => command(bench, name, b, c),
        11 => note(bench, name, b, c),
        12 => reclaim(bench, a, b),
        13 => rare(bench, a, b),
        16 => set(bench, a, b),
        17 => keep_history(bench, a, b),
        14 => sweep(bench, pick(&NODES, a), Duration::from_secs(u64::from(b % 2))),
        _ => bench.advance(Duration::from_micros(pick(&[1, 999, 40_000, 2_000_000, 15_000_000], a))),
    }
    bench.topic.end_step(bench.now);
}

fn new_job(name: &str, b: u8, c: u8) -> NewJob {
    let retain = Duration::from_secs(pick(&[0, 0, 10], b));
    let metadata = Metadata { retain, headers: vec![("h".into(), "v".into())], ..Metadata::default() };
    let bytes = match c % 9 {
        0 => Record::from_bytes(bytes::Bytes::from_static(b"not a record")),
        n => record(&metadata, &"x".repeat(usize::from(n) * 20)),
    };
    NewJob {
        due: Due::After(Duration::from_millis(pick(&[0, 0, 1, 3_000], b / 3))),
        expires_after: pick(&[None, None, Some(Duration::from_secs(30))], c / 9),
        on_duplicate: pick(&[OnDuplicate::Replace, OnDuplicate::Keep, OnDuplicate::Reject], b / 12),
        deliver: pick(&[Delivery::Queue, Delivery::Queue, Delivery::Both, Delivery::Broadcast], b / 36),
        unique_for: pick(&[None, Some(Duration::from_millis(1)), Some(Duration::from_secs(3_600))], b / 72),
        record: bytes,
        ..job(name)
    }
}

/// The run of a job, and the node that holds it.
fn run(bench: &Bench, name: &str) -> Option<(String, Token)> {
    let run = bench.topic.jobs.get(&id(name))?.run()?;
    Some((run.node.as_str().to_owned(), run.token))
}

fn settle(bench: &mut Bench, a: u8, b: u8, c: u8) {
    let running = (0..JOBS.len() as u8).map(|n| pick(&JOBS, a.wrapping_add(n)));
    let runs: Vec<_> = running.filter_map(|name| run(bench, name).map(|run| (name, run))).collect();
    let Some((_, (holder, _))) = runs.first() else { return };
    let holder = holder.clone();
    let change = || match b % 9 {
        0 => Change::Ack,
        1 => Change::Rejoin(RejoinDue::AsAdded),
        2 => Change::Rejoin(RejoinDue::After(Duration::from_millis(7))),
        3 | 4 => Change::Retry(Duration::from_millis(c.into())),
        5 => Change::Rollback,
        6 => Change::Park,
        7 => Change::Dead,
        _ => Change::Drop,
    };
    let metadata = || Metadata { attempts: c.into(), error: Some("e".repeat(c.into())), ..Metadata::default() };
    let outcomes = runs.iter().take(1 + usize::from(c % 3)).map(|(name, (_, token))| Outcome {
        id: id(name),
        token: *token,
        change: change(),
        metadata: c.is_multiple_of(2).then(metadata),
    });
    let outcomes = outcomes.collect();
    let request = Settle { last_seen: bench.sequence(&holder), lease: LEASE, bytes: DEFAULT_BYTES, outcomes };
    bench.topic.settle(bench.now, &node(&holder), request).unwrap();
}

fn command(bench: &mut Bench, name: &str, b: u8, c: u8) {
    let verbs = [CommandKind::Delete, CommandKind::Cancel, CommandKind::Ack, CommandKind::Ack, CommandKind::Requeue];
    let running = run(bench, name).map(|(_, token)| token.fence);
    let parked = bench.topic.jobs.get(&id(name)).and_then(|slot| slot.record.fixed().parked_by);
    let fence = pick(&[None, running.or(parked), Some(Fence(u64::from(c)))], c);
    bench.command(pick(&verbs, b), name, fence);
}

fn note(bench: &mut Bench, name: &str, b: u8, c: u8) {
    let Some((holder, token)) = run(bench, name) else { return };
    let (node, last_seen) = (node(&holder), bench.sequence(&holder));
    if b.is_multiple_of(3) {
        let metadata = Metadata { attempts: c.into(), error: Some("no".into()), ..Metadata::default() };
        let request = Exhaust { last_seen, lease: LEASE, id: id(name), token, metadata };
        bench.topic.exhaust(bench.now, &node, request);
    } else {
        let isolation = if b % 3 == 1 { Isolation::Alone } else { Isolation::Grouped };
        let request = Isolate { last_seen, lease: LEASE, isolation: Some(isolation), runs: vec![(id(name), token)] };
        bench.topic.isolate(bench.now, &node, &request).unwrap();
    }
}

fn keep_history(bench: &mut Bench, a: u8, b: u8) {
    let after = Duration::from_secs(pick(&[0, 1, 60], b));
    bench.topic.keep_history(HistorySetting { moves: pick(&[0, 1, 2, 20, 20], a), after }).unwrap();
}

fn set(bench: &mut Bench, a: u8, b: u8) {
    let until = pick(&[None, Some(Due::After(Duration::from_secs(2)))], b);
    let group = |b| pick(&[None, Some("a"), Some("b")], b).map(|name| GroupName::new(name).unwrap());
    let change = match a % 10 {
        0 => TopicChange::Pause { group: group(b), reason: "r".repeat(b.into()), until },
        1 => TopicChange::Drain { reason: "why".into() },
        2..=4 => TopicChange::Resume { group: group(b) },
        5..=7 => TopicChange::Undrain,
        _ => TopicChange::Delay(pick(&[None, Some(Duration::from_millis(b.into()))], b)),
    };
    bench.set(SetTopic { by: "b".repeat(usize::from(b) % 9), change });
}

fn sweep(bench: &mut Bench, name: &str, park_timeout: Duration) {
    if bench.sequence(name) == Sequence::default() {
        bench.reconcile(name);
    }
    bench.sweep(name, park_timeout);
}

fn reclaim(bench: &mut Bench, a: u8, b: u8) {
    let name = pick(&NODES, a);
    let Some(seen) = bench.lease(name) else { return };
    bench.advance(seen.since(bench.now.floor()));
    let (limit, max_crashes) = (1 + usize::from(b % 3), u32::from(b % 4));
    let request = Reclaim { node: node(name), seen, limit, bytes: DEFAULT_BYTES, max_crashes };
    bench.topic.reclaim(bench.now, &request).unwrap();
}

fn rare(bench: &mut Bench, a: u8, b: u8) {
    let name = pick(&NODES, a);
    let last_seen = bench.sequence(name);
    match b % 5 {
        0 => drop(bench.topic.release(bench.now, &node(name), Release { last_seen })),
        1 => drop(bench.topic.renew(bench.now, &node(name), Renew { last_seen, lease: LEASE })),
        2 => drop(bench.reconcile(name)),
        _ => {
            let expires_after = Duration::from_secs(3_600);
            let request = Publish { limit: 1 + usize::from(b % 3), bytes: 100, fallback: FALLBACK, expires_after };
            bench.topic.publish(bench.now, &node(name), request).unwrap();
        }
    }
}
