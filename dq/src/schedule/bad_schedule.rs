//! Why a record is not a schedule.

use crate::job::BadName;
use crate::job::limits::OverLimit;

/// Why a record is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSchedule {
    /// A newer version of dq, or another program, wrote the record.
    #[error("{0}")]
    Unreadable(String),
    /// It is over a limit of the format, so no version of dq wrote it.
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    /// A name in it is not valid.
    #[error(transparent)]
    BadName(#[from] BadName),
}
