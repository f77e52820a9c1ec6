//! Reclaim: the jobs of nodes that died go back (rules 19 and 20).
//!
//! Every transfer returns the end of the earliest lease of another node, and the store tells one other node of each new lease. Once that
//! has passed, the node scans all leases. It reclaims from a node whose lease it has seen expired and unchanged for the time of its [`watch`], over an unbroken
//! connection: after an outage longer than a lease all leases have expired, and the first node back must not take the jobs
//! of all others.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Lease;
use crate::config::NodeSettings;
use crate::context::topic::DRIFT;
use crate::context::topic::flight::{CLAIMS, longest_pause};
use crate::context::topic::moment::Moment;
use crate::job::NodeId;
use crate::store::RequestKind;
use crate::store::step::{Reclaim, Reclaimed, Scan, Scanned, is_free_lease};
use crate::time::Timestamp;

/// How often the watcher scans, for the audit.
const AUDIT_PERIOD: Duration = Duration::from_secs(60);
/// The same, while nothing shows that the topic has a job.
const EMPTY_AUDIT_PERIOD: Duration = Duration::from_secs(600);

/// How long a node watches an expired lease before it takes the jobs under it: longer than any node needs to be back after an
/// outage. Such a node may have sent a request just before the end, gives it up after the call timeout, and then pauses.
fn watch(settings: &NodeSettings) -> Duration {
    let back_within = settings.call_timeout * 5 / 4 + longest_pause(settings.heartbeat_interval);
    back_within.max(settings.heartbeat_interval * 3 / 2)
}

/// Within this time of the death of a node its jobs go back, if another node knows when its lease ends (rule 20). A node that was not
/// told looks after the fallback.
pub(crate) fn takeover(settings: &NodeSettings) -> Duration {
    const TRIPS: Duration = Duration::from_secs(1);
    settings.lease + watch(settings) + TRIPS
}

/// An expired lease.
#[derive(Debug, Clone, Copy)]
struct Expired {
    end: Timestamp,
    /// Since when this node has seen it unchanged.
    since: Duration,
}

/// What this node knows of the leases of others, and when it scans next.
#[derive(Debug, Default)]
pub(super) struct Reclaims {
    scan_at: Option<Duration>,
    /// The last end of the leases of which the store has told this node, which tells it of no other that ends before. So it scans then,
    /// whatever earlier scans have found.
    told_at: Option<Duration>,
    audit_at: Duration,
    /// When this node last asked for the leases of others, with a scan or a transfer.
    asked_at: Duration,
    /// The last scan found neither a record nor a place.
    found_nothing: bool,
    /// Nothing has shown a job since that scan was sent.
    seen_nothing: bool,
    expired: BTreeMap<NodeId, Expired>,
}

impl Reclaims {
    /// Makes a scan due then, or earlier.
    pub(super) fn scan_at(&mut self, at: Duration) {
        self.scan_at = Some(self.scan_at.map_or(at, |before| before.min(at)));
    }

    /// Another node has a new lease, which lasts this long from now.
    fn told(&mut self, lasts: Duration, now: Duration) {
        let end = now + lasts + lasts / DRIFT + Duration::from_millis(1);
        self.scan_at(end);
        self.told_at = self.told_at.max(Some(end));
    }

    /// Whether the topic is empty for all that this node knows: then nothing can be lost, and there is nothing to sweep.
    pub(super) const fn knows_no_job(&self) -> bool {
        self.found_nothing && self.seen_nothing
    }

    /// Whether this node knows of an expired lease.
    pub(super) fn knows_expired(&self) -> bool {
        !self.expired.is_empty()
    }

    /// When the next scan is due. `fallback` is how long this node does without knowing the leases of others; `None`: it is asking now.
    fn next(&self, is_watcher: bool, fallback: Option<Duration>) -> Option<Duration> {
        let audit = is_watcher.then_some(self.audit_at);
        let fallback = fallback.map(|fallback| self.asked_at + fallback);
        [self.scan_at, self.told_at, audit, fallback].into_iter().flatten().min()
    }

    /// A scan is sent. Only the watcher is certain to be signalled when the topic gets its first job.
    fn sent(&mut self, is_watcher: bool, now: Duration) {
        self.scan_at = None;
        self.told_at.take_if(|at| *at <= now);
        self.asked_at = now;
        self.audit_at = now + AUDIT_PERIOD;
        self.seen_nothing = is_watcher;
    }

    /// A scan has counted these.
    fn counted(&mut self, records: usize, places: usize, now: Duration) {
        self.found_nothing = records == 0 && places == 0;
        if self.knows_no_job() {
            self.audit_at = now + EMPTY_AUDIT_PERIOD;
        }
    }

    /// The topic may have a job from now on.
    fn may_have_jobs(&mut self, now: Duration) {
        if self.knows_no_job() {
            self.audit_at = self.audit_at.min(now + AUDIT_PERIOD);
        }
        self.seen_nothing = false;
    }

    /// The connection was broken, so what this node has seen does not count.
    pub(super) fn forget(&mut self) {
        self.expired.clear();
        self.scan_at = Some(Duration::ZERO);
    }
}

impl Lease {
    /// Makes a scan due then, or earlier.
    pub(crate) fn scan_at(&mut self, at: Duration) {
        self.reclaims.scan_at(at);
    }

    /// A transfer has answered for how long the earliest lease of another node lasts, if there is one.
    pub(crate) fn transferred(&mut self, lasts: Option<Duration>, now: Duration) {
        self.reclaims.asked_at = now;
        if let Some(lasts) = lasts {
            self.scan_at(now + lasts + Duration::from_millis(1));
        }
    }

    /// Another node has a new lease, which lasts this long from now: a scan is due when it ends.
    pub(crate) fn told_of_lease(&mut self, lasts: Duration, now: Duration) {
        self.reclaims.told(lasts, now);
    }

    /// Whether the topic is empty for all that this node knows: then nothing can be lost, and there is nothing to sweep.
    pub(crate) const fn knows_no_job(&self) -> bool {
        self.reclaims.knows_no_job()
    }

    /// The topic may have a job from now on: the audit comes within its usual time.
    pub(crate) fn may_have_jobs(&mut self, now: Duration) {
        self.reclaims.may_have_jobs(now);
    }

    /// Scans all leases when one may have expired, and after the fallback if no transfer has asked for them: a node without room sends
    /// none. The watcher also does so once a minute, or seldom if the topic is empty.
    pub(crate) fn scan(&mut self, is_watcher: bool, moment: &mut Moment) -> Option<Duration> {
        if !self.agrees() {
            return None;
        }
        let fallback = (!moment.flight.busy(&CLAIMS)).then_some(self.parts.node.poll_interval);
        let at = self.reclaims.next(is_watcher, fallback)?;
        if moment.now < at {
            return Some(at);
        }
        if !moment.can_send(RequestKind::Scan) {
            return moment.pause_end(RequestKind::Scan);
        }
        self.reclaims.sent(is_watcher, moment.now);
        moment.send(Scan);
        None
    }

    /// Takes in what a scan by this `node` has found.
    pub(crate) fn on_scanned(&mut self, scanned: &Scanned, node: &NodeId, is_watcher: bool, now: Duration) {
        if scanned.follow_ups {
            self.parts.relay.wake();
        }
        self.parts.stats.audited(scanned.records, scanned.places);
        self.reclaims.counted(scanned.records, scanned.places, now);
        if is_watcher {
            self.audits.counted(scanned.records, scanned.places, now);
        }
        let mut expired = BTreeMap::new();
        for (node, end) in scanned.leases.iter().filter(|(other, _)| other != node) {
            let scan = if *end > scanned.clock {
                now + end.since(scanned.clock) + Duration::from_millis(1)
            } else {
                let before = self.reclaims.expired.get(node).filter(|before| before.end == *end);
                let since = before.map_or(now, |before| before.since);
                expired.insert(node.clone(), Expired { end: *end, since });
                now + self.parts.node.heartbeat_interval
            };
            self.reclaims.scan_at(scan);
        }
        self.reclaims.expired = expired;
    }

    /// Reclaims the jobs of the next node that is known to be dead. One that released its lease, or whose process has certainly
    /// ended, needs no watching.
    pub(crate) fn reclaim(&mut self, moment: &mut Moment) -> Option<Duration> {
        if !self.agrees() {
            return None;
        }
        let watch = watch(&self.parts.node);
        let ready = |lease: &Expired| {
            if is_free_lease(lease.end) { lease.since } else { lease.since + watch }
        };
        let (node, lease) = self.reclaims.expired.iter().min_by_key(|(_, lease)| ready(lease))?;
        if moment.now < ready(lease) {
            return Some(ready(lease));
        }
        if !moment.can_send(RequestKind::Reclaim) {
            return moment.pause_end(RequestKind::Reclaim);
        }
        let ((limit, bytes), max_crashes) = (moment.flight.limits(RequestKind::Reclaim), self.parts.topic.max_crashes);
        moment.send(Reclaim { node: node.clone(), seen: lease.end, limit, bytes, max_crashes });
        None
    }

    /// Returns whether jobs went back.
    pub(crate) fn on_reclaimed(&mut self, node: &NodeId, reclaimed: Reclaimed) -> bool {
        if reclaimed.moved > 0 {
            tracing::info!(topic = %self.parts.key.topic, %node, jobs = reclaimed.moved, "reclaimed the jobs of a dead node");
            self.parts.stats.count.reclaimed.add(reclaimed.moved);
        }
        if reclaimed.left == 0 || reclaimed.moved == 0 {
            self.reclaims.expired.remove(node);
        }
        reclaimed.moved > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_000);

    /// The watcher has scanned an empty topic.
    fn empty() -> Reclaims {
        let mut reclaims = Reclaims::default();
        reclaims.sent(true, NOW);
        reclaims.counted(0, 0, NOW);
        reclaims
    }

    #[test]
    fn an_expired_lease_is_watched_until_a_node_behind_an_outage_must_be_back() {
        let watched = |call_timeout, renewal| {
            let (call_timeout, renewal) = (Duration::from_secs(call_timeout), Duration::from_secs(renewal));
            watch(&NodeSettings { call_timeout, heartbeat_interval: renewal, ..NodeSettings::default() })
        };
        // A quarter more than the call timeout, and the longest pause, which is a renewal interval up to five seconds.
        assert_eq!(watched(8, 2), Duration::from_secs(12));
        assert_eq!(watched(8, 6), Duration::from_secs(15));
        // Or one and a half renewals.
        assert_eq!(watched(2, 20), Duration::from_secs(30));
    }

    #[test]
    fn who_was_told_of_a_lease_scans_at_its_end_whatever_other_scans_have_found() {
        let mut reclaims = Reclaims::default();
        let (lease, end) = (Duration::from_secs(15), NOW + Duration::from_millis(15_016));
        reclaims.told(lease, NOW);
        reclaims.scan_at(NOW + lease / 3);
        assert_eq!(reclaims.next(false, None), Some(NOW + lease / 3));
        reclaims.sent(false, NOW + lease / 3);
        assert_eq!(reclaims.next(false, None), Some(end), "a lease may be new of which this node is not told");
        reclaims.sent(false, end);
        assert_eq!(reclaims.next(false, None), None);
    }

    #[test]
    fn a_shorter_lease_of_which_a_node_is_told_does_not_hide_the_longer_one() {
        let mut reclaims = Reclaims::default();
        let (long, end) = (Duration::from_secs(15), NOW + Duration::from_millis(15_016));
        reclaims.told(long, NOW);
        reclaims.told(long / 5, NOW);
        let first = NOW + Duration::from_millis(3_004);
        assert_eq!(reclaims.next(false, None), Some(first));
        reclaims.sent(false, first);
        assert_eq!(reclaims.next(false, None), Some(end));
    }

    #[test]
    fn a_node_that_sends_no_transfer_scans_after_the_fallback() {
        let mut reclaims = Reclaims::default();
        reclaims.sent(false, NOW);
        let fallback = Duration::from_secs(15);
        assert_eq!(reclaims.next(false, Some(fallback)), Some(NOW + fallback));
        assert_eq!(reclaims.next(false, None), None, "it transfers");
    }

    #[test]
    fn an_empty_topic_is_audited_seldom_until_it_may_have_a_job() {
        let mut reclaims = empty();
        assert!(reclaims.knows_no_job());
        assert_eq!(reclaims.audit_at, NOW + EMPTY_AUDIT_PERIOD);
        reclaims.may_have_jobs(2 * NOW);
        assert!(!reclaims.knows_no_job());
        assert_eq!(reclaims.audit_at, NOW + EMPTY_AUDIT_PERIOD, "that is earlier than a minute from now");
        let mut reclaims = empty();
        reclaims.may_have_jobs(NOW);
        assert_eq!(reclaims.audit_at, NOW + AUDIT_PERIOD);
        reclaims.may_have_jobs(NOW + AUDIT_PERIOD / 2);
        assert_eq!(reclaims.audit_at, NOW + AUDIT_PERIOD, "more signals put nothing off");
    }

    #[test]
    fn only_the_scan_of_a_watcher_that_saw_no_signal_meanwhile_shows_that_there_is_no_job() {
        for (is_watcher, is_signalled, records, places) in
            [(false, false, 0, 0), (true, true, 0, 0), (true, false, 1, 0), (true, false, 0, 1)]
        {
            let mut reclaims = Reclaims::default();
            reclaims.sent(is_watcher, NOW);
            if is_signalled {
                reclaims.may_have_jobs(NOW);
            }
            reclaims.counted(records, places, NOW);
            assert!(!reclaims.knows_no_job(), "{is_watcher} {is_signalled} {records} {places}");
            assert_eq!(reclaims.audit_at, NOW + AUDIT_PERIOD);
        }
    }
}
