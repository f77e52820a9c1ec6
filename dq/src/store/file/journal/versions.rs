//! The versions of the format, and how the frames of an older one become those of the next.
//!
//! A new version adds its number here, and a function that turns a frame of the version before it into a frame of its own, at
//! the place that [`upgrade`] marks. `tests/journal/fixtures` keeps a directory of each version that was ever written, which
//! must always open.

use super::frame::RawFrame;

/// The version that this program writes.
pub const FORMAT: u16 = 1;

/// The oldest version that this program reads.
pub(super) const OLDEST_FORMAT: u16 = 1;

/// Turns a frame of an older version into one of [`FORMAT`], one version after the other.
pub(super) fn upgrade(format: u16, frame: RawFrame<'_>) -> RawFrame<'_> {
    debug_assert!((OLDEST_FORMAT..=FORMAT).contains(&format), "a header of another version was refused");
    // Version 1 is the first. `if format < 2 { frame = from_1_to_2(frame) }` comes here, then the next.
    frame
}
