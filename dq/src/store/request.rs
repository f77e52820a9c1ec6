//! One request type and one answer type for all steps of a node.
//!
//! A store answers a [`Request`] in one place, and a wrapper of a store (for telemetry, faults or tests) needs one method
//! too: [`Link::ask`](super::Link::ask).

use super::step::{
    Audit, Audited, Exhaust, Isolate, Isolated, LeaseStatus, Noted, Publish, Published, Reclaim, Reclaimed, Reconcile,
    Reconciled, Recover, Recovered, Release, Renew, Scan, Scanned, Sequenced, Settle, Settled, Sweep, Swept, Transfer,
    Transferred, Wake,
};

/// A request of one kind, and the type of its answer.
pub trait StepRequest: Into<Request> {
    /// What the store answers.
    type Answer: Send + 'static;

    /// The answer to this kind of request; `None` when it belongs to another kind.
    fn answer(answer: Answer) -> Option<Self::Answer>;
}

macro_rules! requests {
    ($($(#[$doc:meta])+ $step:ident $name:literal -> $answer:ty;)+) => {
        /// What a node asks of a topic.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Request { $($(#[$doc])+ $step($step),)+ }

        /// What the store answers.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Answer { $(#[doc = concat!("The answer to [`Request::", stringify!($step), "`].")] $step($answer),)+ }

        /// The kind of a request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum RequestKind { $($(#[$doc])+ $step,)+ }

        impl RequestKind {
            /// How many kinds there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Every kind.
            pub const ALL: [Self; [$(Self::$step),+].len()] = [$(Self::$step),+];

            /// The name of the step in errors and logs.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$step => $name,)+ }
            }
        }

        impl Request {
            /// Its kind.
            pub const fn kind(&self) -> RequestKind {
                match self { $(Self::$step(_) => RequestKind::$step,)+ }
            }
        }

        $(
            impl From<$step> for Request {
                fn from(request: $step) -> Self {
                    Self::$step(request)
                }
            }

            impl StepRequest for $step {
                type Answer = $answer;

                fn answer(answer: Answer) -> Option<$answer> {
                    match answer { Answer::$step(answer) => Some(answer), _ => None }
                }
            }
        )+
    };
}

requests! {
    /// DELAYED → RUNNING: claims due jobs, earliest first, takes a sequence number and renews the lease.
    Transfer "transfer" -> Sequenced<Transferred>;
    /// RUNNING → wherever the outcomes say. The store judges each by its token alone. Renews the lease.
    Settle "settle" -> Settled;
    /// Renews the lease and does nothing else. Never creates a lease.
    Renew "renew" -> LeaseStatus;
    /// Notes that quarantined jobs are about to run, alone or in a group. Needs the right sequence number. Renews the lease.
    Isolate "isolate" -> Isolated;
    /// Notes that no attempt is left, before the node calls `final_retry`. Renews the lease.
    Exhaust "exhaust" -> Noted;
    /// Takes a new sequence number with its first page and lists the node's rows. Renews nothing.
    Reconcile "reconcile" -> Sequenced<Reconciled>;
    /// RUNNING → DELAYED (or UNACKED, or DEAD) for rows of another node whose lease has expired and is unchanged since.
    Reclaim "reclaim" -> Reclaimed;
    /// The clean end of a node: takes a sequence number and frees its roles. Its lease is gone, or free for reclaim where
    /// rows are left.
    Release "release" -> LeaseStatus;
    /// DEAD and DONE past their retention → gone; aged UNACKED → RUNNING. Takes a sequence number and renews the lease.
    Sweep "sweep" -> Sequenced<Swept>;
    /// Due broadcasts → published and gone.
    Publish "publish" -> Published;
    /// Frees the node's roles and signals the other nodes, for a node that cannot take what is due.
    Wake "wake" -> ();
    /// Every lease end, and the audit: records against the sum of all places.
    Scan "scan" -> Scanned;
    /// Finds jobs whose place another program removed. Changes nothing.
    Audit "audit" -> Audited;
    /// Jobs that an audit found and that are still in no place → UNACKED if they were parked, otherwise DEAD; a pending command
    /// takes effect first.
    Recover "recover" -> Recovered;
}
