//! Randomness. Each part of a run draws from dice of its own, so that what is left out of a run changes nothing of what the
//! other parts draw: that is what lets a run that shows something be shrunk.

use dq::environment::{Entropy, Seeded};

/// See the module.
#[derive(Debug)]
pub(super) struct RandomSource(Seeded);

impl RandomSource {
    pub(super) const fn new(seed: u64) -> Self {
        Self(Seeded::new(seed))
    }

    /// The dice of a part of a run, by its name and number (FNV-1a over both, from the seed on).
    pub(super) fn of(seed: u64, name: &str, number: u64) -> Self {
        let bytes = name.bytes().chain(number.to_le_bytes());
        let start = 0xCBF2_9CE4_8422_2325 ^ seed;
        Self::new(bytes.fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)))
    }

    /// A number below `most`, which is not zero.
    pub(super) fn below(&self, most: u64) -> u64 {
        self.0.next() % most
    }

    pub(super) fn between(&self, from: u64, to: u64) -> u64 {
        from + self.below(to - from)
    }

    /// True with this probability.
    pub(super) fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && (self.0.next() >> 11) as f64 / ((1_u64 << 53) as f64) < probability
    }

    pub(super) fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub(super) fn seed(&self) -> u64 {
        self.0.next()
    }
}
