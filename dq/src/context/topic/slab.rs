//! A slab: values in places that are used again, by numbers that are not.

/// The number of a held job within its topic's task. No other job gets it, nor another run of this one, so it may outlive the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeldId {
    /// First, so that numbers are in the order in which the jobs came.
    number: u64,
    place: u32,
}

/// Values by their numbers.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<(HeldId, T)>>,
    free: Vec<u32>,
    last: u64,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), last: 0 }
    }
}

impl<T> Slab<T> {
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, value: T) -> HeldId {
        self.last += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).expect("a node holds fewer jobs")
        });
        let id = HeldId { number: self.last, place };
        self.places[place as usize] = Some((id, value));
        id
    }

    pub(super) fn get(&self, id: HeldId) -> Option<&T> {
        let (present, value) = self.places.get(id.place as usize)?.as_ref()?;
        (*present == id).then_some(value)
    }

    pub(super) fn get_mut(&mut self, id: HeldId) -> Option<&mut T> {
        let (present, value) = self.places.get_mut(id.place as usize)?.as_mut()?;
        (*present == id).then_some(value)
    }

    /// Drops the value of this number, if there is one.
    pub(super) fn remove(&mut self, id: HeldId) {
        if self.get(id).is_some() {
            self.places[id.place as usize] = None;
            self.free.push(id.place);
        }
    }

    /// All values, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (HeldId, &T)> {
        self.places.iter().flatten().map(|(id, value)| (*id, value))
    }

    /// All values, in no order.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_finds_its_value_and_never_another_one_in_the_same_place() {
        let mut slab = Slab::default();
        let [a, b] = ["a", "b"].map(|value| slab.insert(value));
        assert_eq!((slab.get(a), slab.get(b), slab.len()), (Some(&"a"), Some(&"b"), 2));
        slab.remove(a);
        slab.remove(a);
        let c = slab.insert("c");
        assert_eq!((a.place, slab.len()), (c.place, 2), "the place is used again");
        assert_eq!((slab.get(a), slab.get_mut(a), slab.get(c)), (None, None, Some(&"c")));
        slab.remove(a);
        let mut all: Vec<_> = slab.iter().collect();
        all.sort_unstable();
        assert_eq!(all, [(b, &"b"), (c, &"c")], "in the order in which they came");
    }
}
