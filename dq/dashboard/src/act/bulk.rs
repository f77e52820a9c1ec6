//! One step of a bulk change.

use dq::inspect::{BulkAction, Cursor, JobFilter};
use dq::job::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::change::When;
use crate::app::App;
use crate::audit::audit;
use crate::failure::Failure;
use crate::show::now;
use crate::user::User;

/// What a step of a bulk change did.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Stepped {
    /// Jobs that were looked at.
    pub(crate) looked_at: usize,
    /// Jobs that were changed.
    pub(crate) changed: usize,
    /// Jobs that had gone or moved meanwhile.
    pub(crate) untouched: usize,
    /// `cursor` of the next step; `null`: all is done.
    pub(crate) next: Option<(u64, String)>,
}

/// What a word does to each job. A delay counts from now, so that every step gives the same time.
pub(crate) fn bulk_action(word: &str, due: &str) -> Result<BulkAction, Failure> {
    Ok(match word {
        "requeue" => BulkAction::Requeue,
        "delete" => BulkAction::Delete,
        "run_now" => BulkAction::RunNow,
        "reschedule" => BulkAction::Reschedule(match When::read(due)? {
            When::At(at) => at,
            When::After(delay) => now().after(delay),
        }),
        _ => return Err(Failure::Bad(format!("`{word}` cannot be done to many jobs"))),
    })
}

/// Changes the next jobs, at most 100.
pub(crate) async fn step(
    app: &App,
    user: &User,
    topic: &str,
    state: State,
    filter: JobFilter,
    action: BulkAction,
    after: Option<Cursor>,
) -> Result<Stepped, Failure> {
    let name = match action {
        BulkAction::Requeue => "bulk requeue",
        BulkAction::Delete => "bulk delete",
        BulkAction::RunNow => "bulk run_now",
        _ => "bulk reschedule",
    };
    let caller = app.provider.by(user.by());
    let mut bulk = caller.inspect().bulk(topic, state, filter, action)?;
    if let Some(after) = after {
        bulk = bulk.starting_after(after);
    }
    let before = bulk.cursor().cloned();
    let done = bulk.step().await;
    let progress = bulk.progress();
    match &done {
        Ok(_) => audit(user, name, topic, "", &format!("{} {state} jobs changed", progress.changed)),
        Err(error) => audit(user, name, topic, "", &format!("failed: {error}")),
    }
    done?;
    let next = bulk.cursor().filter(|next| before.as_ref() != Some(*next));
    let next = next.map(|next| (next.at.as_millis(), next.id.clone()));
    Ok(Stepped { looked_at: progress.looked_at, changed: progress.changed, untouched: progress.untouched, next })
}
