//! What should keep waiting jobs in order of their due times: an ordered set, a ring of time slots, or the leaves that the memory store
//! has? `cargo bench -p dq --bench waiting [-- --quick]`
//!
//! So many jobs are due over one hour, or all in one millisecond. A tenth of them is cancelled; then jobs leave and come back with a new
//! due time within the hour, as where the number that waits stays the same; in the end all are drained. All sides take the same jobs and
//! must give the same ones in the same order. Sides alternate; medians and ranges of five rounds and more; CPU time of a million and
//! more, where the system reports it, because other programs disturb that less than the wall clock.
//!
//! The ring is that of document 002: 4,096 slots of 64 ms around one index that advances, with the jobs of later rounds aside, and each
//! slot is ordered when it is reached.

#![allow(clippy::print_stdout, reason = "the table is what the program is for")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hint::black_box;
use std::mem;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use dq::job::JobId;
use dq::time::Timestamp;

mod job {
    pub(crate) use dq::job::JobId;
}
mod time {
    pub(crate) use dq::time::Timestamp;
}
#[allow(dead_code, reason = "the store asks for more")]
#[path = "../src/store/memory/time_index.rs"]
mod time_index;

use time_index::TimeIndex;

const HOUR_MS: u64 = 3_600_000;
const ROUNDS: usize = 5;
const START_MS: u64 = 1_763_000_000_000;

type At = (Timestamp, JobId);

/// What each side can do.
trait Index: Default {
    fn insert(&mut self, at: At);
    fn cancel(&mut self, at: &At);
    fn pop(&mut self) -> Option<At>;
}

impl Index for BTreeSet<At> {
    fn insert(&mut self, at: At) {
        self.insert(at);
    }

    fn cancel(&mut self, at: &At) {
        self.remove(at);
    }

    fn pop(&mut self) -> Option<At> {
        self.pop_first()
    }
}

impl Index for TimeIndex {
    fn insert(&mut self, (at, id): At) {
        self.insert(at, id);
    }

    fn cancel(&mut self, (at, id): &At) {
        self.remove(*at, id);
    }

    fn pop(&mut self) -> Option<At> {
        self.pop_due(Timestamp::from_millis(u64::MAX))
    }
}

const SLOT_MS: u64 = 64;
const SLOTS: u64 = 4_096;

struct Ring {
    /// The slot that was reached last.
    reached: u64,
    /// What is due up to it.
    front: BTreeSet<At>,
    /// The slots of the next round, and how many ids they have.
    slots: Vec<Vec<At>>,
    in_slots: usize,
    /// What is due in later rounds.
    later: BTreeMap<u64, Vec<At>>,
}

impl Default for Ring {
    fn default() -> Self {
        let slots = (0..SLOTS).map(|_| Vec::new()).collect();
        Self { reached: START_MS / SLOT_MS, front: BTreeSet::new(), slots, in_slots: 0, later: BTreeMap::new() }
    }
}

impl Ring {
    /// Where this id is, if it is not at the front.
    fn place(&mut self, at: &At) -> Option<&mut Vec<At>> {
        let slot = at.0.as_millis() / SLOT_MS;
        if slot <= self.reached {
            return None;
        }
        let is_next = slot < self.reached + SLOTS;
        Some(if is_next {
            &mut self.slots[(slot % SLOTS) as usize]
        } else {
            self.later.entry(slot / SLOTS).or_default()
        })
    }

    fn is_in_slots(&self, at: &At) -> bool {
        (self.reached + 1..self.reached + SLOTS).contains(&(at.0.as_millis() / SLOT_MS))
    }

    fn put(&mut self, at: At) {
        self.in_slots += usize::from(self.is_in_slots(&at));
        match self.place(&at) {
            Some(ids) => ids.push(at),
            None => drop(self.front.insert(at)),
        }
    }

    /// Advances to the next slot that has an id.
    fn reach(&mut self) {
        while self.front.is_empty() {
            self.reached += 1;
            if self.in_slots == 0 {
                let Some((round, _)) = self.later.first_key_value() else { return };
                self.reached = round * SLOTS;
            }
            if self.reached.is_multiple_of(SLOTS) {
                let round = self.later.remove(&(self.reached / SLOTS)).unwrap_or_default();
                round.into_iter().for_each(|at| self.put(at));
            }
            let ids = mem::take(&mut self.slots[(self.reached % SLOTS) as usize]);
            self.in_slots -= ids.len();
            if self.front.is_empty() {
                self.front = ids.into_iter().collect();
            } else {
                self.front.extend(ids);
            }
        }
    }
}

impl Index for Ring {
    fn insert(&mut self, at: At) {
        self.put(at);
        self.reach();
    }

    fn cancel(&mut self, at: &At) {
        let is_in_slots = self.is_in_slots(at);
        match self.place(at) {
            None => drop(self.front.remove(at)),
            Some(ids) => {
                let known = ids.iter().position(|known| known == at).expect("it waits");
                ids.swap_remove(known);
                self.in_slots -= usize::from(is_in_slots);
            }
        }
        self.reach();
    }

    fn pop(&mut self) -> Option<At> {
        let first = self.front.pop_first();
        self.reach();
        first
    }
}

/// The CPU time of this thread; the wall-clock time where the system does not report it, or only in steps that are too long.
fn spent(is_long: bool) -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let stats = fs::read_to_string("/proc/thread-self/schedstat").ok().filter(|_| is_long);
    let nanos = stats.and_then(|line| line.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// Numbers without a pattern, the same in each run.
fn numbers() -> impl FnMut() -> u64 {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    }
}

/// The times of a round an operation: insert, cancel, drain, and what a job costs that leaves and comes back; and its result.
fn run<I: Index>(jobs: &[At]) -> ([f64; 4], u64) {
    let mut index = I::default();
    let timed = |operations: usize, work: &mut dyn FnMut()| {
        let start = spent(jobs.len() >= 1_000_000);
        work();
        (spent(jobs.len() >= 1_000_000) - start).as_nanos() as f64 / operations as f64
    };
    let insert = timed(jobs.len(), &mut || jobs.iter().for_each(|at| index.insert(at.clone())));
    let cancelled = jobs.len().div_ceil(10);
    let cancel = timed(cancelled, &mut || jobs.iter().step_by(10).for_each(|at| index.cancel(at)));
    let (mut next, mut result) = (numbers(), 0_u64);
    let moves = (jobs.len() - cancelled).min(200_000);
    let comes_back = timed(moves, &mut || {
        for _ in 0..moves {
            let (at, id) = index.pop().expect("as many wait as before");
            index.insert((Timestamp::from_millis(at.as_millis() + next() % HOUR_MS), id));
        }
    });
    let (mut drained, mut last) = (0, Timestamp::EPOCH);
    let drain = timed(jobs.len() - cancelled, &mut || {
        while let Some((at, id)) = index.pop() {
            assert!(at >= last, "drained in order of due times");
            (last, drained) = (at, drained + 1);
            result = result.wrapping_mul(31).wrapping_add(at.as_millis());
            black_box(id);
        }
    });
    assert_eq!(drained, jobs.len() - cancelled, "nothing is lost");
    ([insert, cancel, drain, comes_back], result)
}

fn main() {
    let is_quick = std::env::args().any(|word| word == "--quick");
    println!(
        "| waiting, due over | side | insert ns | cancel ns | drain ns | leaves and comes back ns |\n|---|---|---|---|---|---|"
    );
    for (count, span) in
        [(1_000, HOUR_MS), (100_000, HOUR_MS), (1_000_000, HOUR_MS), (1_000_000, 1), (10_000_000, HOUR_MS)]
    {
        if is_quick && count > 100_000 {
            continue;
        }
        let mut next = numbers();
        let job = |i: u64| (Timestamp::from_millis(START_MS + next() % span), JobId::generated(i, next()));
        let jobs: Vec<At> = (0..count).map(job).collect();
        let sides = [
            ("ordered set", run::<BTreeSet<At>> as fn(&[At]) -> _),
            ("ring", run::<Ring>),
            ("leaves", run::<TimeIndex>),
        ];
        let mut rounds = vec![Vec::new(); sides.len()];
        let mut results = BTreeSet::new();
        for _ in 0..(ROUNDS * 1_000_000 / count as usize).clamp(1, 101) {
            for (side, (_, run)) in sides.iter().enumerate() {
                let (times, result) = run(&jobs);
                rounds[side].push(times);
                results.insert(result);
            }
        }
        assert_eq!(results.len(), 1, "all sides drain the same due times in the same order");
        for ((side, _), rounds) in sides.iter().zip(rounds) {
            let column = |n: usize| {
                let mut times: Vec<f64> = rounds.iter().map(|times| times[n]).collect();
                times.sort_unstable_by(f64::total_cmp);
                format!("{:.0} [{:.0} to {:.0}]", times[times.len() / 2], times[0], times[times.len() - 1])
            };
            let span = if span == 1 { "a millisecond" } else { "an hour" };
            println!("| {count}, {span} | {side} | {} | {} | {} | {} |", column(0), column(1), column(2), column(3));
        }
    }
}
