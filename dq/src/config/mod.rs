//! Settings: what they are, their defaults, and where they come from.
//!
//! Precedence: an add's own > environment > config file > builder > listener > payload > default. Each source is a
//! layer of changes over the one before; the value that holds keeps its source, which every message and the
//! start log name. What is wrong with settings is collected, not thrown: a start tells all of it at once.
//!
//! | setting of the node | of a topic |
//! |---|---|
//! | `lease`, `renewal`, `fallback_scan`, `grace`, `crash_rollback`, `call_timeout`, `call_total`, `durability`, `broadcast_expires_after`, `payload_limit`, `unanswered_limit` | `concurrency`, `timeout`, `on_timeout`, `retry`, `ack`, `max_crashes`, `unacked_age`, `dead_kept`, `dead_most` |
//!
//! [`NodeSettings`] and [`TopicSettings`] say what they mean. Durations are written as `"30s"` or `"1h 30m"`, sizes in
//! bytes.
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
//! [topic."mail:send"]     # a name with other characters than A-Z a-z 0-9 _ - is quoted
//! retry = "1m, 5m, 1h"
//! ```
//!
//! # Environment
//!
//! | variable | sets |
//! |---|---|
//! | `DQ_STORE=memory:jobs` | the store's URL |
//! | `DQ_LEASE=30s` | a setting of the node: `DQ_` and the key in capitals |
//! | `DQ_TOPIC_ORDER_TIMEOUT_CONCURRENCY=8` | `concurrency` of `order-timeout`: `DQ_TOPIC_`, the topic in capitals with `_` for every character that is not one of `A-Z 0-9`, `_`, and the key in capitals |
//!
//! A variable that means two settings (topics `a.b` and `a-b`; `timeout` of `a-on` and `on_timeout` of `a`) is refused at
//! start: set it in the config file, where names stand as they are. Every other variable that begins with `DQ_` is
//! refused too: it is a misspelling.

mod attribute;
mod file;
mod key;
mod layer;
mod layers;
mod listing;
mod problem;
mod rules;
mod settings;
mod source;
mod suggest;
mod topic;
mod value;
mod variables;

pub use listing::{Listed, Listing};
pub use problem::{Setting, SettingProblem};
pub use settings::{NodeSettings, TopicSettings};
pub use source::{Source, SourceLocation};
pub use topic::{IntoRetry, TopicOverrides};

pub(crate) use file::read as read_file;
pub(crate) use layer::{Layer, Resolved, SettingChange};
pub(crate) use layers::Layers;
pub(crate) use rules::{check_node, check_topic};
pub(crate) use suggest::{did_you_mean, nearest};
pub(crate) use variables::{Variables, of_this_process, read as read_variables};
