//! Values that a seed decides: mostly ordinary ones, and often those at which code is wrong.

use std::cell::RefCell;
use std::collections::BTreeSet;

use dq::environment::Seeded;
use dq::job::{JobId, limits};

/// The store's clock of nodes that run on generated input, in ms.
pub const NOW: u64 = 1_763_000_000_000;

/// Characters that break terminals, logs, protocols, file names, JSON and counts of bytes.
const HARD: &str = "\0\n\r\u{1b}\t\"\\{}:/%'` é€\u{1f600}\u{202e}\u{feff}";

/// A sequence of values.
#[derive(Debug)]
pub struct Draw(Seeded, RefCell<BTreeSet<JobId>>);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(Seeded::new(seed), RefCell::default())
    }

    /// A follow-up names this job: it may delete or replace it.
    pub fn follows(&self, id: &JobId) {
        self.1.borrow_mut().insert(id.clone());
    }

    /// Whether no follow-up names this job.
    pub fn is_left_alone(&self, id: &JobId) -> bool {
        !self.1.borrow().contains(id)
    }

    pub fn below(&self, most: u64) -> u64 {
        self.0.next() % most
    }

    /// True once in so many times.
    pub fn one_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T: ?Sized>(&self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }

    fn hard(&self) -> char {
        HARD.chars().nth(self.below(HARD.chars().count() as u64) as usize).expect("there are so many")
    }

    /// A number: small, at a limit, at a power of two, near the present, or any.
    pub fn number(&self) -> u64 {
        match self.below(8) {
            0 | 1 => self.below(1_000),
            2 | 3 => NOW.wrapping_add(self.below(200_000)).wrapping_sub(100_000),
            4 => (1_u64 << self.below(64)).wrapping_add(self.below(3)).wrapping_sub(1),
            5 => {
                let limit = &limits::ALL[self.below(limits::ALL.len() as u64) as usize];
                let end = if self.one_in(2) { limit.least } else { limit.most };
                end.wrapping_add(self.below(3)).wrapping_sub(1)
            }
            6 => [0, 1, u64::MAX, u64::MAX - 1, i64::MAX as u64][self.below(5) as usize],
            _ => self.0.next(),
        }
    }

    /// A time or period that the format allows, often at its ends.
    pub fn time(&self) -> u64 {
        self.number().min(limits::TIME.most)
    }

    /// A text: mostly short, sometimes of hard characters, rarely as long as a limit or one more.
    pub fn text(&self) -> String {
        match self.below(40) {
            0 => {
                let limit = [limits::HEADERS, limits::RETRY, limits::ERROR, limits::ID][self.below(4) as usize];
                "x".repeat((limit.most + self.below(3)).saturating_sub(1) as usize)
            }
            1 => "é".repeat(self.below(5_000) as usize),
            2..10 => (0..self.below(12)).map(|_| self.hard()).collect(),
            _ => self.word(),
        }
    }

    /// A short text of letters and digits.
    pub fn word(&self) -> String {
        (0..1 + self.below(9)).map(|_| char::from(b"abcxyz0189-_.:"[self.below(14) as usize])).collect()
    }

    /// Any bytes.
    pub fn bytes(&self, most: u64) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.0.next() as u8).collect()
    }

    /// The text with a few characters taken away, doubled or replaced.
    pub fn spoiled(&self, text: &str) -> String {
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=self.below(3) {
            let at = self.below(characters.len() as u64 + 1) as usize;
            match self.below(3) {
                0 if at < characters.len() => drop(characters.remove(at)),
                1 if at < characters.len() => characters.insert(at, characters[at]),
                _ => characters.insert(at, self.hard()),
            }
        }
        characters.into_iter().collect()
    }
}
