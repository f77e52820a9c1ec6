//! What a test needs from a store: the store, empty, and control of its clock.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use dq::store::Store;

/// An empty store and control of its clock.
///
/// This is the clock that the *store* decides by. It stands still between two calls of [`set_clock`](Self::set_clock), so
/// that a behaviour can test the exact boundary of a time.
pub trait StoreFixture: Send + Sync + 'static {
    /// The store; every call returns the same one.
    fn store(&self) -> Arc<dyn Store>;

    /// Microseconds since the Unix epoch on the store's clock.
    fn clock(&self) -> u64;

    /// Sets the store's clock to `micros` since the Unix epoch: later than before, or earlier, as after a jump. Steps that
    /// are sent once the future is ready see the new time.
    fn set_clock(&self, micros: u64) -> BoxFuture<'_, ()>;
}
