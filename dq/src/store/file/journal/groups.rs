//! Reads the groups of a file, whatever its bytes are.

use super::error::{Fault, OpenError, path_of, tried};
use super::frame::{MAX_FRAME, UNIT, u64_at};
use super::group::{GROUP_HEADER, GroupHeader, MAX_GROUP, Stamp, Unsound};
use super::header::{FileHeader, HEADER, HeaderError, Holds};
use super::position::FileName;
use crate::store::file::disk::{Access, Disk, DiskFile};

/// How many bytes are read at once, at least.
pub(super) const WINDOW: usize = 1 << 20;

/// A file that is read from its first group on.
#[derive(Debug)]
pub(super) struct Groups {
    file: Box<dyn DiskFile>,
    /// Its path, for errors.
    pub(super) path: String,
    pub(super) header: FileHeader,
    pub(super) length: u64,
    pub(super) offset: u64,
    /// So many bytes of it were synced, as its header and its groups say.
    pub(super) durable_length: u64,
    window: Vec<u8>,
    window_start: u64,
}

/// What comes next in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A sound group, from this offset on.
    Group(u64, GroupHeader),
    /// No sound group.
    Nothing {
        /// Where that shows.
        at: u64,
        /// The offset of a later group that says that what is here was synced.
        later: Option<u64>,
    },
}

impl Groups {
    /// Opens a file and reads its header, which must be as its name says.
    pub(super) fn open(disk: &dyn Disk, holds: Holds, first: u64) -> Result<Self, OpenError> {
        let mut opened = Self::unread(disk, holds, first)?;
        let (path, mut start) = (opened.path.clone(), [0; HEADER]);
        let read = opened.file.read_at(0, &mut start);
        let read = read.map_err(|source| Fault { file: path.clone(), doing: "read", source })?;
        match FileHeader::decode(&start) {
            Ok(_) if read < HEADER || opened.length < UNIT as u64 => Err(ends_within_its_header(path)),
            Ok(header) if (header.holds, header.first) != (holds, first) => {
                let (told, at) = (header.holds, header.first);
                let what = format!("its name has {holds:?} {first}, and its header {told:?} {at}");
                Err(OpenError::Foreign { file: path, what })
            }
            Ok(header) => {
                (opened.header, opened.durable_length) = (header, header.length);
                Ok(opened)
            }
            Err(error) => Err(refuse(error, path, read, &start)),
        }
    }

    /// Opens a file whose header is damaged. Without an identity that of its first sound group counts.
    pub(super) fn open_without_header(
        disk: &dyn Disk,
        holds: Holds,
        first: u64,
        identity: Option<u64>,
    ) -> Result<Self, Fault> {
        let mut opened = Self::unread(disk, holds, first)?;
        opened.header.identity = identity.map_or_else(|| opened.first_identity(), Ok)?;
        Ok(opened)
    }

    fn unread(disk: &dyn Disk, holds: Holds, first: u64) -> Result<Self, Fault> {
        let name = FileName::holding(holds, first);
        let file = tried("open", disk, &name, disk.open(&name, Access::Read))?;
        let (length, path) = (tried("read", disk, &name, file.length())?, path_of(disk, &name));
        let header = FileHeader { holds, identity: 0, first, synced: first, length: 0 };
        let (offset, window) = (UNIT as u64, Vec::new());
        Ok(Self { file, path, header, length, offset, durable_length: 0, window, window_start: 0 })
    }

    fn first_identity(&mut self) -> Result<u64, Fault> {
        let (holds, mut offset) = (self.header.holds, UNIT as u64);
        while offset < self.length {
            let position = self.position(offset);
            let bytes = self.bytes(offset, GROUP_HEADER)?;
            if bytes.len() == GROUP_HEADER {
                let identity = u64_at(bytes, 8);
                if GroupHeader::decode(bytes, Stamp::of(holds, identity), position).is_some() {
                    return Ok(identity);
                }
            }
            offset += UNIT as u64;
        }
        Ok(0)
    }

    /// What its groups start with.
    const fn stamp(&self) -> Stamp {
        Stamp::of(self.header.holds, self.header.identity)
    }

    /// The file is damaged at this offset.
    pub(super) fn damaged<T>(&self, offset: u64, what: impl Into<String>) -> Result<T, OpenError> {
        Err(OpenError::Damaged { file: self.path.clone(), offset, what: what.into() })
    }

    /// Forgets what it has of the file, which may have grown since.
    pub(super) fn refresh(&mut self) -> Result<(), Fault> {
        self.measure()?;
        self.window.clear();
        Ok(())
    }

    fn measure(&mut self) -> Result<(), Fault> {
        let length = self.file.length();
        self.length = length.map_err(|source| Fault { file: self.path.clone(), doing: "read", source })?;
        Ok(())
    }

    /// The position of an offset.
    pub(super) const fn position(&self, offset: u64) -> u64 {
        self.header.first + offset
    }

    /// Reads the next group. Its body is at [`body`](Self::body) then.
    ///
    /// # Errors
    /// Of the disk; and [`OpenError::Beyond`], because what is sound is never cut.
    pub(super) fn next(&mut self) -> Result<Next, OpenError> {
        let mut found = self.look()?;
        if let Next::Nothing { .. } = found {
            found = self.look_again()?;
        }
        if let Next::Nothing { .. } = found
            && let Some(offset) = self.later_group()?
        {
            found = self.look_again()?;
            if let Next::Nothing { later, .. } = &mut found {
                *later = Some(offset);
            }
        }
        if let Next::Group(_, header) = found {
            self.offset += header.padded();
        }
        Ok(found)
    }

    /// A process that writes at this moment may have been half through. It was through before it wrote a later group.
    fn look_again(&mut self) -> Result<Next, OpenError> {
        self.window.clear();
        self.look()
    }

    fn look(&mut self) -> Result<Next, OpenError> {
        let offset = self.offset;
        let (stamp, position) = (self.stamp(), self.position(offset));
        let Some(header) = GroupHeader::decode(self.bytes(offset, GROUP_HEADER)?, stamp, position) else {
            return Ok(Next::Nothing { at: offset, later: None });
        };
        self.durable_length = self.durable_length.max(header.length);
        if header.bytes as usize > MAX_GROUP {
            return Err(self.beyond(offset, "group", header.bytes.into(), MAX_GROUP));
        }
        let body = offset + GROUP_HEADER as u64;
        match header.check(self.bytes(body, header.bytes as usize)?) {
            Ok(()) => Ok(Next::Group(offset, header)),
            Err(Unsound::From(at)) => Ok(Next::Nothing { at: body + at as u64, later: None }),
            Err(Unsound::Beyond { at, bytes }) => Err(self.beyond(body + at as u64, "frame", bytes as u64, MAX_FRAME)),
        }
    }

    fn beyond(&self, offset: u64, what: &'static str, bytes: u64, most: usize) -> OpenError {
        OpenError::Beyond { file: self.path.clone(), offset, what, bytes, most: most as u64 }
    }

    /// The body of a group that [`next`](Self::next) has found.
    pub(super) fn body(&mut self, offset: u64, header: &GroupHeader) -> Result<&[u8], Fault> {
        self.bytes(offset + GROUP_HEADER as u64, header.bytes as usize)
    }

    /// The offset of the first header of a later group that says that the next one was synced.
    fn later_group(&mut self) -> Result<Option<u64>, Fault> {
        let position = self.position(self.offset);
        self.later_header(self.offset, |header| header.synced > position)
    }

    /// How many bytes are missing at the end of the file. A crash takes nothing that was synced, so another hand has cut it.
    pub(super) fn missing_bytes(&mut self) -> Result<u64, Fault> {
        if self.length < self.durable_length {
            // A program that writes at this moment has made it longer.
            self.measure()?;
        }
        Ok(self.durable_length.saturating_sub(self.length))
    }

    /// Refuses the file if its end is missing.
    pub(super) fn must_be_whole(&mut self) -> Result<(), OpenError> {
        if self.missing_bytes()? == 0 {
            return Ok(());
        }
        let what =
            format!("the file ends here, but {} bytes of it were synced: its end was cut off", self.durable_length);
        self.damaged(self.length, what)
    }

    /// Refuses the file if it says that what is here was synced, where [`next`](Self::next) has found no group.
    pub(super) fn must_be_torn(&mut self, at: u64, later: Option<u64>) -> Result<(), OpenError> {
        self.must_be_whole()?;
        if self.position(self.offset) < self.header.synced {
            return self.damaged(at, "there is no sound group, but by its header it was synced");
        }
        match later {
            Some(later) => {
                self.damaged(at, format!("there is no sound group, but by the group at {later} it was synced"))
            }
            None => Ok(()),
        }
    }

    /// The offset of the first header of a group behind `offset` that is of this kind.
    pub(super) fn later_header(
        &mut self,
        offset: u64,
        is_wanted: impl Fn(&GroupHeader) -> bool,
    ) -> Result<Option<u64>, Fault> {
        let mut later = offset + UNIT as u64;
        while later < self.length {
            let (stamp, position) = (self.stamp(), self.position(later));
            let header = GroupHeader::decode(self.bytes(later, GROUP_HEADER)?, stamp, position);
            if header.as_ref().is_some_and(&is_wanted) {
                return Ok(Some(later));
            }
            later += UNIT as u64;
        }
        Ok(None)
    }

    /// How many bytes there are from `offset` on to the last that is not zero.
    pub(super) fn bytes_behind(&mut self, offset: u64) -> Result<u64, Fault> {
        let (mut at, mut last) = (offset, offset);
        while at < self.length {
            let some = self.bytes(at, WINDOW)?;
            let read = some.len() as u64;
            if let Some(index) = some.iter().rposition(|byte| *byte != 0) {
                last = at + index as u64 + 1;
            }
            if read == 0 {
                break;
            }
            at += read;
        }
        Ok(last - offset)
    }

    /// Bytes of the file; fewer where it ends.
    pub(super) fn bytes(&mut self, offset: u64, bytes: usize) -> Result<&[u8], Fault> {
        let window_end = self.window_start + self.window.len() as u64;
        if offset < self.window_start || offset + bytes as u64 > window_end {
            self.fill(offset, bytes.max(WINDOW))?;
        }
        let start = usize::try_from(offset - self.window_start).expect("within the window");
        let end = (start + bytes).min(self.window.len());
        Ok(&self.window[start.min(end)..end])
    }

    fn fill(&mut self, offset: u64, bytes: usize) -> Result<(), Fault> {
        // No more than the file has: the length in a header may be wrong.
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        if self.window.len() < bytes.min(left) {
            self.window = vec![0; bytes.min(left)];
        }
        self.window.truncate(bytes.min(left));
        self.window_start = offset;
        let read = self.file.read_at(offset, &mut self.window);
        let read = read.map_err(|source| Fault { file: self.path.clone(), doing: "read", source })?;
        self.window.truncate(read);
        Ok(())
    }
}

fn ends_within_its_header(file: String) -> OpenError {
    OpenError::Damaged { file, offset: 0, what: "the file ends within its header".to_owned() }
}

/// Why the start of a file is refused.
fn refuse(error: HeaderError, file: String, read: usize, start: &[u8; HEADER]) -> OpenError {
    match error {
        HeaderError::Other(part, version, known) => OpenError::OtherVersion { file, part, version, known },
        HeaderError::Foreign if read == HEADER && start.iter().any(|byte| *byte != 0) => {
            OpenError::Foreign { file, what: "it does not start as a file of dq".to_owned() }
        }
        HeaderError::Foreign | HeaderError::Damaged if read < HEADER => ends_within_its_header(file),
        HeaderError::Foreign | HeaderError::Damaged => {
            OpenError::Damaged { file, offset: 0, what: "its header is damaged".to_owned() }
        }
    }
}
