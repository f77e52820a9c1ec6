//! Settings: what they are, their defaults, and where they come from.
//!
//! Precedence: an add's own > environment > config file > builder > listener > payload > default.

mod settings;

pub use settings::{NodeSettings, TopicSettings};
