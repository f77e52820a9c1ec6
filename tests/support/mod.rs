//! What the tests share: node processes and throw-away servers.

pub mod redis;
