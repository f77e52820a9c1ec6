//! Random numbers from a seed, which the operating system chooses outside of tests.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random numbers for ids, jitter and the seeds of hash maps, whose seed decides them: SplitMix64 (Steele, Lea, Flood,
/// "Fast splittable pseudorandom number generators", OOPSLA 2014). They are not suitable as secrets.
#[derive(Debug)]
pub struct Seeded(AtomicU64);

impl Seeded {
    /// Makes the sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Makes a sequence whose seed comes from the operating system, through the keys of `std`'s hash maps.
    pub fn by_system() -> Self {
        Self::new(RandomState::new().build_hasher().finish())
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
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
        assert_ne!(Seeded::by_system().next(), Seeded::by_system().next());
    }
}
