//! A provider with a buffer.

use std::sync::{Arc, Weak};

use super::buffer::{Buffer, BufferHealth, Buffered};
use super::root::Root;
use super::typed::Provider;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::job::AppName;

impl Provider {
    /// A provider whose adds wait in a buffer while the store is away.
    pub(crate) fn buffered(
        app: AppName,
        buffer: Arc<Buffer>,
        environment: Environment,
        settings: NodeSettings,
    ) -> Self {
        let store = Arc::new(Buffered(Arc::clone(&buffer)));
        let mut root = Root::new(app, store, environment, settings);
        root.buffer = Some(buffer);
        Self(Arc::new(root), None)
    }

    /// What waits in the [buffer](crate::context::ContextFactory::buffer) of this provider; `None`: it has none. Asks nothing.
    pub fn buffer(&self) -> Option<BufferHealth> {
        self.0.buffer.as_ref().map(|buffer| buffer.health())
    }

    /// The buffer, if there is one.
    pub(crate) fn buffer_handle(&self) -> Option<Weak<Buffer>> {
        self.0.buffer.as_ref().map(Arc::downgrade)
    }
}
