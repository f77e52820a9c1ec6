//! Why a URL leads to no store.

use crate::job::BadName;

/// Why a URL leads to no store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadStoreUrl {
    /// There is no such scheme.
    #[error("there is no scheme `{scheme}`{}; {BUILT}", suggested(.suggestion.as_deref()))]
    UnknownScheme {
        /// What stands before the colon; the whole text where there is none.
        scheme: String,
        /// What may have been meant.
        suggestion: Option<String>,
    },
    /// The scheme is known, but this version of dq has no such store.
    #[error("`{scheme}` is not built yet; {BUILT}")]
    NotBuilt {
        /// The scheme.
        scheme: &'static str,
    },
    /// The name behind `memory:` cannot be one.
    #[error("{0}")]
    Name(BadName),
    /// `Provider::connect("memory:")`: a store that nobody else can reach.
    #[error(
        "nobody would run its jobs: name it as `memory:NAME`, and give that to a `ContextFactory` of this process too"
    )]
    Private,
    /// What follows `redis:` or `rediss:` cannot be used.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] crate::store::redis::BadRedisUrl),
}

fn suggested(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// What there is, for the two texts that say what there is not.
#[cfg(feature = "redis")]
const BUILT: &str = "there is `memory:` (private to its factory), `memory:NAME` (shared by name in this process) and \
                     `redis://HOST` (many nodes on one server)";
/// What there is, for the two texts that say what there is not.
#[cfg(not(feature = "redis"))]
const BUILT: &str = "there is `memory:` (private to its factory) and `memory:NAME` (shared by name in this process); the \
                     feature `redis` was left out";
