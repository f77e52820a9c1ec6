//! Random sources. Each part of a run draws from a source of its own, so leaving a part out changes nothing that the other
//! parts draw. This is what makes shrinking possible.

use dq::environment::Seeded;

/// FNV-1a over the bytes, starting from a seed.
pub(super) fn hash(seed: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xCBF2_9CE4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

/// A named sequence of random numbers.
#[derive(Debug)]
pub(super) struct RandomSource(Seeded);

impl RandomSource {
    pub(super) const fn new(seed: u64) -> Self {
        Self(Seeded::new(seed))
    }

    /// The random source of a part of a run, by name and number.
    pub(super) fn of(seed: u64, name: &str, number: u64) -> Self {
        Self::new(hash(seed, name.bytes().chain(number.to_le_bytes())))
    }

    /// A number below `most`, which must not be zero.
    pub(super) fn below(&self, most: u64) -> u64 {
        self.0.next() % most
    }

    pub(super) fn between(&self, from: u64, to: u64) -> u64 {
        from + self.below(to - from)
    }

    /// Returns true with this probability.
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
