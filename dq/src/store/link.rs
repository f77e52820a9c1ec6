//! One node's ordered requests to one topic.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::error::StoreError;
use super::operations::{Answer, Request, RequestKind, StepRequest, other_kind};
use super::rate::Rate;
use super::step::Change;
use dq_grammar::{BlockedBy, OnBlocked};

/// The answer to a request that is in flight.
pub type Pending<T> = BoxFuture<'static, Result<T, StoreError>>;

/// What is special about a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkOptions {
    /// The topic counts what the steps of the link do, minute by minute: what they claim, and how the runs end (rule 31).
    /// [`Store::statistics`](super::Store::statistics) has what was counted.
    pub counts: bool,
    /// How many jobs of the topic may be RUNNING on all nodes together, as the code of the node says; `None`: any number. What was
    /// [set](super::Limit::ClusterConcurrency) for the topic outweighs it (rule 29).
    pub concurrency: Option<usize>,
    /// How many jobs of the topic all nodes together may claim within a period, as the code of the node says; `None`: any number.
    pub rate: Option<Rate>,
    /// Of due jobs, one overtakes those of the next lower priority that have been due for less than this longer, and those two lower
    /// for less than twice this. In whole milliseconds.
    pub ageing: Duration,
    /// How many jobs of a group may be RUNNING on all nodes together, as the code of the node says; `None`: any number. What was
    /// [set](super::Limit::GroupConcurrency) for the topic overrides it (rule 4).
    pub group_concurrency: Option<usize>,
    /// How many more jobs of a group may be RUNNING while no other job is due, as the code of the node says. What was
    /// [set](super::Limit::GroupBurst) for the topic overrides it (rule 4).
    pub group_burst: usize,
    /// How many jobs of each group all nodes together may claim within a period, as the code of the node says; `None`: any number.
    pub group_rate: Option<Rate>,
    /// Which jobs keep their seat in their group until they have run again or are gone.
    pub group_on_blocked: OnBlocked,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            counts: false,
            concurrency: None,
            rate: None,
            ageing: Duration::from_secs(600),
            group_concurrency: None,
            group_burst: 0,
            group_rate: None,
            group_on_blocked: OnBlocked::default(),
        }
    }
}

impl LinkOptions {
    /// Whether a job keeps its seat in its group with this outcome. (A rollback always does.)
    pub(crate) const fn keeps_seat(&self, change: &Change) -> bool {
        match change.alone() {
            Change::Retry(_) => self.group_on_blocked.waits_for(BlockedBy::Retry),
            Change::Rejoin(_) => self.group_on_blocked.waits_for(BlockedBy::Rejoin),
            Change::Park => self.group_on_blocked.waits_for(BlockedBy::Park),
            Change::Dead => self.group_on_blocked.waits_for(BlockedBy::Dead),
            Change::Ack | Change::Rollback | Change::Drop | Change::Tick(_) | Change::Then(..) => false,
        }
    }
}

/// The steps of one node on one topic, in the order of the calls. Answers come in that order too, except that `renew` and
/// `publish` may go over another connection: their requests may be executed, and their answers come, before those of
/// earlier requests.
pub trait Link: fmt::Debug + Send + Sync + 'static {
    /// Sends a request before it returns; the future is only its answer. Dropping the future drops the answer, not the
    /// request. A step is atomic: the store executes it whole or not at all.
    fn ask(&self, request: Request) -> Pending<Answer>;

    /// How many jobs the steps of this link have dropped since the last call because another program removed or mangled
    /// their records, and that no answer reports. Sends nothing.
    fn dropped(&self) -> usize {
        0
    }

    /// For how long no byte has come over the connection of the requests of this kind that are in flight, zero if all their
    /// answers are there; `None` if the link does not know. An answer that is still arriving is not late, however long it takes. Sends nothing.
    fn silent_for(&self, _kind: RequestKind) -> Option<Duration> {
        None
    }
}

const _: Option<&dyn Link> = None;

impl dyn Link {
    /// Asks a request of one kind, with its own answer type. As [`ask`](Link::ask), it has sent the request when it returns.
    pub fn step<R: StepRequest>(&self, request: R) -> Pending<R::Answer> {
        let request = request.into();
        let operation = request.kind().name();
        let answer = self.ask(request);
        Box::pin(async move { R::answer(answer.await?).ok_or_else(|| other_kind(operation)) })
    }
}
