//! What a job costs, in counts that do not depend on the machine: commands, calls within scripts, bytes, allocations and wake-ups.
//! A test fails when somebody makes one of them worse. [`bounds`] has all of them, a little above what was measured.

mod allocations;
mod commands;
mod memory;
#[cfg(target_os = "linux")]
mod wakeups;

use tokio::sync::Mutex;

/// The bounds. Lower one when the cost falls; raise one only with a reason in the commit.
mod bounds {
    /// Commands of clients for a job that is added alone and runs alone: its add, a transfer when it is due, and a settle.
    pub(crate) const COMMANDS_ALONE: f64 = 3.5;
    /// Calls within those scripts.
    pub(crate) const CALLS_ALONE: f64 = 38.0;
    /// Commands of clients for a job of a backlog that drains.
    pub(crate) const COMMANDS_DRAINING: f64 = 0.025;
    /// Calls within the scripts of that job.
    pub(crate) const CALLS_DRAINING: f64 = 0.3;
    /// Bytes in Redis of a waiting job with a payload of 100 bytes and a generated id, in a topic of 20,000.
    pub(crate) const BYTES_WAITING: f64 = 217.0;
    /// The same, due in two hours.
    pub(crate) const BYTES_WAITING_LONG: f64 = 215.0;
    /// Allocations of a typed add with an id of its own that waits for its answer, on the memory store.
    pub(crate) const ALLOCATIONS_ADD: f64 = 8.2;
    /// Allocations of a job of an `add_many` of 100, on the memory store.
    pub(crate) const ALLOCATIONS_ADD_MANY: f64 = 4.5;
    /// Allocations of a run, from its transfer to its ack, on the memory store.
    pub(crate) const ALLOCATIONS_RUN: f64 = 4.4;
    /// Allocations of a job in a batch of 100 that a producer adds to Redis.
    pub(crate) const ALLOCATIONS_REDIS_ADD: f64 = 0.3;
    /// Allocations of a job that a link claims from Redis and acks, 100 at a time.
    pub(crate) const ALLOCATIONS_REDIS_RUN: f64 = 1.8;
    /// Times that dq's own thread goes to sleep for a job that falls due alone, on the memory store.
    pub(crate) const WAKEUPS_ALONE: f64 = 2.5;
}

/// Held by each test, because they count what the whole process does.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Fails above the bound, and prints what was found. Fails far below it, too: then the test no longer counts what it names, or the bound is to be
/// lowered.
fn assert_at_most(what: &str, found: f64, bound: f64) {
    println!("{what}: {found:.3} of at most {bound}");
    assert!(found <= bound, "{what}: {found:.3}, which is more than {bound}");
    assert!(found >= bound / 3.0, "{what}: {found:.3}, which is less than a third of {bound}");
}
