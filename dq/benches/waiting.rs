//! What should keep waiting jobs in order of their due times: a `BTreeSet` of (due, id), as the memory store has it, or a
//! hierarchical timing wheel? `cargo bench -p dq --bench waiting`
//!
//! One million jobs due over one hour in ticks of a millisecond; 10 % are cancelled, the rest drained at most 100 at a
//! time, once tick by tick as they fall due and once as a backlog that is due already. Both sides take the same jobs and
//! must give the same ones in the same order of due times. Sides alternate; medians and ranges of five rounds; CPU time
//! where the system reports it, because other programs disturb that less than the wall clock.
//!
//! The wheel is the smallest fair one: seven levels of 64 slots, one word of occupancy for each level, linked entries in a
//! slab, cancelled by handle, and a level for times beyond 2^42 ms. The benchmark does not ask for what it cannot do: order
//! by id within a tick, pages in order, and a clock that jumps back.

#![allow(clippy::print_stdout, reason = "the table is what the program is for")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use dq::job::JobId;
use dq::time::Timestamp;

const JOBS: usize = 1_000_000;
const HOUR_MS: u64 = 3_600_000;
const BATCH: usize = 100;
const ROUNDS: usize = 5;
const START_MS: u64 = 1_763_000_000_000;

/// What both sides can do.
trait Index: Default {
    type Handle;
    fn insert(&mut self, due: u64, id: JobId) -> Self::Handle;
    fn cancel(&mut self, handle: Self::Handle);
    fn head(&mut self) -> Option<u64>;
    fn take(&mut self, until: u64, limit: usize, taken: &mut Vec<(u64, JobId)>);
}

#[derive(Default)]
struct Ordered(BTreeSet<(Timestamp, JobId)>);

impl Index for Ordered {
    type Handle = (Timestamp, JobId);

    fn insert(&mut self, due: u64, id: JobId) -> Self::Handle {
        let due = Timestamp::from_millis(due);
        self.0.insert((due, id.clone()));
        (due, id)
    }

    fn cancel(&mut self, handle: Self::Handle) {
        self.0.remove(&handle);
    }

    fn head(&mut self) -> Option<u64> {
        self.0.first().map(|(due, _)| due.as_millis())
    }

    fn take(&mut self, until: u64, limit: usize, taken: &mut Vec<(u64, JobId)>) {
        while taken.len() < limit && self.head().is_some_and(|head| head <= until) {
            taken.extend(self.0.pop_first().map(|(due, id)| (due.as_millis(), id)));
        }
    }
}

const LEVELS: usize = 7;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const NONE: u32 = u32::MAX;

/// Where an entry hangs: a slot of a level, or the overflow.
#[derive(Clone, Copy, PartialEq)]
enum Home {
    Slot(usize, usize),
    Overflow,
}

struct Entry {
    due: u64,
    id: Option<JobId>,
    home: Home,
    before: u32,
    behind: u32,
}

struct Wheel {
    rotated: u64,
    entries: Vec<Entry>,
    free: u32,
    heads: [[u32; SLOTS]; LEVELS],
    occupied: [u64; LEVELS],
    overflow: BTreeMap<(u64, u32), ()>,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            rotated: START_MS,
            entries: Vec::new(),
            free: NONE,
            heads: [[NONE; SLOTS]; LEVELS],
            occupied: [0; LEVELS],
            overflow: BTreeMap::new(),
        }
    }
}

impl Wheel {
    fn home(&self, due: u64) -> Home {
        let differing = (self.rotated ^ due) | (SLOTS as u64 - 1);
        let level = ((63 - differing.leading_zeros()) / SLOT_BITS) as usize;
        if level >= LEVELS {
            return Home::Overflow;
        }
        Home::Slot(level, (due >> (level as u32 * SLOT_BITS)) as usize % SLOTS)
    }

    fn hang(&mut self, at: u32) {
        let due = self.entries[at as usize].due.max(self.rotated);
        let home = self.home(due);
        let mut behind = NONE;
        match home {
            Home::Slot(level, slot) => {
                behind = std::mem::replace(&mut self.heads[level][slot], at);
                self.occupied[level] |= 1 << slot;
                if behind != NONE {
                    self.entries[behind as usize].before = at;
                }
            }
            Home::Overflow => drop(self.overflow.insert((due, at), ())),
        }
        let entry = &mut self.entries[at as usize];
        (entry.home, entry.before, entry.behind) = (home, NONE, behind);
    }

    fn unhang(&mut self, at: u32) {
        let Entry { due, home, before, behind, .. } = self.entries[at as usize];
        let Home::Slot(level, slot) = home else {
            self.overflow.remove(&(due, at));
            return;
        };
        if behind != NONE {
            self.entries[behind as usize].before = before;
        }
        if before != NONE {
            self.entries[before as usize].behind = behind;
            return;
        }
        self.heads[level][slot] = behind;
        if behind == NONE {
            self.occupied[level] &= !(1 << slot);
        }
    }

    fn release(&mut self, at: u32) -> (u64, JobId) {
        let free = std::mem::replace(&mut self.free, at);
        let entry = &mut self.entries[at as usize];
        entry.behind = free;
        (entry.due, entry.id.take().expect("it was in use"))
    }

    /// The first occupied slot: its level, itself, and when it begins.
    fn first(&self) -> Option<(usize, usize, u64)> {
        (0..LEVELS).find(|level| self.occupied[*level] != 0).map(|level| {
            let slot = self.occupied[level].trailing_zeros() as usize;
            let shift = level as u32 * SLOT_BITS;
            let round = self.rotated >> (shift + SLOT_BITS) << (shift + SLOT_BITS);
            (level, slot, round | (slot as u64) << shift)
        })
    }

    /// Advances to the first tick with a job, at most to `until`, and returns that job; redistributes slots of higher levels.
    fn rotate(&mut self, until: u64) -> Option<(usize, u64)> {
        loop {
            let Some((level, slot, begin)) = self.first() else {
                let due = self.overflow.first_key_value()?.0.0;
                if due > until {
                    return None;
                }
                self.rotated = due;
                while let Some(((due, at), ())) = self.overflow.first_key_value().map(|(key, ())| (*key, ())) {
                    if self.home(due) == Home::Overflow {
                        break;
                    }
                    self.overflow.pop_first();
                    self.hang(at);
                }
                continue;
            };
            if begin > until {
                return None;
            }
            if level == 0 {
                return Some((slot, begin));
            }
            self.rotated = self.rotated.max(begin);
            let mut at = std::mem::replace(&mut self.heads[level][slot], NONE);
            self.occupied[level] &= !(1 << slot);
            while at != NONE {
                let behind = self.entries[at as usize].behind;
                self.hang(at);
                at = behind;
            }
        }
    }
}

impl Index for Wheel {
    type Handle = u32;

    fn insert(&mut self, due: u64, id: JobId) -> u32 {
        let entry = Entry { due, id: Some(id), home: Home::Overflow, before: NONE, behind: NONE };
        let at = self.free;
        let at = if at == NONE {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            self.free = self.entries[at as usize].behind;
            self.entries[at as usize] = entry;
            at
        };
        self.hang(at);
        at
    }

    fn cancel(&mut self, at: u32) {
        self.unhang(at);
        self.release(at);
    }

    /// When to look again: the first tick with a job, or the begin of the first slot of a higher level.
    fn head(&mut self) -> Option<u64> {
        let overflow = || self.overflow.first_key_value().map(|((due, _), ())| *due);
        self.first().map(|(_, _, begin)| begin.max(self.rotated)).or_else(overflow)
    }

    fn take(&mut self, until: u64, limit: usize, taken: &mut Vec<(u64, JobId)>) {
        while taken.len() < limit
            && let Some((slot, begin)) = self.rotate(until)
        {
            self.rotated = begin;
            while taken.len() < limit && self.heads[0][slot] != NONE {
                let at = self.heads[0][slot];
                self.unhang(at);
                taken.push(self.release(at));
            }
        }
    }
}

/// The CPU time of this thread; the wall-clock time where the system does not report it.
fn spent() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let stats = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stats.and_then(|line| line.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// The times of a round, and its result.
struct Round {
    insert: Duration,
    cancel: Duration,
    drain: Duration,
    dues: u64,
}

fn run<I: Index>(jobs: &[(u64, JobId)], backlog: bool) -> Round {
    let mut index = I::default();
    let start = spent();
    let mut handles: Vec<_> = jobs.iter().map(|(due, id)| Some(index.insert(*due, id.clone()))).collect();
    let insert = spent() - start;
    let start = spent();
    for handle in handles.iter_mut().step_by(10) {
        index.cancel(handle.take().expect("each is cancelled once"));
    }
    let cancel = spent() - start;
    drop(handles);
    let (mut dues, mut drained, mut last) = (0_u64, 0, 0);
    let mut taken = Vec::with_capacity(BATCH);
    let start = spent();
    while let Some(head) = index.head() {
        index.take(if backlog { START_MS + HOUR_MS } else { head }, BATCH, &mut taken);
        for (due, id) in taken.drain(..) {
            assert!(due >= last, "drained in order of due times");
            last = due;
            dues = dues.wrapping_mul(31).wrapping_add(due);
            drained += 1;
            black_box(id);
        }
    }
    let drain = spent() - start;
    assert_eq!(drained, jobs.len() - jobs.len().div_ceil(10), "nothing is lost");
    Round { insert, cancel, drain, dues }
}

fn jobs() -> Vec<(u64, JobId)> {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let job = |i: u64| (START_MS + next() % HOUR_MS, JobId::generated(i, next()));
    (0..JOBS as u64).map(job).collect()
}

/// Median and range in nanoseconds an operation.
fn summary(times: &[Duration], operations: usize) -> String {
    let mut nanos: Vec<_> = times.iter().map(|time| time.as_nanos() / operations as u128).collect();
    nanos.sort_unstable();
    format!("{} [{}-{}]", nanos[nanos.len() / 2], nanos[0], nanos[nanos.len() - 1])
}

fn print(side: &str, rounds: &[Round]) {
    let column = |time: fn(&Round) -> Duration| rounds.iter().map(time).collect::<Vec<_>>();
    let cancelled = JOBS.div_ceil(10);
    println!(
        "| {side} | {} | {} | {} | {} |",
        summary(&column(|round| round.insert), JOBS),
        summary(&column(|round| round.cancel), cancelled),
        summary(&column(|round| round.drain), JOBS - cancelled),
        summary(&column(|round| round.insert + round.cancel + round.drain), JOBS),
    );
}

fn main() {
    let jobs = jobs();
    println!("| side | insert ns | cancel ns | drain ns | a job ns |\n|---|---|---|---|---|");
    for (name, backlog) in [("as they fall due", false), ("backlog", true)] {
        let (mut ordered, mut wheel) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ordered.push(run::<Ordered>(&jobs, backlog));
            wheel.push(run::<Wheel>(&jobs, backlog));
        }
        let same = ordered.iter().chain(&wheel).all(|round| round.dues == ordered[0].dues);
        assert!(same, "both sides drain the same due times in the same order");
        print(&format!("BTreeSet, {name}"), &ordered);
        print(&format!("wheel, {name}"), &wheel);
    }
}
