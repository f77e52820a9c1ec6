//! Changes → bytes.

use std::borrow::Cow;

use postcard::ser_flavors::Flavor;

use super::super::kept::{Item, Kept};
use super::super::places::{Changed, Holder, Holders, Place, Run, Slot, Touch};
use super::change::{Change, KeptPlace, KeptTopicState, Notes, Row, RowPart, Time};
use crate::job::{Fence, JobId, NodeId, Record};
use crate::store::raw::Raw;
use crate::store::{HistorySetting, TopicState};
use crate::time::Timestamp;

/// Where the changes of a step may be cut: before the first row behind this many bytes. So a frame of a journal has about as many,
/// whatever a step changes, and at most those of a row more.
const PART_BYTES: usize = 1 << 20;

/// Writes changes behind what is in `into`.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) into: &'a mut Vec<u8>,
    /// From where on times count in the last part.
    origin: Option<u64>,
    /// The last claim in the last part.
    claim: Option<(NodeId, Fence)>,
    /// Where the last part begins.
    part: usize,
    /// Where the bytes may be cut.
    cuts: Vec<usize>,
}

/// Appends to a vector, which takes everything.
struct Behind<'a>(&'a mut Vec<u8>);

impl Flavor for Behind<'_> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

impl<'a> Writer<'a> {
    pub(super) fn new(into: &'a mut Vec<u8>) -> Self {
        let part = into.len();
        Self { into, origin: None, claim: None, part, cuts: Vec::new() }
    }

    pub(super) fn push(&mut self, change: &Change<'_>) {
        postcard::serialize_with_flavor(change, Behind(self.into)).expect("every change has an encoding");
        // An origin or a claim is about what follows it, so both are in one part.
        let is_whole = !matches!(change, Change::Origin(_) | Change::Claim(..));
        if is_whole && self.into.len() - self.part >= PART_BYTES {
            (self.origin, self.claim, self.part) = (None, None, self.into.len());
            self.cuts.push(self.part);
        }
    }

    /// The offsets at which the bytes may be cut: each part is changes of its own.
    pub(super) fn end(mut self) -> Vec<usize> {
        self.cuts.pop_if(|cut| *cut == self.into.len());
        self.cuts
    }

    fn time(&mut self, at: Timestamp) -> Time {
        let origin = self.origin.unwrap_or_else(|| {
            self.push(&Change::Origin(at.as_millis()));
            *self.origin.insert(at.as_millis())
        });
        at.as_millis().wrapping_sub(origin) as Time
    }

    /// What a step has touched.
    pub(super) fn changed(&mut self, changed: &Changed<'_>) {
        match *changed {
            Changed::Row(id, slot, touched, holders) => match &slot.place {
                Place::Running(run) if touched == Touch::CLAIMED => self.claimed(id, run),
                _ if touched.has(Touch::WHOLE) || touched.has(Touch::CLAIMED) => self.put(id, slot, holders),
                _ => self.part(id, slot, touched),
            },
            Changed::Gone(id) => self.push(&Change::Gone(id.as_str())),
            Changed::Lease(node, is_released) => self.push(&Change::Lease(node.as_str(), is_released)),
        }
    }

    /// A row, whole.
    pub(super) fn put(&mut self, id: &JobId, slot: &Slot, holders: &Holders) {
        if let Some(run) = slot.run() {
            self.claim(run, holders.get(&run.node).is_some_and(Holder::is_released));
        }
        let (place, record) = (self.place(slot), Raw(slot.record.as_bytes()));
        let notes = slot.run().map(notes);
        self.push(&Change::Put(Row { id: id.as_str(), place, crashes: slot.crashes, record, notes }));
    }

    fn place(&mut self, slot: &Slot) -> KeptPlace {
        let at = match &slot.place {
            Place::Timed(_, at) => *at,
            Place::Running(run) => run.token.due,
        };
        KeptPlace { state: slot.place.state(), at: self.time(at), has_seat: slot.has_seat }
    }

    fn part(&mut self, id: &JobId, slot: &Slot, touched: Touch) {
        let record = slot.record.as_bytes();
        let metadata = slot.record.metadata_bytes().filter(|_| touched.has(Touch::METADATA));
        let has_moved = touched.has(Touch::PLACE) && slot.run().is_none();
        let place = has_moved.then(|| self.place(slot));
        self.push(&Change::Part(RowPart {
            id: id.as_str(),
            place,
            crashes: touched.has(Touch::CRASHES).then_some(slot.crashes),
            metadata: metadata.map(|metadata| (Raw(metadata), record.len() - metadata.len())),
            notes: slot.run().filter(|_| touched.has(Touch::NOTES)).map(notes),
        }));
    }

    /// The claim of what follows.
    fn claim(&mut self, run: &Run, is_released: bool) {
        let is_open = self.claim.as_ref().is_some_and(|(node, fence)| *fence == run.token.fence && *node == run.node);
        if !is_open {
            self.push(&Change::Claim(run.node.as_str(), run.token.fence.0, is_released));
            self.claim = Some((run.node.clone(), run.token.fence));
        }
    }

    fn claimed(&mut self, id: &JobId, run: &Run) {
        self.claim(run, false);
        let due = self.time(run.token.due);
        self.push(&Change::Claimed(id.as_str(), due));
    }

    pub(super) fn broadcast(&mut self, id: &JobId, broadcast: Option<(Timestamp, &Record)>) {
        let broadcast = broadcast.map(|(due, record)| (self.time(due), Raw(record.as_bytes())));
        self.push(&Change::Broadcast(id.as_str(), broadcast));
    }

    pub(super) fn settings(&mut self, state: &TopicState, history: HistorySetting) {
        self.push(&Change::State(Box::new(KeptTopicState::of(state.clone()))));
        self.push(&Change::HistorySetting(history));
    }

    /// What a topic has now under the keys that a step has touched.
    pub(super) fn touched<K: Ord + Clone, V: Item<K>>(
        &mut self,
        keys: Vec<K>,
        kept: &Kept<K, V>,
        change: impl for<'k> Fn(&'k K, Option<&'k V>) -> Change<'k>,
    ) {
        for key in keys {
            self.push(&change(&key, kept.get(&key)));
        }
    }
}

fn notes(run: &Run) -> Notes<'_> {
    Notes { isolation: run.isolation, pending: run.pending.as_ref().map(Cow::Borrowed) }
}

#[cfg(test)]
mod tests {
    use super::super::read::ends_of;
    use super::*;
    use crate::job::Token;

    /// The kinds of the changes of each part, if so many bytes are left in the first part when `write` begins.
    fn parts(left: usize, write: impl Fn(&mut Writer<'_>)) -> Vec<Vec<String>> {
        let (mut bytes, filler) = (Vec::new(), "x".repeat(PART_BYTES - left - 4));
        let mut writer = Writer::new(&mut bytes);
        writer.push(&Change::Gone(&filler));
        write(&mut writer);
        let mut from = 0;
        let ends = writer.end().into_iter().chain([usize::MAX]).map(|end| end.min(bytes.len())).collect::<Vec<_>>();
        let kinds = |end| ends_of(&bytes[std::mem::replace(&mut from, end)..end]).into_iter().map(|(_, kind)| kind);
        ends.into_iter().map(kinds).map(Iterator::collect).collect()
    }

    /// Each part is a frame of its own, which may be the only one that is read before the next origin and claim.
    #[test]
    fn a_part_has_the_origin_of_its_times_and_the_claim_of_its_jobs() {
        let (id, at) = (JobId::new("a").unwrap(), Timestamp::from_millis(1_763_000_000_000));
        let run = Run::new(NodeId::new("n"), Token { fence: Fence(7), due: at });
        let claim = |writer: &mut Writer<'_>| (0..2).for_each(|_| writer.claimed(&id, &run));
        let broadcast =
            |writer: &mut Writer<'_>| (0..2).for_each(|_| writer.broadcast(&id, Some((at, &Raw(&[]).record()))));
        for left in 1..64 {
            for part in parts(left, claim).into_iter().chain(parts(left, broadcast)) {
                let place = |wanted: &str| part.iter().position(|kind| kind == wanted);
                for (of, needed) in [("Claimed", "Claim"), ("Claimed", "Origin"), ("Broadcast", "Origin")] {
                    assert!(
                        place(of).is_none_or(|at| place(needed).is_some_and(|before| before < at)),
                        "{left}: {part:?}"
                    );
                }
            }
        }
    }
}
