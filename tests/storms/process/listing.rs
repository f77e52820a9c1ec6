//! All jobs that the store has.

use dq::job::State;
use dq::prelude::*;
use dq::provider::{CallError, SetState};

use super::work::Kind;
use crate::ledger::{Entry, Ledger};

/// Lists all jobs, and returns how many are not over. Nothing else may happen in the store meanwhile.
///
/// # Errors
/// A query failed, after repeats; the listing is not complete.
pub async fn list(provider: &Provider, ledger: &Ledger) -> Result<usize, CallError> {
    let mut left = 0;
    ledger.note(Entry::Listing);
    for kind in Kind::ALL {
        for state in State::ALL {
            let mut pages = provider.topic(kind.topic())?.list(state).per_page(1_000);
            while let Some(page) = pages.next_page().await? {
                left += if matches!(state, State::Dead | State::Done) { 0 } else { page.len() };
                ledger.note_all(page.into_iter().map(|seen| Entry::Listed {
                    id: seen.id.to_string(),
                    place: seen.state(),
                    cause: seen.details.ok().and_then(|details| details.cause).map(|cause| cause.as_str().to_owned()),
                }));
            }
        }
    }
    ledger.note(Entry::ListingEnd);
    Ok(left)
}

/// How many jobs are not over: DELAYED, RUNNING or UNACKED, or the last job of a closed set that has not ended.
///
/// # Errors
/// A query failed.
pub async fn left(provider: &Provider) -> Result<usize, CallError> {
    let mut left = 0;
    for kind in Kind::ALL {
        let counts = provider.topic(kind.topic())?.counts().await?;
        left += counts.delayed + counts.running + counts.unacked;
    }
    let sets = provider.topic(Kind::Last.topic())?.job_sets(0, 1_000).await?;
    left += sets.iter().filter(|seen| seen.state == SetState::Closed).count();
    Ok(left)
}
