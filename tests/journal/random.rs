//! Numbers that a seed decides.

use dq::environment::Seeded;

/// A sequence of numbers below a limit.
pub struct Random(Seeded);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Seeded::new(seed))
    }

    pub fn below(&self, most: usize) -> usize {
        (self.0.next() % most as u64) as usize
    }
}
