//! Why a dashboard cannot be made.

/// The fewest bytes of a token.
pub(crate) const MIN_TOKEN: usize = 16;

/// The fewest bytes of a key.
pub(crate) const MIN_KEY: usize = 32;

/// Why a dashboard cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DashboardError {
    /// The token can be guessed.
    #[error(
        "a token of the dashboard has {length} bytes; it needs at least {MIN_TOKEN}: `openssl rand -hex 32` makes one"
    )]
    ShortToken {
        /// Its length.
        length: usize,
    },
    /// The key can be guessed.
    #[error("the key of the dashboard has {length} bytes; it needs at least {MIN_KEY}")]
    ShortKey {
        /// Its length.
        length: usize,
    },
    /// The system has no random bytes for a key.
    #[error("the system has no random bytes for the key of the dashboard")]
    NoRandomness,
    /// The path does not begin with `/`, or has more in it than a path may have.
    #[error("`{path}` is not a path for a dashboard: write one like `/admin/dq`")]
    BadPath {
        /// The path.
        path: String,
    },
}
