//! Why a URL names no store of this build.

use crate::job::BadName;

/// Why a URL names no store of this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadStoreUrl {
    /// dq knows no such scheme.
    #[error("there is no scheme `{scheme}`{}; {BUILT}", suggested(.suggestion.as_deref()))]
    UnknownScheme {
        /// The text before the colon, or the whole text if there is no colon.
        scheme: String,
        /// The nearest known scheme.
        suggestion: Option<String>,
    },
    /// The scheme is known, but this build of dq has no such store.
    #[error("`{scheme}` is not built yet; {BUILT}")]
    NotBuilt {
        /// The scheme.
        scheme: &'static str,
    },
    /// The name after `memory:` is not valid.
    #[error("{0}")]
    Name(BadName),
    /// What follows `file:` names no directory.
    #[error(
        "`file:{given}` names no directory: write `file:./dq-data/NAME` for one below the working directory, or \
         `file:/var/lib/NAME`"
    )]
    Directory {
        /// The text after `file:`.
        given: String,
    },
    /// `Provider::connect("memory:")`: a store that no node could reach.
    #[error(
        "no node could run its jobs: name it as `memory:NAME`, and give that to a `ContextFactory` of this process too"
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

/// The stores of this build, for the two texts that report an unknown one.
#[cfg(feature = "redis")]
const BUILT: &str = "there is `file:DIRECTORY` (on disk, for one process), `memory:` (private to its factory), `memory:NAME` \
                     (shared by name in this process) and `redis://HOST` (many nodes on one server)";
/// The stores of this build, for the two texts that report an unknown one.
#[cfg(not(feature = "redis"))]
const BUILT: &str = "there is `file:DIRECTORY` (on disk, for one process), `memory:` (private to its factory) and `memory:NAME` \
                     (shared by name in this process); the feature `redis` was left out";
