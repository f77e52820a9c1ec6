//! Promises to which the checker holds dq only once it keeps them.
//!
//! While a constant is false, its promise is checked only in runs with [`Options::promised`](super::Options::promised)
//! (`tests/simulate --promised`), and seeds do not pick its profile by themselves.

/// Rule 19 for a whole process: a job is convicted of a crash only after a run without any other handler or broadcast
/// listener in its process, whatever the topic. No job becomes DEAD by the crashes of another one, and the `final_retry` of
/// a job begins after at most [`EXTRA_CRASHES`] crashes beyond the cap that it caused.
pub const ISOLATES_PROCESSES: bool = true;

/// A run begins with the first poll of its handler: what was not polled costs no attempt, and its job is not DEAD.
pub const RUNS_BEGIN_AT_FIRST_POLL: bool = true;

/// Steps are bounded by bytes, and an answer that still arrives is not given up: large payloads pass over slow links.
pub const STEPS_ARE_BOUNDED_BY_BYTES: bool = true;

/// A caller whose job never left its program gets `NotAdded`.
pub const TELLS_WHAT_WAS_NOT_SENT: bool = true;

/// A link renews and publishes over a connection of its own, so payloads do not delay that.
pub(super) const RENEWALS_ARE_APART: bool = true;

/// How many crashes beyond the cap a job may cause before its `final_retry` begins.
pub const EXTRA_CRASHES: u32 = 2;
