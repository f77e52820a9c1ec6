//! Moves in plain English.

use std::fmt;

use super::Transition;
use crate::job::Cause;

/// One line: `deleted, by alice`. A name is written as it is, so whoever shows it on a terminal or a page escapes the line.
impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { due } => write!(f, "added, due {due}"),
            Self::Imported { state } => write!(f, "imported as {state:?}"),
            Self::ReplacementWaits => f.write_str("a replacement waits for the end of its run"),
            Self::Changed { due, by } => {
                f.write_str("changed")?;
                due.map_or(Ok(()), |due| write!(f, ", due {due}"))?;
                who(f, by)
            }
            Self::Claimed { node, .. } => write!(f, "claimed by {node}"),
            Self::Done { by } => {
                f.write_str("done")?;
                who(f, by)
            }
            Self::Retried { cause, due, node } => write!(f, "failed on {node} ({}), again at {due}", word(*cause)),
            Self::Rejoined { due, node } => write!(f, "rejoined by {node}, due {due}"),
            Self::Progressed { progress } => write!(f, "has come to {progress}"),
            Self::GivenBack { node } => write!(f, "given back by {node}"),
            Self::Parked { node } if node.is_empty() => f.write_str("put back as UNACKED: it had lost its place"),
            Self::Parked { node } => write!(f, "parked by {node}"),
            Self::Dead { cause, node } if node.is_empty() => write!(f, "dead ({})", word(*cause)),
            Self::Dead { cause, node } => write!(f, "dead on {node} ({})", word(*cause)),
            Self::Reclaimed { node } => write!(f, "reclaimed from {node}"),
            Self::CommandWaits { command, by } => {
                write!(f, "{} waits for the end of its run", command.as_str())?;
                who(f, by)
            }
            Self::Deleted { by } => {
                f.write_str("deleted")?;
                who(f, by)
            }
            Self::Requeued { by } => {
                f.write_str("requeued")?;
                who(f, by)
            }
            Self::Published => f.write_str("published"),
            Self::Removed => f.write_str("removed: the time for which it was kept is over"),
            Self::Dropped => f.write_str("dropped: another program mangled its record"),
        }
    }
}

fn who(f: &mut fmt::Formatter<'_>, by: &str) -> fmt::Result {
    if by.is_empty() { Ok(()) } else { write!(f, ", by {by}") }
}

const fn word(cause: Option<Cause>) -> &'static str {
    match cause {
        Some(cause) => cause.as_str(),
        None => "no cause",
    }
}
