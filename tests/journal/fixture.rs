//! What all these tests need: a journal with frames whose content tells their number.

use std::sync::Arc;

use dq::store::file::disk::Disk;
use dq::store::file::journal::{self, Frame, Holder, Journal, OpenError, Options, Origin, Position, Recovered};

/// The bytes of what is written at once.
pub const UNIT: usize = journal::UNIT;

/// The options of most tests: small segments and few zeros, so that little work shows everything.
pub fn options() -> Options {
    let holder = Holder { pid: Some(1), ..Holder::default() };
    Options { segment_bytes: 8 * UNIT as u64, ahead_bytes: 4 * UNIT as u64, ..Options::new(7, holder) }
}

/// A frame that was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    pub position: Position,
    pub topic: String,
    pub kind: u8,
    pub bytes: Vec<u8>,
    pub origin: Origin,
}

/// Opens a journal, and returns its frames.
pub fn open(disk: &(impl Disk + Clone), options: &Options) -> Result<(Arc<Journal>, Recovered, Vec<Read>), OpenError> {
    let mut frames = Vec::new();
    let (journal, recovered) = Journal::open(Arc::new(disk.clone()), options, keep(&mut frames))?;
    Ok((Arc::new(journal), recovered, frames))
}

/// Reads a journal without changing it.
pub fn read(disk: &impl Disk) -> Result<(Recovered, Vec<Read>), OpenError> {
    let mut frames = Vec::new();
    let recovered = Journal::read(disk, keep(&mut frames))?;
    Ok((recovered, frames))
}

pub fn keep(frames: &mut Vec<Read>) -> impl FnMut(Position, Frame<'_>) -> Result<(), std::io::Error> {
    |position, frame| {
        let (topic, kind, bytes, origin) = (frame.name.to_owned(), frame.kind, frame.bytes.to_vec(), frame.origin);
        frames.push(Read { position, topic, kind, bytes, origin });
        Ok(())
    }
}

/// The numbers that the frames tell.
pub fn numbers(frames: &[Read]) -> Vec<u64> {
    frames.iter().map(|frame| u64::from_le_bytes(frame.bytes[..8].try_into().unwrap())).collect()
}

/// The content of the frame with a number: 8 to 107 bytes.
pub fn content(number: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((0..number * 37 % 100).map(|at| (at ^ number) as u8));
    bytes
}
