//! The settings of the node on the builder. `start` checks their limits.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::ContextFactory;
use crate::config::{NodeSettings, Setting, SettingChange, SettingProblem, Source};
use crate::store::Durability;
use crate::time::IntoDelay;

impl ContextFactory {
    /// Sets how long a lease lasts. After a node dies, others reclaim its jobs once its lease has expired. Default 15 s; 100 ms
    /// to 5 min, at least three times the [renewal](Self::renewal).
    #[track_caller]
    pub fn lease(self, lease: impl IntoDelay) -> Self {
        self.duration("lease", lease, |node, lease| node.lease = lease)
    }

    /// Sets how often a node renews a lease that no other step renews. Default 5 s; at most a third of the
    /// [lease](Self::lease).
    #[track_caller]
    pub fn renewal(self, renewal: impl IntoDelay) -> Self {
        self.duration("renewal", renewal, |node, renewal| node.renewal = renewal)
    }

    /// Sets how often a node looks for due jobs without a signal; after a signal, minus a random part of up to a fifth. It
    /// repairs lost signals. Default 15 s; 10 ms to 1 h.
    #[track_caller]
    pub fn fallback_scan(self, period: impl IntoDelay) -> Self {
        self.duration("fallback_scan", period, |node, period| node.fallback_scan = period)
    }

    /// Sets how long handlers may go on at shutdown, before they are cancelled and their jobs go back. Default 25 s; at most
    /// 1 h. Zero cancels at once.
    #[track_caller]
    pub fn grace(self, grace: impl IntoDelay) -> Self {
        self.duration("grace", grace, |node, grace| node.grace = grace)
    }

    /// Sets how many handlers of all topics together may run at once on this node. Default: no limit beside the
    /// [`concurrency`](crate::config::TopicOverrides::concurrency) of each topic; 1 to 1,000,000. Each topic keeps one permit,
    /// so there may be as many handlers as topics. The topics share the others: while several want more than there are, each
    /// gets equally many. Broadcast listeners need no permit.
    #[track_caller]
    pub fn node_concurrency(self, most: usize) -> Self {
        self.put("node_concurrency", move |node| node.node_concurrency = Some(most))
    }

    /// Sets whether a stopping node gives its jobs back itself. Default `true`. With `false` it ends its lease and leaves the
    /// jobs: the next node that scans the leases reclaims them and charges no crash.
    #[track_caller]
    pub fn crash_rollback(self, rollback: bool) -> Self {
        self.put("crash_rollback", move |node| node.crash_rollback = rollback)
    }

    /// Sets how long an answer of the store to one request may take. Default 2 s; 1 ms to what the [renewal](Self::renewal)
    /// leaves of the [lease](Self::lease).
    #[track_caller]
    pub fn call_timeout(self, limit: impl IntoDelay) -> Self {
        self.duration("call_timeout", limit, |node, limit| node.call_timeout = limit)
    }

    /// Sets how long an add or a command may take, repeats included. Default 10 s; at least the
    /// [call timeout](Self::call_timeout), at most 1 h.
    #[track_caller]
    pub fn call_total(self, limit: impl IntoDelay) -> Self {
        self.duration("call_total", limit, |node, limit| node.call_total = limit)
    }

    /// Sets when the store may answer an add or a command. Default [`Durability::Local`]. On Redis, [`Durability::Wait`]
    /// protects them from a failover to a replica that lags; [`Durability::Sync`] and [`Durability::Interval`] are for `file:`. Other
    /// stores refuse them at start. A store that the program makes
    /// gets its durability there.
    #[track_caller]
    pub fn durability(self, durability: Durability) -> Self {
        self.put("durability", move |node| node.durability = durability)
    }

    /// Sets how long after its due time an unpublished broadcast is dropped. Default 1 h; 1 ms to 10 years.
    #[track_caller]
    pub fn broadcast_expires_after(self, time: impl IntoDelay) -> Self {
        self.duration("broadcast_expires_after", time, |node, time| node.broadcast_expires_after = time)
    }

    /// Sets the longest payload, in bytes. Default 256 KiB; 1 byte to 16 MiB.
    #[track_caller]
    pub fn payload_limit(self, bytes: usize) -> Self {
        self.put("payload_limit", move |node| node.payload_limit = bytes)
    }

    /// Sets how many adds and commands of a provider may be unanswered; further callers wait. Default 10,000; 1 to 1,000,000.
    #[track_caller]
    pub fn unanswered_limit(self, most: usize) -> Self {
        self.put("unanswered_limit", move |node| node.unanswered_limit = most)
    }

    /// Sets how many bytes the unanswered adds and commands of a provider may have; further callers wait. One request, or one
    /// `add_many`, that is larger passes alone. Default 64 MiB; 1 byte to 1 GiB.
    #[track_caller]
    pub fn unanswered_bytes(self, most: usize) -> Self {
        self.put("unanswered_bytes", move |node| node.unanswered_bytes = most)
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
