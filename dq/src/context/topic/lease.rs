//! The lease as this node counts it: on its own clock, from the moment a renewal was *sent*, less a margin, so what it thinks
//! good is good (PROTOCOL.md rule 21).

use std::time::Duration;

use crate::job::Sequence;
use crate::store::step::LeaseStatus;

/// See the module.
#[derive(Debug)]
pub(in crate::context) struct Lease {
    length: Duration,
    pub(in crate::context) renewed_at: Duration,
    pub(in crate::context) good_until: Duration,
}

impl Lease {
    pub(in crate::context) const fn new(length: Duration) -> Self {
        Self { length, renewed_at: Duration::ZERO, good_until: Duration::ZERO }
    }

    /// A request that was sent at `sent` has renewed it.
    pub(in crate::context) fn renewed(&mut self, sent: Duration) {
        let margin = self.length / 15;
        self.renewed_at = self.renewed_at.max(sent);
        self.good_until = self.good_until.max(sent + self.length - margin);
    }

    /// An answer counts as a renewal if rows are there and its turn is the one its request named.
    pub(in crate::context) fn renewed_if(&mut self, lease_status: LeaseStatus, sent: Duration, named: Sequence) {
        if lease_status.rows > 0 && lease_status.sequence == named {
            self.renewed(sent);
        }
    }

    /// Whether it is provably good.
    pub(in crate::context) fn is_good(&self, now: Duration) -> bool {
        now < self.good_until
    }

    /// Asks for a heartbeat at once.
    pub(in crate::context) const fn renew_now(&mut self) {
        self.renewed_at = Duration::ZERO;
    }
}
