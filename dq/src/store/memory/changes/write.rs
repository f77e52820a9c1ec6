//! Changes → bytes.

use super::super::histories::History;
use super::super::job_sets::{JobSet, Member, MemberState, SetRow};
use super::super::places::{Changed, Ended, Holders, PendingCommand, Place, Run, Slot, TimedPlace, Touch, is_released};
use super::super::taken::TakenId;
use super::{bits, kind};
use crate::job::{Deliver, Fence, Isolation, JobId, NodeId, ProducerId, Record, TopicName};
use crate::store::{Membership, Packed, SetCounts};
use crate::time::Timestamp;

/// Where the changes of a step may be cut: before the first row behind this many bytes. So a frame of a journal has about as many,
/// whatever a step changes, and at most those of a row more.
const PART_BYTES: usize = 1 << 20;

/// Writes groups of items of one kind.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    pub(super) into: &'a mut Vec<u8>,
    /// The kind of the open group.
    open: Option<u8>,
    /// The claims of the open group.
    claims: Option<(NodeId, Fence)>,
    /// The last time in the open group.
    time: u64,
    /// Where the last part begins.
    part: usize,
    /// Where the bytes may be cut.
    cuts: Vec<usize>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(into: &'a mut Vec<u8>) -> Self {
        let part = into.len();
        Self { into, open: None, claims: None, time: 0, part, cuts: Vec::new() }
    }

    /// What a step has touched.
    pub(super) fn changed(&mut self, changed: &Changed<'_>) {
        match *changed {
            Changed::Row(id, slot, touched, holders) => match &slot.place {
                Place::Running(run) if touched == Touch::CLAIMED => self.claim(id, run),
                _ if touched.has(Touch::WHOLE) || touched.has(Touch::CLAIMED) => self.put(id, slot, holders),
                _ => self.part(id, slot, touched),
            },
            Changed::Gone(id) => self.named(kind::GONE, id.as_str()),
            Changed::Lease(node, is_released) => {
                self.named(kind::LEASE, node.as_str());
                self.into.push(is_released.into());
            }
        }
    }

    /// A row, whole.
    pub(super) fn put(&mut self, id: &JobId, slot: &Slot, holders: &Holders) {
        self.named(kind::PUT, id.as_str());
        let crashes = if slot.crashes > 0 { bits::CRASHES } else { 0 };
        match &slot.place {
            Place::Timed(place, at) => {
                self.into.push(place_number(*place) | seat(slot) | crashes);
                self.time(*at);
            }
            Place::Running(run) => {
                let released = if is_released(holders, slot) { bits::RELEASED } else { 0 };
                self.into.push(notes(run) | crashes | released);
                self.text(run.node.as_str());
                self.number(run.token.fence.0);
                self.time(run.token.due);
                self.pending(run.pending.as_deref());
            }
        }
        if slot.crashes > 0 {
            self.number(slot.crashes.into());
        }
        self.record(&slot.record);
    }

    fn part(&mut self, id: &JobId, slot: &Slot, touched: Touch) {
        let metadata = if touched.has(Touch::METADATA) { slot.record.metadata_bytes() } else { None };
        let has = |touch, bit| if touched.has(touch) { bit } else { 0 };
        // A job that has left RUNNING has no notes any more.
        let (has_place, has_notes) = match &slot.place {
            Place::Timed(..) => (has(Touch::PLACE, bits::HAS_PLACE), 0),
            Place::Running(_) => (0, has(Touch::NOTES, bits::HAS_NOTES)),
        };
        let has_metadata = metadata.map_or(0, |_| bits::HAS_METADATA);
        self.named(kind::PART, id.as_str());
        self.into.push(has_place | has(Touch::CRASHES, bits::HAS_CRASHES) | has_metadata | has_notes);
        if let Place::Timed(place, at) = &slot.place
            && has_place != 0
        {
            self.into.push(place_number(*place) | seat(slot));
            self.time(*at);
        }
        if touched.has(Touch::CRASHES) {
            self.number(slot.crashes.into());
        }
        if let Some(metadata) = metadata {
            self.bytes(metadata);
            self.number((slot.record.as_bytes().len() - metadata.len()) as u64);
        }
        if let Some(run) = slot.run().filter(|_| has_notes != 0) {
            self.into.push(notes(run));
            self.pending(run.pending.as_deref());
        }
    }

    fn claim(&mut self, id: &JobId, run: &Run) {
        self.cut();
        let is_open = self.open == Some(kind::CLAIM)
            && self.claims.as_ref().is_some_and(|(node, fence)| *fence == run.token.fence && *node == run.node);
        if !is_open {
            self.start(kind::CLAIM);
            self.text(run.node.as_str());
            self.number(run.token.fence.0);
            self.claims = Some((run.node.clone(), run.token.fence));
        }
        self.text(id.as_str());
        self.time(run.token.due);
    }

    pub(super) fn broadcast(&mut self, id: &JobId, due: Timestamp, record: &Record) {
        self.named(kind::BROADCAST, id.as_str());
        self.time(due);
        self.record(record);
    }

    /// A history, whole: until when it is kept, in milliseconds and one more, or 0, and its text.
    pub(super) fn history(&mut self, id: &JobId, history: &History) {
        self.named(kind::HISTORY, id.as_str());
        self.number(history.until.map_or(0, |until| until.as_millis() + 1));
        self.text(&history.text);
    }

    /// An id: 0 if it is free; otherwise until when it is taken, in milliseconds and one more, twice, and one more if its job was deleted.
    pub(super) fn taken(&mut self, id: &JobId, taken: Option<TakenId>) {
        self.named(kind::TAKEN, id.as_str());
        self.number(taken.map_or(0, |taken| (taken.until.as_millis() + 1) << 1 | u64::from(taken.was_deleted)));
    }

    /// How far the outbox of a source has come here.
    pub(super) fn position(&mut self, relay: &ProducerId, position: u64) {
        self.named(kind::POSITION, relay.as_str());
        self.number(position);
    }

    /// An entry of the outbox, whole.
    pub(super) fn outbox(&mut self, target: &TopicName, position: u64, after: u64, batch: &Packed) {
        self.named(kind::OUTBOX, target.as_str());
        self.number(position);
        self.number(after);
        self.bytes(batch.as_bytes());
    }

    /// No entry for this target is left up to this position, and later ones come behind it.
    pub(super) fn outbox_gone(&mut self, target: &TopicName, position: u64) {
        self.named(kind::OUTBOX_GONE, target.as_str());
        self.number(position);
    }

    /// A job, and its set: home, name and what it does if it becomes DEAD; or an empty home: it is a member of none.
    pub(super) fn member(&mut self, id: &JobId, of: Option<&Membership>) {
        self.named(kind::MEMBER, id.as_str());
        let Some(Membership { home, set, on_dead }) = of else { return self.text("") };
        self.text(home.as_str());
        self.text(set.as_str());
        self.into.push(on_dead.letter());
    }

    /// A set without its members.
    pub(super) fn set(&mut self, name: &JobId, set: &JobSet) {
        self.named(kind::SET, name.as_str());
        let SetRow { state, counts: SetCounts { members, acked, dead, left }, since, cancels } = set.row;
        self.into.extend([state.letter(), cancels.into()]);
        [members, acked, dead, left, since.as_millis()].into_iter().for_each(|number| self.number(number));
        self.bytes(set.then.as_ref().map_or(&[], |then| then.as_bytes()));
    }

    /// A member of a set: its topic, its id, and how far it has come.
    pub(super) fn set_member(&mut self, name: &JobId, (topic, id): &Member, state: MemberState) {
        self.named(kind::SET_MEMBER, name.as_str());
        self.text(topic.as_str());
        self.text(id.as_str());
        self.into.push(state as u8);
    }

    /// Ends the last group.
    pub(super) fn close(&mut self) {
        if self.open.take().is_some() {
            // No id is empty.
            self.into.push(0);
        }
    }

    /// Ends the last group. Returns the offsets at which the bytes may be cut: each part is changes of its own.
    pub(super) fn end(mut self) -> Vec<usize> {
        self.close();
        self.cuts
    }

    /// Begins a new part if the last one has enough bytes. Called before each item.
    pub(super) fn cut(&mut self) {
        if self.into.len() - self.part >= PART_BYTES {
            self.close();
            self.part = self.into.len();
            self.cuts.push(self.part);
        }
    }

    pub(super) fn start(&mut self, kind: u8) {
        self.close();
        self.into.push(kind);
        (self.open, self.time) = (Some(kind), 0);
    }

    /// Begins an item of this kind with the name of what it is about.
    pub(super) fn named(&mut self, kind: u8, name: &str) {
        self.cut();
        if self.open != Some(kind) {
            self.start(kind);
        }
        self.text(name);
    }

    fn pending(&mut self, pending: Option<&PendingCommand>) {
        let Some(PendingCommand { end, replacement }) = pending else { return };
        let fence = end.and_then(|end| end.fence);
        let end = end.map_or(0, |end| match end.how {
            Ended::Acked => 1,
            Ended::Deleted => 2,
            Ended::Cancelled => 3,
        });
        let has_fence = fence.map_or(0, |_| bits::FENCE);
        let replaces = replacement.as_ref().map_or(0, |new| {
            let conditional = if new.conditional { bits::CONDITIONAL } else { 0 };
            let deliver = match new.job.deliver {
                Deliver::Queue => 0,
                Deliver::Broadcast => bits::ONLY_BROADCAST,
                Deliver::Both => bits::BOTH,
            };
            bits::REPLACEMENT | conditional | deliver
        });
        self.into.push(end | has_fence | replaces);
        if let Some(fence) = fence {
            self.number(fence.0);
        }
        if let Some(new) = replacement {
            self.number(new.job.due.as_millis());
            self.record(&new.job.record);
        }
    }

    fn record(&mut self, record: &Record) {
        self.bytes(record.as_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.into.extend_from_slice(bytes);
    }

    /// A time, as the difference from the last one in the group: the least significant bit has the sign.
    fn time(&mut self, at: Timestamp) {
        let difference = at.as_millis().wrapping_sub(self.time);
        self.time = at.as_millis();
        self.number(difference << 1 ^ (difference >> 63).wrapping_neg());
    }

    /// Seven bits a byte, the least significant first; the eighth says that more follow.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.into.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.into.push(number as u8);
    }
}

fn notes(run: &Run) -> u8 {
    let isolation = match run.isolation {
        None => 0,
        Some(Isolation::Grouped) => bits::GROUPED,
        Some(Isolation::Alone) => bits::ALONE,
    };
    isolation | run.pending.as_ref().map_or(0, |_| bits::PENDING)
}

const fn seat(slot: &Slot) -> u8 {
    if slot.has_seat { bits::SEAT } else { 0 }
}

/// The number of a place; RUNNING is 0.
const fn place_number(place: TimedPlace) -> u8 {
    place as u8 + 1
}
