//! The settings of nodes and topics, made from the table in `dq-grammar`.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use dq_grammar::{DAY, HOUR, MINUTE, MS, SECOND, node_settings, topic_settings};

use super::value::{Value, Written};
use crate::job::RetryPolicy;
use crate::listener::{AckMode, OnBlocked, OnTimeout};
use crate::store::Durability;
use crate::store::Rate;
use crate::time::MAX_DELAY;

/// Puts a value into the settings.
pub(crate) type Put<S> = Arc<dyn Fn(&mut S) + Send + Sync>;

/// A setting. Its name is the name of the field, the key in a config file and, in capitals, the environment variable.
pub(crate) struct Key<S: 'static> {
    pub(crate) name: &'static str,
    pub(crate) read: fn(Written<'_>) -> Result<Put<S>, String>,
    pub(crate) show: fn(&S) -> String,
    /// For a value outside of its range: what is allowed, and what to write instead.
    pub(super) outside: fn(&S) -> Option<(String, String)>,
}

/// Settings with a table of their keys.
pub(crate) trait Keyed: Default + Clone + 'static {
    const KEYS: &'static [Key<Self>];

    /// The key of this name.
    fn key(name: &str) -> Option<&'static Key<Self>> {
        Self::KEYS.iter().find(|key| key.name == name)
    }
}

/// A value with a range; no value, which means no limit, is always within it.
trait Ranged<T> {
    fn ranged(&self) -> Option<&T>;
}

impl<T> Ranged<T> for T {
    fn ranged(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T> Ranged<T> for Option<T> {
    fn ranged(&self) -> Option<&T> {
        self.as_ref()
    }
}

fn outside<T: Value + PartialOrd>(
    name: &str,
    is: &impl Ranged<T>,
    range: &RangeInclusive<T>,
) -> Option<(String, String)> {
    let is = is.ranged().filter(|is| !range.contains(is))?;
    let (least, most) = (range.start(), range.end());
    let (nearest, direction) = if is < least { (least, "more") } else { (most, "less") };
    let limit = format!("between {} and {}", least.show(), most.show());
    Some((limit, format!("`{name} = {}` or {direction}", nearest.quoted())))
}

macro_rules! settings {
    ($(#[$about:meta])+ $settings:ident
     $($(#[$doc:meta])+ $name:ident: [$($type:tt)+] = $default:expr $(, in $range:expr)? $(, attribute $example:literal)?;)+) => {
        $(#[$about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $settings {
            $(
                $(#[$doc])+
                ///
                #[doc = concat!("Default `", stringify!($default), "`", $("; range `", stringify!($range), "`",)? ".")]
                pub $name: $($type)+,
            )+
        }

        impl Default for $settings {
            fn default() -> Self {
                Self { $($name: $default),+ }
            }
        }

        impl Keyed for $settings {
            const KEYS: &'static [Key<Self>] = &[$(
                Key {
                    name: stringify!($name),
                    read: |written| {
                        let value = Value::read(written)?;
                        Ok(Arc::new(move |settings: &mut $settings| settings.$name.clone_from(&value)))
                    },
                    show: |settings| settings.$name.show(),
                    outside: |_settings| [$(outside(stringify!($name), &_settings.$name, &($range)),)? None].into_iter().flatten().next(),
                },
            )+];
        }
    };
}

node_settings!(settings
    /// Settings of a node, or of a provider without a node. The default of `lease`, `heartbeat_interval`, `call_timeout` and `call_deadline` is the
    /// nearest value that fits to those of them, and to the `durability`, that were set.
    NodeSettings);
topic_settings!(settings
    /// Settings of one topic on this node.
    TopicSettings);

impl TopicSettings {
    /// Whether all nodes together run or start only so many jobs.
    pub(crate) const fn is_limited(&self) -> bool {
        let of_groups = self.group_concurrency.is_some() || self.group_rate.is_some();
        of_groups || self.cluster_concurrency.is_some() || self.rate.is_some()
    }
}

impl NodeSettings {
    /// The most jobs in one `add_many`.
    pub const MAX_BATCH: usize = 1_000;
}

/// The setter of a setting in the builder: what it takes depends on the type, and `set` of the builder puts it into the settings.
macro_rules! setter {
    ($settings:ident $name:ident [Duration] $($doc:tt)+) => {
        $crate::config::setter! { @ $settings $name(time: impl $crate::time::IntoDelay)
            time.into_delay().duration().map_err(|bad| bad.to_string()); $($doc)+ }
    };
    ($settings:ident $name:ident [Option<Duration>] $($doc:tt)+) => {
        $crate::config::setter! { @ $settings $name(time: impl $crate::time::IntoDelay)
            match time.into_delay().duration() {
                Ok(time) => Ok(Some(time).filter(|time| !time.is_zero())),
                Err(bad) => Err(bad.to_string()),
            }; $($doc)+ }
    };
    ($settings:ident $name:ident [Option<usize>] $($doc:tt)+) => {
        $crate::config::setter! { @ $settings $name(most: usize) Ok(Some(most)); $($doc)+ }
    };
    ($settings:ident $name:ident [Option<Rate>] $($doc:tt)+) => {
        $crate::config::setter! { @ $settings $name(rate: impl $crate::config::IntoSetting<Rate>)
            rate.into_setting().map(Some); $($doc)+ }
    };
    ($settings:ident $name:ident [RetryPolicy] $($doc:tt)+) => {
        $crate::config::setter! { @ $settings $name(policy: impl $crate::config::IntoSetting<RetryPolicy>)
            policy.into_setting(); $($doc)+ }
    };
    ($settings:ident $name:ident [OnBlocked] $($doc:tt)+) => {
        $crate::config::setter! { @ $settings $name(group_on_blocked: impl $crate::config::IntoSetting<OnBlocked>)
            group_on_blocked.into_setting(); $($doc)+ }
    };
    ($settings:ident $name:ident [$type:ty] $($doc:tt)+) => {
        $crate::config::setter! { @ $settings $name(value: $type) Ok(value); $($doc)+ }
    };
    (@ $settings:ident $name:ident($given:ident: $type:ty) $value:expr; $($doc:tt)+) => {
        $($doc)+
        #[track_caller]
        pub fn $name(self, $given: $type) -> Self {
            self.set(stringify!($name), $value, |settings: &mut $settings, value| settings.$name.clone_from(value))
        }
    };
}

/// The setters of all settings in the builder.
macro_rules! setters {
    ($builder:ident $settings:ident
     $($(#[$doc:meta])+ $name:ident: [$($type:tt)+] = $default:expr $(, in $range:expr)? $(, attribute $example:literal)?;)+) => {
        impl $builder {
            $($crate::config::setter! { $settings $name [$($type)+]
                $(#[$doc])+
                ///
                #[doc = concat!("Default `", stringify!($default), "`", $("; range `", stringify!($range), "`",)? ".")]
            })+
        }
    };
}

pub(crate) use {setter, setters};

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    #[test]
    fn every_default_reads_back() {
        fn read_back<S: Keyed + PartialEq + Debug>() {
            let mut settings = S::default();
            for key in S::KEYS {
                let shown = (key.show)(&settings);
                let put = (key.read)(Written::Text(&shown)).unwrap_or_else(|bad| panic!("{}: {bad}", key.name));
                put(&mut settings);
            }
            assert_eq!(settings, S::default());
        }
        read_back::<NodeSettings>();
        read_back::<TopicSettings>();
    }

    /// The guide names the largest value of each range, and each setting that an attribute takes. `tests/tidy` compares the defaults.
    #[test]
    fn the_guide_has_every_range() {
        fn most<S: Keyed>(key: &Key<S>) -> Option<String> {
            let put = ["4000d", "99999999999"].into_iter().find_map(|text| (key.read)(Written::Text(text)).ok())?;
            let mut settings = S::default();
            put(&mut settings);
            let (limit, _) = (key.outside)(&settings)?;
            Some(limit.rsplit(' ').next()?.replace("3650d", "ten years"))
        }
        fn missing<S: Keyed>(guide: &str) -> Vec<String> {
            let row = |key: &Key<S>| guide.lines().find(|line| line.starts_with(&format!("| `{}` | `", key.name)));
            let is_there = |key: &&Key<S>| most(key).is_none_or(|most| row(key).is_some_and(|row| row.contains(&most)));
            S::KEYS.iter().filter(|key| !is_there(key)).map(|key| format!("{}: {:?}", key.name, most(key))).collect()
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/configuration.md");
        let guide = std::fs::read_to_string(path).unwrap();
        assert_eq!(missing::<NodeSettings>(&guide), [""; 0]);
        assert_eq!(missing::<TopicSettings>(&guide), [""; 0]);
        let keys = dq_grammar::ATTRIBUTE_KEYS.iter().filter(|key| key.example.is_some());
        let names: Vec<_> = keys.map(|key| format!("`{}`", key.name)).collect();
        let row = format!("| attribute of the listener | – | {} |", names.join(", "));
        assert!(guide.contains(&row), "docs/guide/configuration.md needs the row {row}");
    }
}
