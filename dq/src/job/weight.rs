//! How much of the rate of its topic the start of a job spends.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use smol_str::{SmolStr, ToSmolStr};

/// The largest weight.
const MOST: u16 = 10_000;

/// How much of the `rate` of its topic the start of a job spends, 1 to 10,000: 1 unless its add says another. Without a rate it has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(NonZeroU16);

/// Not a weight.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a weight: write a whole number from 1 to {MOST}")]
pub struct BadWeight(SmolStr);

impl Weight {
    /// What a job has that names none.
    pub const ONE: Self = Self(NonZeroU16::MIN);

    /// Checks a weight.
    ///
    /// # Errors
    /// [`BadWeight`] if it is 0 or over 10,000.
    pub fn new(weight: u16) -> Result<Self, BadWeight> {
        let weight = NonZeroU16::new(weight).filter(|weight| weight.get() <= MOST).ok_or(weight);
        weight.map(Self).map_err(|given| BadWeight(given.to_smolstr()))
    }

    /// The weight as a number.
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Weight {
    type Err = BadWeight;

    fn from_str(text: &str) -> Result<Self, BadWeight> {
        text.parse().map_or_else(|_| Err(BadWeight(text.into())), Self::new)
    }
}

/// What can be the weight of a job: every value that displays as one.
#[doc(hidden)]
pub trait ToWeight {
    /// The weight.
    ///
    /// # Errors
    /// [`BadWeight`] if the text is not one.
    fn to_weight(&self) -> Result<Weight, BadWeight>;
}

impl<T: fmt::Display + ?Sized> ToWeight for T {
    fn to_weight(&self) -> Result<Weight, BadWeight> {
        self.to_smolstr().parse()
    }
}
