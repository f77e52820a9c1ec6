//! What a store must bring to be examined: itself, empty, and its clock.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use dq::store::Store;

/// An empty store and the hand on its clock.
///
/// The clock is the one the *store* judges by. It stands still between two calls of [`set_clock`](Self::set_clock), else
/// no behaviour could look at a boundary.
pub trait StoreFixture: Send + Sync + 'static {
    /// The store; the same one each time.
    fn store(&self) -> Arc<dyn Store>;

    /// Microseconds since the Unix epoch on the store's clock.
    fn clock(&self) -> u64;

    /// Has the store's clock show `micros` since the Unix epoch: later than before, or earlier, as after a jump.
    /// Steps that are sent after the future is ready see it.
    fn set_clock(&self, micros: u64) -> BoxFuture<'_, ()>;
}
