//! Permits: how many jobs there is room for.
//!
//! Each running handler has a permit; an abandoned run keeps its permit until it returns. A topic has at most `concurrency` permits, and
//! fewer if it shares those of its node (`node_concurrency`) with topics that need them, too. `runs/` starts the jobs.

use std::time::Duration;

use super::{Claims, Load};
use crate::context::topic::flight::CLAIMS;
use crate::context::topic::moment::Moment;
use crate::context::topic::run::BEGINS_WITHIN;
use crate::context::topic::runs::Room;
use crate::listener::AckMode;
use crate::store::RequestKind;
use crate::store::step::{Claim, MAX_JOBS};

/// How many runs wait in the queue of the runners at most.
const MAX_AHEAD: usize = 256;

impl Claims {
    /// How many handlers may run now.
    pub(crate) const fn permits(&self) -> usize {
        self.permits.granted()
    }

    /// How many jobs wait for a permit, in the queue of the runners or beside it.
    pub(crate) fn waiting_for_permits(&self, load: Load) -> usize {
        load.jobs.waiting + load.without_permit(self.permits.granted())
    }

    /// When the jobs that wait for a permit go back, for a node that has one: if until then no handler of the topic has returned. `returned`
    /// tells how many have.
    pub(crate) fn gives_back_at(&mut self, load: Load, returned: usize, now: Duration) -> Option<Duration> {
        self.gave_back = self.gave_back.filter(|before| *before == returned);
        if self.waiting_for_permits(load) == 0 || self.active_runs(load) < self.permits.granted() {
            self.blocked = None;
            return None;
        }
        let (since, _) =
            *self.blocked.insert(self.blocked.filter(|(_, before)| *before == returned).unwrap_or((now, returned)));
        Some(since + BEGINS_WITHIN)
    }

    /// The jobs that wait for a permit go back.
    pub(crate) fn gives_back(&mut self, returned: usize) {
        self.gave_back = Some(returned);
    }

    /// How many runs have a permit and may be executing.
    pub(crate) fn active_runs(&self, load: Load) -> usize {
        load.active.saturating_sub(load.without_permit(self.permits.granted()))
    }

    /// How many runs there is room for. Beyond the permits that are as many as ended lately. None where others may have a better
    /// claim to the next permit: another topic, or a quarantined job. None if a job that is handed over can not go back. And no
    /// batch: until a permit is free it may still grow.
    pub(crate) fn room(&mut self, load: Load, now: Duration) -> Room {
        let granted = self.permits.granted();
        let is_wanted_elsewhere = self.permits.is_shared() || load.jobs.quarantined() > 0;
        let ahead = match is_wanted_elsewhere || self.parts.topic.ack == AckMode::OnClaim || self.takes_batches {
            true => 0,
            false => self.ahead(now).min(MAX_AHEAD),
        };
        Room { permits: granted, used: load.handed_over - load.without_permit(granted), ahead }
    }

    /// Asks for the permits of the node that this topic wants, and gives back what others may need more. While a claim is in
    /// flight its permits are promised.
    pub(crate) fn share_permits(&mut self, load: Load, moment: &Moment) {
        if !self.permits.is_shared() {
            return;
        }
        let granted = self.permits.granted();
        let used = load.handed_over - load.without_permit(granted);
        let used = if moment.flight.busy(&CLAIMS) { granted.max(used) } else { used };
        let claims_soon = self.sleep.is_awake(moment.now)
            && load.agrees
            && moment.can_send(RequestKind::Transfer)
            && !(load.is_over || self.is_paused() || load.starves || self.is_held_up());
        let held = load.handed_over + load.jobs.waiting.div_ceil(self.batch_size());
        let wanted = if claims_soon { self.permits.most() } else { used.max(held) };
        self.permits.ask(used, wanted);
    }

    /// How many more jobs this node wants: none beyond its free permits while many bytes wait. Zero while it holds enough, and
    /// while a job of its process must run alone. Quarantined jobs that wait do not count, because ordinary ones overtake them.
    /// `arriving` are claimed, and the node has not taken them in yet.
    pub(super) fn wanted(&mut self, load: Load, arriving: &[Claim], moment: &Moment) -> usize {
        let wanted = if load.starves { 0 } else { self.has_room_for(load, arriving, moment) };
        if wanted == 0 {
            self.refused = None;
            return 0;
        }
        if self.is_held_up() {
            self.refused.get_or_insert_with(|| self.parts.environment.process().refuse_claim());
            return 0;
        }
        wanted
    }

    /// The same, whatever must run alone.
    fn has_room_for(&mut self, load: Load, arriving: &[Claim], moment: &Moment) -> usize {
        let bytes = arriving.iter().map(|claim| claim.record.as_bytes().len()).sum::<usize>();
        self.waiting.set(load.bytes + bytes);
        // With one permit, an ordinary job must be there to run between two quarantined ones.
        let fewest = if self.gave_back.is_some() { 0 } else { load.jobs.quarantined().min(1) };
        let overtaken = load.jobs.quarantined_waiting.min(MAX_JOBS);
        let (granted, asked) = (self.permits.granted(), moment.flight.limits(RequestKind::Transfer).0);
        let (free, waiting, most) = if self.takes_batches {
            // As many as fill the batches that can start, in one claim or two, and those that are taken ahead. While many bytes
            // wait or are in batches: none, or one if this topic runs nothing.
            let free = granted.saturating_sub(load.handed_over);
            let room = if self.waiting.is_full() {
                usize::from(load.handed_over == 0)
            } else {
                (free * self.batch_size()).min(MAX_JOBS) + self.ahead(moment.now).max(fewest)
            };
            let waiting = load.jobs.waiting - overtaken + arriving.len();
            (room.saturating_sub(waiting), waiting, room)
        } else {
            let ahead = if self.waiting.is_full() { 0 } else { self.ahead(moment.now) }.max(fewest);
            let most = granted + ahead;
            let wanting = load.jobs.needing_permits() - overtaken + load.without_job + arriving.len();
            let waiting = load.jobs.ordinary_waiting() + load.without_permit(granted) + arriving.len();
            (most.saturating_sub(wanting), waiting, most)
        };
        // Each transfer costs a round trip, so while jobs wait for a permit, the node claims only a quarter of its limit or more.
        let free = free.min(asked);
        if waiting > 0 && free < asked.min(most / 4) { 0 } else { free }
    }

    /// How many jobs the node takes beyond its permits. None where all nodes together are limited: they would hold slots that another node
    /// could use, and start later than their rate counts them.
    fn ahead(&mut self, now: Duration) -> usize {
        if self.is_limited { 0 } else { self.prefetch.ahead(now) }
    }

    /// How many jobs share a permit at most.
    fn batch_size(&self) -> usize {
        if self.takes_batches { self.parts.topic.batch_size } else { 1 }
    }

    /// Whether nothing that is claimed now could start soon, because a job of this process must run alone.
    pub(super) fn is_held_up(&self) -> bool {
        self.parts.environment.process().is_closed()
    }
}
