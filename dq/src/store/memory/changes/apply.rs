//! Bytes → rows.

use super::super::places::{Place, Run, Slot};
use super::super::topic::Topic;
use super::read::{BadChanges, Damage, Reader};
use super::{bits, kind};
use crate::job::{Fence, JobId, Token};

/// What a replay does with a change of a row that the topic does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// It fails: every row is known.
    Strict,
    /// It goes on: the changes were made while the dump was taken that the topic was loaded from, so the dump may have been
    /// ahead of them, and a later change has the row whole or gone.
    WithinDump,
}

impl Topic {
    /// Makes the topic what it was after these changes, or after this page of a dump. Applying the same changes again, in
    /// order, changes nothing. Every node that holds a job is taken for dead: its rows are free for reclaim at once (rule 22).
    ///
    /// # Errors
    /// [`BadChanges`]; the changes before the damage are applied then, so the topic is of no use. Never panics, whatever the
    /// bytes are.
    pub(crate) fn apply(&mut self, changes: &[u8], replay: Replay) -> Result<(), BadChanges> {
        let mut reader = Reader::new(changes);
        while let Some(kind) = reader.group()? {
            match kind {
                kind::PUT => {
                    while let Some(id) = reader.item()? {
                        self.apply_put(&mut reader, id)?;
                    }
                }
                kind::PART => {
                    while let Some(id) = reader.item()? {
                        self.apply_part(&mut reader, &id, replay)?;
                    }
                }
                kind::CLAIM => self.apply_claims(&mut reader, replay)?,
                kind::GONE => {
                    while let Some(id) = reader.item()? {
                        let known = self.jobs.restore_gone(&id);
                        found(&reader, replay, id, known.is_ok())?;
                    }
                }
                kind::BROADCAST => {
                    while let Some(id) = reader.item()? {
                        let due = reader.time()?;
                        self.broadcasts.restore(id, reader.record()?, due);
                    }
                }
                kind::BROADCAST_GONE => {
                    while let Some(id) = reader.item()? {
                        let known = self.broadcasts.restore_gone(&id);
                        found(&reader, replay, id, known)?;
                    }
                }
                kind::LEASE => self.apply_leases(&mut reader, replay)?,
                kind::STATE => reader.state(self.settings.restore())?,
                kind::HISTORY => self.apply_histories(&mut reader)?,
                kind::HISTORY_GONE => self.apply_histories_gone(&mut reader)?,
                kind::HISTORY_SETTING => self.apply_history_setting(&mut reader)?,
                unknown => return Err(reader.bad(Damage::UnknownKind(unknown))),
            }
        }
        Ok(())
    }

    fn apply_put(&mut self, reader: &mut Reader<'_>, id: JobId) -> Result<(), BadChanges> {
        const OF_RUN: u8 = bits::GROUPED | bits::ALONE | bits::PENDING | bits::RELEASED;
        let flags = reader.byte()?;
        let place = reader.place(flags & bits::PLACE)?;
        if place.is_some() && flags & OF_RUN != 0 {
            return Err(reader.bad(Damage::Flags(flags)));
        }
        let (place, node) = match place {
            Some(place) => (Place::Timed(place, reader.time()?), None),
            None => {
                let node = reader.node()?;
                let token = Token { fence: reader.fence()?, due: reader.time()? };
                let (isolation, pending) = reader.notes(flags)?;
                self.raise_fence(token.fence);
                (Place::Running(Box::new(Run { node: node.clone(), token, isolation, pending })), Some(node))
            }
        };
        let crashes = if flags & bits::CRASHES == 0 { 0 } else { reader.crashes()? };
        self.jobs.restore(id, Slot::new(reader.record()?, crashes, place));
        if let Some(node) = node {
            let known = self.jobs.restore_lease(&node, flags & bits::RELEASED != 0);
            debug_assert!(known.is_ok(), "the node has this row");
        }
        Ok(())
    }

    fn apply_part(&mut self, reader: &mut Reader<'_>, id: &JobId, replay: Replay) -> Result<(), BadChanges> {
        const KNOWN: u8 = bits::HAS_PLACE | bits::HAS_CRASHES | bits::HAS_METADATA | bits::HAS_NOTES;
        let flags = reader.byte()?;
        if flags & !KNOWN != 0 {
            return Err(reader.bad(Damage::Flags(flags)));
        }
        let mut known = self.jobs.get(id).is_some();
        if flags & bits::HAS_PLACE != 0 {
            let number = reader.byte()?;
            let Some(place) = reader.place(number)? else { return Err(reader.bad(Damage::Flags(number))) };
            let place = Place::Timed(place, reader.time()?);
            known &= self.jobs.restore_place(id.clone(), &place).is_ok();
        }
        if flags & bits::HAS_CRASHES != 0 {
            known &= self.jobs.restore_crashes(id, reader.crashes()?).is_ok();
        }
        if flags & bits::HAS_METADATA != 0 {
            let metadata = reader.bytes()?;
            known &= self.jobs.restore_metadata(id, metadata, reader.length()?).is_ok();
        }
        if flags & bits::HAS_NOTES != 0 {
            let notes = reader.byte()?;
            if notes & !(bits::GROUPED | bits::ALONE | bits::PENDING) != 0 {
                return Err(reader.bad(Damage::Flags(notes)));
            }
            let (isolation, pending) = reader.notes(notes)?;
            known &= self.jobs.restore_notes(id, isolation, pending).is_ok();
        }
        found(reader, replay, id.clone(), known)
    }

    fn apply_claims(&mut self, reader: &mut Reader<'_>, replay: Replay) -> Result<(), BadChanges> {
        let (node, fence) = (reader.node()?, reader.fence()?);
        self.raise_fence(fence);
        while let Some(id) = reader.item()? {
            let token = Token { fence, due: reader.time()? };
            let run = Run { node: node.clone(), token, isolation: None, pending: None };
            let known = self.jobs.restore_place(id.clone(), &Place::Running(Box::new(run)));
            found(reader, replay, id, known.is_ok())?;
        }
        Ok(())
    }

    fn apply_leases(&mut self, reader: &mut Reader<'_>, replay: Replay) -> Result<(), BadChanges> {
        while let Some(node) = reader.next_node()? {
            let is_released = match reader.byte()? {
                0 => false,
                1 => true,
                other => return Err(reader.bad(Damage::Flags(other))),
            };
            let known = self.jobs.restore_lease(&node, is_released).is_ok();
            if !known && replay == Replay::Strict {
                return Err(reader.bad(Damage::NoLease(node)));
            }
        }
        Ok(())
    }

    /// No later claim gets this fence or a smaller one.
    pub(crate) fn raise_fence(&mut self, fence: Fence) {
        self.fence = self.fence.max(fence);
    }
}

fn found(reader: &Reader<'_>, replay: Replay, id: JobId, known: bool) -> Result<(), BadChanges> {
    if known || replay == Replay::WithinDump { Ok(()) } else { Err(reader.bad(Damage::NoRow(id))) }
}
