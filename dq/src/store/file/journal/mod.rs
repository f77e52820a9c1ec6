//! The journal: frames that are appended, synced in groups, replaced by snapshots, and read back after the process or the machine
//! stopped. It knows nothing about jobs. `docs/internals/journal.md` has the format byte by byte, and what each failure does.
//!
//! * [`Journal::open`] gives all frames to a callback, [`Journal::append`] takes new ones, [`Journal::commit`] makes them durable.
//! * [`Journal::snapshot`] begins a [`SnapshotWriter`], which replaces the journal up to where it began.
//! * [`Journal::seal`] closes it cleanly; [`Journal::read`] looks at it beside a process that uses it, [`Journal::follow`] again
//!   and again, and [`Journal::copy`] copies it.

mod appending;
mod copy;
mod error;
mod files;
mod follow;
mod frame;
mod group;
mod groups;
mod header;
mod open;
mod options;
mod position;
mod recover;
mod replay;
mod salvage;
mod snapshot;
mod start;
mod tail;
mod topics;
mod writer;

pub use appending::{Growth, Journal};
pub use error::{Fault, JournalError, OpenError, SnapshotError};
pub use follow::Follower;
pub use frame::{FIRST_OWN_KIND, MAX_FRAME, TopicNumber, UNIT};
pub use group::MAX_GROUP;
pub use options::{Holder, Options};
pub use position::{LOCK, Position};
pub use recover::{Recovered, Torn};
pub use replay::{Frame, Origin};
pub use salvage::{Salvaged, Unsound};
pub use snapshot::{SnapshotWriter, Taken};
pub use topics::MAX_NAME;
