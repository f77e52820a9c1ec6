//! The settings of the node, as the builder takes them. Their limits are checked at start.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::ContextFactory;
use crate::config::{NodeSettings, Setting, SettingChange, SettingProblem, Source};
use crate::store::Durability;
use crate::time::IntoDelay;

impl ContextFactory {
    /// How long a lease lasts: so long after a node died, another takes its jobs. Default 15 s, 100 ms to 5 min, at least
    /// three times the [renewal](Self::renewal).
    #[track_caller]
    pub fn lease(self, lease: impl IntoDelay) -> Self {
        self.duration("lease", lease, |node, lease| node.lease = lease)
    }

    /// When a lease is renewed if nothing else did. Default 5 s, at most a third of the [lease](Self::lease).
    #[track_caller]
    pub fn renewal(self, renewal: impl IntoDelay) -> Self {
        self.duration("renewal", renewal, |node, renewal| node.renewal = renewal)
    }

    /// When the node looks for due jobs though nobody told it to, jittered downwards by up to a fifth: what repairs a lost
    /// wake-up. Default 15 s, 10 ms to 1 h.
    #[track_caller]
    pub fn fallback_scan(self, period: impl IntoDelay) -> Self {
        self.duration("fallback_scan", period, |node, period| node.fallback_scan = period)
    }

    /// How long handlers may go on at shutdown before they are cancelled and their jobs given back. Default 25 s, at most
    /// 1 h; zero cancels at once.
    #[track_caller]
    pub fn grace(self, grace: impl IntoDelay) -> Self {
        self.duration("grace", grace, |node, grace| node.grace = grace)
    }

    /// Whether a stopping node gives back itself what it still holds. Default yes; with `false` it leaves the jobs with a
    /// lease that has ended: the next node that looks takes them back, and no crash is counted.
    #[track_caller]
    pub fn crash_rollback(self, rollback: bool) -> Self {
        self.put("crash_rollback", move |node| node.crash_rollback = rollback)
    }

    /// How long to wait for the answer to one request to the store. Default 2 s, 1 ms to what the
    /// [renewal](Self::renewal) leaves of the [lease](Self::lease).
    #[track_caller]
    pub fn call_timeout(self, limit: impl IntoDelay) -> Self {
        self.duration("call_timeout", limit, |node, limit| node.call_timeout = limit)
    }

    /// How long an `add` or `delete` may take, repeats included. Default 10 s, at least the
    /// [call timeout](Self::call_timeout), at most 1 h.
    #[track_caller]
    pub fn call_total(self, limit: impl IntoDelay) -> Self {
        self.duration("call_total", limit, |node, limit| node.call_total = limit)
    }

    /// When an `add`, or a `delete` and its kin, is answered. Default [`Durability::Local`]; on Redis
    /// [`Durability::Wait`] closes what a failover to a replica could lose. Other stores refuse it at start; one that is
    /// made by hand is made with it.
    #[track_caller]
    pub fn durability(self, durability: Durability) -> Self {
        self.put("durability", move |node| node.durability = durability)
    }

    /// How long after its due time a broadcast that nobody served is dropped. Default 1 h, 1 ms to 10 years.
    #[track_caller]
    pub fn broadcast_expires_after(self, time: impl IntoDelay) -> Self {
        self.duration("broadcast_expires_after", time, |node, time| node.broadcast_expires_after = time)
    }

    /// The longest payload, in bytes. Default 256 KiB, 1 byte to 16 MiB.
    #[track_caller]
    pub fn payload_limit(self, bytes: usize) -> Self {
        self.put("payload_limit", move |node| node.payload_limit = bytes)
    }

    /// Adds and withdrawals of a provider that may be unanswered; further callers wait. Default 10,000, 1 to 1,000,000.
    #[track_caller]
    pub fn unanswered_limit(self, most: usize) -> Self {
        self.put("unanswered_limit", move |node| node.unanswered_limit = most)
    }

    #[track_caller]
    fn put(mut self, key: &'static str, put: impl Fn(&mut NodeSettings) + Send + Sync + 'static) -> Self {
        let source = Source::Builder(Location::caller().into());
        self.settings.change_node(Ok(SettingChange::new(key, source, Arc::new(put))));
        self
    }

    #[track_caller]
    fn duration(
        mut self,
        key: &'static str,
        duration: impl IntoDelay,
        put: impl Fn(&mut NodeSettings, Duration) + Send + Sync + 'static,
    ) -> Self {
        match duration.into_delay().duration() {
            Ok(duration) => self.put(key, move |node| put(node, duration)),
            Err(bad) => {
                let (setting, at) = (Setting { topic: None, key }, Source::Builder(Location::caller().into()));
                self.settings.problems.push(SettingProblem::BadValue { setting, at, why: bad.to_string() });
                self
            }
        }
    }
}
