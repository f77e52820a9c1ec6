//! Sweep: prunes jobs past their retention, and claims jobs that were UNACKED for their age, for `process_unacked`.
//!
//! Only the watcher sweeps, and not while it knows the topic to be empty, unless histories outlive their jobs there. A sweep takes
//! a sequence number as a transfer does, so the two are never in flight together.

use std::time::Duration;

use super::{Claims, Load};
use crate::context::topic::flight::CLAIMS;
use crate::context::topic::moment::Moment;
use crate::store::RequestKind;
use crate::store::step::{Role, Sweep, Swept};

/// The pause between two sweeps. Ages are days, and an idle topic must cost next to nothing.
pub(crate) const SWEEP_PERIOD: Duration = Duration::from_secs(300);

impl Claims {
    /// Sends a sweep when one is due, unless the topic `has_nothing` to sweep.
    pub(crate) fn sweep(&mut self, load: Load, has_nothing: bool, moment: &mut Moment) -> Option<Duration> {
        if load.is_over
            || self.role() != Some(Role::Watcher)
            || has_nothing
            || !load.agrees
            || moment.flight.busy(&CLAIMS)
        {
            return None;
        }
        if moment.now < self.sweep_at {
            return Some(self.sweep_at);
        }
        let limit = self.wanted(load, &[], moment);
        if limit == 0 {
            return None;
        }
        if !moment.can_send(RequestKind::Sweep) {
            return moment.pause_end(RequestKind::Sweep);
        }
        self.sweep_at = moment.now + SWEEP_PERIOD;
        let settings = &self.parts.topic;
        let sweep = Sweep {
            last_seen: moment.flight.last_seen(),
            limit,
            bytes: moment.flight.limits(RequestKind::Sweep).1,
            lease: self.parts.node.lease,
            unacked_age: settings.unacked_age,
            dead_kept: settings.dead_kept,
            dead_most: settings.dead_most,
        };
        moment.send(sweep);
        None
    }

    /// Takes in an answer, but for its claims.
    pub(crate) fn on_swept(&mut self, swept: &mut Swept, now: Duration) {
        if swept.pruned_dead > 0 {
            tracing::info!(topic = %self.parts.key.topic, jobs = swept.pruned_dead, "removed DEAD jobs past their retention");
        }
        self.on_state(swept.state.take(), None, swept.clock, false, now);
        if swept.more {
            self.sweep_at = now;
        }
    }

    /// The topic was empty, and may have a job from now on: the sweep comes within its usual time.
    pub(crate) fn sweep_later(&mut self, now: Duration) {
        self.sweep_at = self.sweep_at.max(now + SWEEP_PERIOD);
    }
}
