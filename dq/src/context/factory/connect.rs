//! A provider without a node: for programs that only add.

use std::future::Future;
use std::panic::Location;

use super::ContextFactory;
use super::stores::IntoStore;
use crate::context::error::Error;
use crate::provider::Provider;

impl Provider {
    /// A provider of `app` for a program that only adds: no listener, no node, nothing to shut down.
    ///
    /// The store is a URL or an `Arc` of a store, as in [`ContextFactory::store`]; `DQ_*` variables outweigh it in the same
    /// way. `memory:` is refused, because nobody could run its jobs; `memory:NAME` is shared with the rest of the process.
    ///
    /// # Errors
    /// [`Error::Start`] with everything that is wrong; the store is asked whether it is there.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn connect(app: impl Into<String>, store: impl IntoStore) -> impl Future<Output = Result<Self, Error>> + Send {
        let factory = ContextFactory::of(app.into(), Location::caller()).with_store(store, Location::caller());
        let factory = ContextFactory { shared_store_only: true, ..factory.without_listeners() };
        async move { Ok(factory.prepare().await?.provider) }
    }
}
