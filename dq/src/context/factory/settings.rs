//! The settings of the node on the builder. `start` checks their limits.

use std::panic::Location;

use dq_grammar::node_settings;

use super::ContextFactory;
use crate::config::{NodeSettings, SettingChange, Source, setters};
use crate::store::Durability;

node_settings!(setters ContextFactory NodeSettings);

impl ContextFactory {
    #[track_caller]
    fn set<T: Send + Sync + 'static>(
        mut self,
        key: &'static str,
        value: Result<T, String>,
        put: fn(&mut NodeSettings, &T),
    ) -> Self {
        let source = Source::Builder(Location::caller().into());
        self.settings.change_node(SettingChange::new(key, None, source, value, put));
        self
    }
}
