//! How much of the rate of its topic the start of a job spends.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use dq_grammar::InvalidValue;
use smol_str::ToSmolStr;

/// How much of the `rate` of its topic the start of a job spends, 1 to 10,000: 1 unless its add says another. Without a rate it has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(NonZeroU16);

/// The error of what is not a weight.
fn bad(given: impl fmt::Display) -> InvalidValue {
    InvalidValue::new(format!("`{given}` is not a weight: write a whole number from 1 to {}", Weight::MOST))
}

impl Weight {
    /// The largest weight.
    pub(super) const MOST: u16 = 10_000;

    /// What a job has that names none.
    pub const ONE: Self = Self(NonZeroU16::MIN);

    /// Checks a weight.
    ///
    /// # Errors
    /// [`InvalidValue`] if it is 0 or over 10,000.
    pub fn new(weight: u16) -> Result<Self, InvalidValue> {
        let weight = NonZeroU16::new(weight).filter(|weight| weight.get() <= Self::MOST).ok_or(weight);
        weight.map(Self).map_err(bad)
    }

    /// The weight that a value displays.
    ///
    /// # Errors
    /// [`InvalidValue`] if it displays none.
    #[doc(hidden)]
    pub fn of(weight: &(impl fmt::Display + ?Sized)) -> Result<Self, InvalidValue> {
        weight.to_smolstr().parse()
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
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_or_else(|_| Err(bad(text)), Self::new)
    }
}
