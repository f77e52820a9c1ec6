//! Every setting: its meaning, its default, and the sources it can come from.
//!
//! # Which source counts
//!
//! The strongest one that names the setting:
//!
//! | | source | example |
//! |---|---|---|
//! | 1 | the add, for its own job | `.retry("none")` |
//! | 2 | the environment | `DQ_TOPIC_ORDER_TIMEOUT_RETRY=none` |
//! | 3 | the config file | `retry = "none"` under `[topic.order-timeout]` |
//! | 4 | the builder, [`ContextFactory`](crate::ContextFactory) | `.topic("order-timeout", \|topic\| topic.retry("none"))` |
//! | 5 | the attribute of the listener | `#[delay_listener(retry = "none")]` |
//! | 6 | the attribute of the payload | `#[job(retry = "none")]` |
//! | 7 | the default | |
//!
//! For a `retry`, the function [`retry_delay`](crate::listener::DelayListener::retry_delay) of the listener comes between 1 and 2. The
//! start log and [`Context::settings`](crate::Context::settings) show every effective value and where it came from. A start reports
//! every problem with the settings at once.
//!
//! # The settings
//!
//! The methods of [`ContextFactory`](crate::ContextFactory) and [`TopicOverrides`] list and explain them. Write a duration as `"30s"` or `"1h 30m"`, and a size in bytes.
//!
//! Intervals of the node limit each other. An interval that you do not set takes the value nearest to its default that fits to the
//! others, and its source is [`Source::Follows`].
//!
//! # Config file
//!
//! ```toml
//! store = "memory:jobs"
//! lease = "30s"
//!
//! [topic.order-timeout]
//! concurrency = 8
//! timeout = "none"
//!
//! [topic."mail:send"]     # quote a name with characters other than A-Z a-z 0-9 _ -
//! retry = "1m, 5m, 1h"
//! ```
//!
//! # Environment
//!
//! | variable | sets |
//! |---|---|
//! | `DQ_STORE=memory:jobs` | the store's URL |
//! | `DQ_LEASE=30s` | a setting of the node: `DQ_` and the key in capitals |
//! | `DQ_TOPIC_ORDER_TIMEOUT_CONCURRENCY=8` | `concurrency` of `order-timeout`: `DQ_TOPIC_`, the topic in capitals with `_` for every character other than `A-Z 0-9`, then `_` and the key in capitals |
//!
//! A start reports a variable with two meanings as a problem (`timeout` of topics `a.b` and `a-b`; `timeout` of `a-on`
//! and `on_timeout` of `a`): use the config file, where every name is exact. It ignores every other variable that begins with
//! `DQ_`, and names them all in one WARN, with the setting that each may have meant.
//!
//! The config file and the environment may have settings of topics without a listener in this program, because programs may
//! share them: one line at INFO names these topics. An unknown key in the file is a problem.

mod derived;
mod file;
mod layer;
mod layers;
mod listing;
mod problem;
mod rules;
mod settings;
mod source;
mod topic;
mod unused;
mod value;
mod variables;

pub use listing::{EffectiveSettings, SettingValue};
#[doc(hidden)]
pub use problem::{Setting, SettingProblem};
#[doc(hidden)]
pub use settings::{NodeSettings, TopicSettings};
pub use source::{Source, SourceLocation};
#[doc(hidden)]
pub use topic::IntoSetting;
pub use topic::TopicOverrides;

pub use crate::store::{Durability, Rate};

pub(crate) use file::read as read_file;
pub(crate) use layer::{Layer, Resolved, SettingChange};
pub(crate) use layers::Layers;
pub(crate) use problem::{did_you_mean, nearest};
pub(crate) use rules::{check_batches, check_node, check_topic};
pub(crate) use settings::{setter, setters};
pub(crate) use value::show_duration;
pub(crate) use variables::{Variables, of_this_process, read as read_variables};
