//! The table of the settings: every name, and how dq reads and shows its value.

use std::fmt;
use std::sync::Arc;

use super::settings::{NodeSettings, TopicSettings};
use super::value::{Value, Written};

/// Puts a value into the settings.
pub(crate) type Put<S> = Arc<dyn Fn(&mut S) + Send + Sync>;

/// A setting. Its name is the name of the field, the key in a config file and, in capitals, the environment variable.
pub(crate) struct Key<S: 'static> {
    pub(crate) name: &'static str,
    pub(crate) read: fn(Written<'_>) -> Result<Put<S>, String>,
    pub(crate) show: fn(&S) -> String,
}

/// Settings with a table of their keys.
pub(crate) trait Keyed: Default + Clone + 'static {
    const KEYS: &'static [Key<Self>];

    /// The key of this name.
    fn key(name: &str) -> Option<&'static Key<Self>> {
        Self::KEYS.iter().find(|key| key.name == name)
    }
}

impl<S> fmt::Debug for Key<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! keys {
    ($settings:ty: $($name:ident),+ $(,)?) => {
        impl Keyed for $settings {
            const KEYS: &'static [Key<Self>] = &[$(
                Key {
                    name: stringify!($name),
                    read: |written| {
                        let value = Value::read(written)?;
                        Ok(Arc::new(move |settings: &mut $settings| settings.$name.clone_from(&value)))
                    },
                    show: |settings| settings.$name.show(),
                },
            )+];
        }
    };
}

keys!(NodeSettings:
    lease, renewal, fallback_scan, grace, node_concurrency, crash_rollback, call_timeout, call_total, durability,
    broadcast_expires_after, payload_limit, unanswered_limit, unanswered_bytes,
);
keys!(TopicSettings:
    concurrency, timeout, on_timeout, retry, ack, max_crashes, unacked_age, dead_kept, dead_most, lookahead,
    lateness_objective, history, history_after, batch, batch_bytes, statistics,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_reads_back() {
        fn read_back<S: Keyed + PartialEq + fmt::Debug>() {
            let mut settings = S::default();
            for key in S::KEYS {
                let shown = (key.show)(&settings);
                let put = (key.read)(Written::Text(&shown)).unwrap_or_else(|bad| panic!("{key:?}: {bad}"));
                put(&mut settings);
            }
            assert_eq!(settings, S::default());
        }
        read_back::<NodeSettings>();
        read_back::<TopicSettings>();
    }
}
