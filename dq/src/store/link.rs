//! The way of one node to one topic.

use std::fmt;

use futures_util::future::BoxFuture;

use super::error::StoreError;
use super::step::{
    Exhaust, Isolate, LeaseStatus, Noted, Publish, Published, Reclaim, Reclaimed, Reconcile, Reconciled, Release,
    Renew, Scan, Scanned, Sequenced, Settle, Settled, Sweep, Swept, Transfer, Transferred, Wake,
};

/// The answer to a request that is under way.
pub type Pending<T> = BoxFuture<'static, Result<T, StoreError>>;

/// The steps of one node on one topic, in the order of the calls; answers come in that order too.
///
/// Every method sends its request before it returns. A step is atomic: it is executed whole or not at all.
pub trait Link: fmt::Debug + Send + Sync + 'static {
    /// DELAYED → RUNNING: claims due jobs, earliest first; takes a turn and renews the lease.
    fn transfer(&self, request: Transfer) -> Pending<Sequenced<Transferred>>;

    /// RUNNING → wherever the outcomes say, each judged by its token alone; renews.
    fn settle(&self, request: Settle) -> Pending<Settled>;

    /// Renews the lease and does nothing else. Never creates one.
    fn renew(&self, request: Renew) -> Pending<LeaseStatus>;

    /// Notes that a job one crash short of its cap is about to run, alone; renews.
    fn isolate(&self, request: Isolate) -> Pending<Noted>;

    /// Notes that no attempt is left, before `final_retry` is called; renews.
    fn exhaust(&self, request: Exhaust) -> Pending<Noted>;

    /// Takes a new turn with its first page and tells the node's rows; renews nothing.
    fn reconcile(&self, request: Reconcile) -> Pending<Sequenced<Reconciled>>;

    /// RUNNING → DELAYED (or UNACKED, or DEAD) for rows of another node whose lease ran out and is unchanged since.
    fn reclaim(&self, request: Reclaim) -> Pending<Reclaimed>;

    /// The clean end of a node: takes a turn, frees its roles, and its lease is gone, or free for reclaim where rows are left.
    fn release(&self, request: Release) -> Pending<LeaseStatus>;

    /// DEAD and DONE past their retention → gone; aged UNACKED → RUNNING; takes a turn and renews the lease.
    fn sweep(&self, request: Sweep) -> Pending<Sequenced<Swept>>;

    /// Due broadcasts → published and gone.
    fn publish(&self, request: Publish) -> Pending<Published>;

    /// Frees the node's roles and signals the others, for a node that cannot take what is due.
    fn wake(&self, request: Wake) -> Pending<()>;

    /// All lease ends, and the audit: records against the sum of all places.
    fn scan(&self, request: Scan) -> Pending<Scanned>;

    /// Jobs that steps of this link have dropped since this was asked last, because another program removed or mangled what
    /// was kept of them, and of which no answer tells. Asks nobody.
    fn dropped(&self) -> usize {
        0
    }
}

const _: Option<&dyn Link> = None;
