//! Starvation: the user's runtime does not begin the handlers that this topic hands over, because handlers or other tasks
//! block its threads or keep them busy.
//!
//! What did not begin in time goes back without an attempt, for a node that has time for it. Until the runtime begins a run
//! again, the topic starts and claims nothing, and goes on renewing its lease. The tasks that were given back tell it: each
//! ends at its first poll.

use std::time::Duration;

use super::Runs;
use crate::context::topic::held::Held;
use crate::context::topic::moment::{Effect, Moment};
use crate::context::topic::run::{BEGINS_WITHIN, RunId};
use crate::job::JobId;

/// Since when runs starve, if they do.
#[derive(Debug, Default)]
pub(super) struct Starvation(Option<Duration>);

impl Runs {
    /// Whether runs starve.
    pub(crate) const fn starve(&self) -> bool {
        self.starvation.0.is_some()
    }

    /// A run has waited too long for its first poll. Its job goes back, unless the job was acked on claim: such a run can only
    /// go on waiting.
    pub(super) fn on_starved(&mut self, run_id: RunId, jobs: &mut Held, now: Duration) {
        let Some(run) = self.table.get_mut(run_id) else { return };
        let (id, is_news) = (run.jobs.only().cloned(), !std::mem::replace(&mut run.starved, true));
        if run.detached {
            self.table.check_at(run_id, Some(now + BEGINS_WITHIN));
        } else {
            let Some(run) = self.table.give_back(run_id) else { return }; // it has just begun
            for (_, job) in run.jobs.into_list() {
                if jobs.under(&job.id, job.token).is_some() {
                    jobs.roll_back(&job.id);
                }
            }
        }
        if is_news {
            self.parts.stats.count.starved.add(1);
        }
        self.begin_starvation(id.as_ref(), now);
    }

    /// Runs starve from now on, unless they do already.
    pub(super) fn begin_starvation(&mut self, id: Option<&JobId>, now: Duration) {
        if self.starve() {
            return;
        }
        self.starvation.0 = Some(now);
        self.parts.stats.set_starved(true);
        tracing::warn!(
            topic = %self.parts.key.topic, job.id = id.map(tracing::field::display),
            "the runtime of the handlers did not begin a handler within {}: its threads are blocked or too busy. \
             Jobs that did not begin go back without an attempt, and the topic claims none until handlers begin again. \
             Put blocking work into `spawn_blocking`, or lower `concurrency` or `node_concurrency`",
            humantime::format_duration(BEGINS_WITHIN)
        );
    }

    /// The runtime began a run then, or ended one that was given back.
    pub(super) fn on_began(&mut self, began: Duration, moment: &mut Moment) {
        if self.starvation.0.is_some_and(|since| began >= since) {
            self.starvation.0 = None;
            self.parts.stats.set_starved(false);
            moment.push(Effect::Wake);
            tracing::info!(topic = %self.parts.key.topic, "the runtime of the handlers begins handlers again");
        }
    }
}
