//! Randomness from the operating system, or from a seed.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random numbers for ids, jitter and the seeds of hash maps. They are not suitable as secrets.
pub trait Entropy: fmt::Debug + Send + Sync + 'static {
    /// The next number.
    fn next(&self) -> u64;
}

/// A sequence that its seed decides: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014).
#[derive(Debug)]
pub struct Seeded(AtomicU64);

impl Seeded {
    /// Makes the sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Entropy for Seeded {
    fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// A sequence whose seed comes from the operating system, through the keys of `std`'s hash maps.
#[derive(Debug)]
pub struct OsEntropy(Seeded);

impl OsEntropy {
    /// Makes a new sequence.
    pub fn new() -> Self {
        Self(Seeded::new(RandomState::new().build_hasher().finish()))
    }
}

impl Default for OsEntropy {
    fn default() -> Self {
        Self::new()
    }
}

impl Entropy for OsEntropy {
    fn next(&self) -> u64 {
        self.0.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_sequence() {
        let (a, b) = (Seeded::new(7), Seeded::new(7));
        let first: Vec<_> = (0..4).map(|_| a.next()).collect();
        assert_eq!(first, (0..4).map(|_| b.next()).collect::<Vec<_>>());
        assert_ne!(OsEntropy::new().next(), OsEntropy::new().next());
    }
}
