//! A slab: values in places that are used again, by numbers that are not.

/// The number of a value. No other value of the slab gets it, so it may outlive its value. `K` says what has it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number<K> {
    /// First, so that numbers are in the order in which they were given.
    number: u64,
    place: u32,
    of: K,
}

#[cfg(test)]
impl<K> Number<K> {
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }
}

/// What has a [`HeldId`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OfHeld;

/// The number of a held job within its topic's task: of this run of the job and no other.
pub(crate) type HeldId = Number<OfHeld>;

/// What has a [`RunId`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OfRun;

/// The number of a run within its topic's task. Runs are handed over in the order of their numbers.
pub(crate) type RunId = Number<OfRun>;

/// Values by their numbers.
#[derive(Debug)]
pub(super) struct Slab<K, T> {
    /// Each with the number that it had last. An option of both would be one more copy of each value.
    places: Vec<(Number<K>, Option<T>)>,
    free: Vec<u32>,
    len: usize,
    last: u64,
}

impl<K, T> Default for Slab<K, T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), len: 0, last: 0 }
    }
}

impl<K: Copy + Default + PartialEq, T> Slab<K, T> {
    /// The number of the next value, and a place for it.
    pub(super) fn next(&mut self) -> Number<K> {
        self.last += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((Number::default(), None));
            u32::try_from(self.places.len() - 1).expect("a node holds fewer jobs")
        });
        let number = Number { number: self.last, place, of: K::default() };
        self.places[place as usize].0 = number;
        number
    }

    /// Puts a value into the place of its number.
    pub(super) fn put(&mut self, number: Number<K>, value: T) {
        self.places[number.place as usize].1 = Some(value);
        self.len += 1;
    }

    pub(super) fn insert(&mut self, value: T) -> Number<K> {
        let number = self.next();
        self.put(number, value);
        number
    }

    /// How many values there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, number: Number<K>) -> Option<&T> {
        let (present, value) = self.places.get(number.place as usize)?;
        value.as_ref().filter(|_| *present == number)
    }

    pub(super) fn get_mut(&mut self, number: Number<K>) -> Option<&mut T> {
        let (present, value) = self.places.get_mut(number.place as usize)?;
        value.as_mut().filter(|_| *present == number)
    }

    /// The place of this number, which becomes free.
    fn free(&mut self, number: Number<K>) -> Option<&mut Option<T>> {
        self.get(number)?;
        self.free.push(number.place);
        self.len -= 1;
        Some(&mut self.places[number.place as usize].1)
    }

    pub(super) fn take(&mut self, number: Number<K>) -> Option<T> {
        self.free(number)?.take()
    }

    /// As [`take`](Self::take), but drops the value where it is.
    pub(super) fn remove(&mut self, number: Number<K>) {
        if let Some(value) = self.free(number) {
            *value = None;
        }
    }

    /// All values, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Number<K>, &T)> {
        self.places.iter().filter_map(|(number, value)| Some((*number, value.as_ref()?)))
    }

    /// All values, in no order.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().filter_map(|(_, value)| value.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_finds_its_value_and_never_another_one_in_the_same_place() {
        let mut slab = Slab::<OfHeld, _>::default();
        let [a, b] = ["a", "b"].map(|value| slab.insert(value));
        assert_eq!((slab.get(a), slab.get(b), slab.len()), (Some(&"a"), Some(&"b"), 2));
        assert_eq!((slab.take(a), slab.take(a)), (Some("a"), None));
        let c = slab.next();
        assert_eq!((a.place, slab.len(), slab.get(c)), (c.place, 1, None), "the place is used again");
        slab.put(c, "c");
        assert_eq!((slab.get(a).copied(), slab.get_mut(a).copied(), slab.take(a)), (None, None, None));
        assert_eq!((slab.get(c), slab.len()), (Some(&"c"), 2));
        let mut all: Vec<_> = slab.iter().collect();
        all.sort_unstable();
        assert_eq!(all, [(b, &"b"), (c, &"c")], "in the order in which they came");
    }
}
