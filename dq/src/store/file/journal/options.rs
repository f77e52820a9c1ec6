//! What a journal is opened with.

use super::holder::Holder;

/// What a journal is opened with.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Written into every file of a new journal, so that files of another one are recognized: a random number. An existing
    /// journal keeps its own.
    pub identity: u64,
    /// Who opens it, for the lock file.
    pub holder: Holder,
    /// The version of the content of the frames that are appended. Frames of older versions come with theirs; a file with a newer
    /// one is refused.
    pub content: u32,
    /// A new segment begins once one has this many bytes. Default: 64 MiB.
    pub segment_bytes: u64,
    /// Zeros are written ahead of the groups in steps of this many bytes, because overwriting a file takes half as long as
    /// appending to it. 0: none. Default: 1 MiB.
    pub ahead_bytes: u64,
}

impl Options {
    /// The defaults.
    pub const fn new(identity: u64, holder: Holder, content: u32) -> Self {
        Self { identity, holder, content, segment_bytes: 64 << 20, ahead_bytes: 1 << 20 }
    }
}
