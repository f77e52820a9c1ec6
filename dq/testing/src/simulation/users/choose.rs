//! Numbers that the seed of a run decides, for user code: how many jobs, which amounts, how long between them.
//!
//! A number belongs to the run, not to a moment in it: it does not matter which code asks first, or how often. So state,
//! work and check may all ask for the same number, and a finding can be shrunk to smaller numbers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::super::random::RandomSource;

/// What was chosen in a run: for each name the start of the range and the number.
pub(super) type Chosen = BTreeMap<String, (u64, u64)>;

#[derive(Debug)]
struct Choices {
    seed: u64,
    fixed: BTreeMap<String, u64>,
    chosen: Chosen,
}

thread_local! {
    /// The choices of the run on this thread.
    static CHOICES: RefCell<Option<Choices>> = const { RefCell::new(None) };
}

/// Returns a number from a range, which the seed of the [`simulate`](super::simulate) run decides.
///
/// Within one run, every call with the same name returns the same number, in whichever order state, nodes, work and check
/// ask. Another seed has another number. Shrinking moves the number of a finding towards the start of the range, so let the
/// range start with the simplest value.
///
/// Use it for whatever should differ from run to run: how many jobs the work adds, how long it waits between them, what is
/// in them. Outside of a simulation, and on threads that user code starts, it returns the start of the range.
///
/// ```
/// # use std::sync::Arc;
/// # #[derive(Default)] struct Shop;
/// # impl Shop { fn with(orders: u64) -> Self { assert!((1..=5).contains(&orders)); Self } }
/// use dq_testing::{choose, simulate};
///
/// let orders = || choose("orders", 1..=5);
/// let simulation = simulate(move || Arc::new(Shop::with(orders())));
/// // .. and in `.work(..)`: `for order in 0..orders() { .. }`
/// ```
///
/// # Panics
/// If the range is empty.
pub fn choose(name: &str, among: RangeInclusive<u64>) -> u64 {
    let (least, most) = (*among.start(), *among.end());
    assert!(least <= most, "`choose(\"{name}\", {among:?})`: the range is empty");
    CHOICES.with_borrow_mut(|choices| {
        let Some(Choices { seed, fixed, chosen }) = choices else { return least };
        let random = || {
            let drawn = RandomSource::of(*seed, name, u64::from_le_bytes(*b"choice  ")).seed();
            (most - least).checked_add(1).map_or(drawn, |numbers| least + drawn % numbers)
        };
        let number = fixed.get(name).map_or_else(random, |fixed| *fixed.clamp(&least, &most));
        chosen.insert(name.to_owned(), (least, number));
        number
    })
}

/// Choices for the run on this thread; they end when this is dropped.
#[derive(Debug)]
pub(super) struct Choosing;

impl Choosing {
    pub(super) fn start(seed: u64, fixed: &BTreeMap<String, u64>) -> Self {
        CHOICES.set(Some(Choices { seed, fixed: fixed.clone(), chosen: Chosen::new() }));
        Self
    }

    /// What the run has chosen.
    pub(super) fn chosen(&self) -> Chosen {
        CHOICES.with_borrow(|choices| choices.as_ref().map(|choices| choices.chosen.clone()).unwrap_or_default())
    }
}

impl Drop for Choosing {
    fn drop(&mut self) {
        CHOICES.set(None);
    }
}
