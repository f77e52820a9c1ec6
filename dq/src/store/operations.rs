//! The table of operations: everything that a store can be asked, said once.
//!
//! A row has the name of an operation in errors and logs, what it takes, what the store answers, what it does and what it costs.
//! There are three classes, and a store has one method for each:
//!
//! | class | what it is | asked by | answered in |
//! |---|---|---|---|
//! | steps | one node's requests to one topic, in order | [`dyn Link::step`](super::Link) | [`Link::ask`](super::Link::ask) |
//! | batches | one producer's requests to one topic, in order and numbered | the calls of [`dyn Producer`](super::Producer) | [`Producer::ask`](super::Producer::ask) |
//! | queries | requests without an order, for people, the first contact and the doctor | the calls of [`Store`](super::Store) | [`Store::ask`](super::Store::ask) |
//!
//! The enums of requests and answers, the names and the typed calls come from the table. So a store answers each class with one
//! `match`, and a wrapper (for telemetry, faults or tests) passes on what it does not change without naming it.
//!
//! An operation costs one command on Redis, and one lock of the topic in memory, unless its row says otherwise.

use super::step::{
    Audit, Audited, Exhaust, Isolate, Isolated, LeaseStatus, Note, Noted, Publish, Published, Reclaim, Reclaimed,
    Reconcile, Reconciled, Recover, Recovered, Release, Renew, Scan, Scanned, Sequenced, Settle, Settled, Sweep, Swept,
    Transfer, Transferred, Wake,
};
use super::{
    AddOutcome, BatchAnswer, ChangeOutcome, Command, CommandOutcome, Danger, DueCount, Examine, Examined, Exported,
    FollowUpOutcome, GroupPage, GroupsRequest, HistorySetting, HolderPage, Import, ImportOutcome, JobChange,
    JobHistory, JobSetSummary, MinuteCounts, NewJob, NodesRequest, Numbered, OutboxEntry, OutboxPosition, OutboxSeen,
    Page, PageRequest, Relay, Relayed, Repair, SetChange, SetOutcome, SetTopic, SetsRequest, StoreError, Stored,
    TopicCounts, TopicNames, TopicOverview, TopicSet, TopicState,
};
use crate::job::{AppName, JobId, JobState, TopicKey, TopicName};
use crate::time::Timestamp;

/// Calls the macro `$make` with the rows of a class.
macro_rules! operations {
    (steps, $make:ident) => { $make! {
        /// DELAYED → RUNNING: claims due jobs, earliest first, takes a sequence number and renews the lease.
        Transfer "transfer" -> Sequenced<Transferred>;
        /// RUNNING → wherever the outcomes say. The store judges each by its token alone. Renews the lease.
        Settle "settle" -> Settled;
        /// Renews the lease and does nothing else. Never creates a lease.
        Renew "renew" -> LeaseStatus;
        /// Notes that quarantined jobs are about to run, alone or in a group. Needs the right sequence number. Renews the lease.
        Isolate "isolate" -> Isolated;
        /// Notes that no attempt is left, before the node calls `on_exhausted`. Renews the lease.
        Exhaust "exhaust" -> Noted;
        /// Notes the state of a run that continues, for the next run, or how far the run has come. Renews the lease.
        Note "note" -> Noted;
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
        /// Finds jobs whose place another program removed. Changes nothing, but puts back those that know their due times.
        Audit "audit" -> Audited;
        /// Puts jobs where their records say. Those that are in no place → UNACKED if they were parked, otherwise DEAD; a pending command
        /// takes effect first.
        Recover "recover" -> Recovered;
    } };
    (batches, $make:ident) => { $make! {
        /// Adds jobs: each becomes DELAYED, a broadcast that waits, or the replacement of a running job. A second command where a
        /// job of the batch runs, or the topic is missing in the directory.
        Add add(batch: Numbered<NewJob>) -> AddOutcome;
        /// Deletes, cancels, acks and requeues jobs, by id.
        Command command(batch: Numbered<Command>) -> CommandOutcome;
        /// Gives jobs another due time or payload, by id, in order (rule 28).
        Change change(batch: Numbered<JobChange>) -> ChangeOutcome;
        /// Puts copies of jobs into their places: see [`Import`].
        Import import(number: u64, import: Import) -> ImportOutcome;
        /// Executes follow-ups of the outbox whose [relay](crate::store::relay_of) the producer is, unless they have arrived before: the
        /// answer is then late, or the one that was kept. An error says that the topic takes none now.
        Relay relay(entry: OutboxEntry) -> FollowUpOutcome;
        /// Changes the state of the topic as a whole: pauses or drains it, or sets its default delay. A batch of one.
        Set set(number: u64, set: SetTopic) -> TopicSet;
        /// Changes a job set that lives in the topic: registers and adds members, closes it, or notes their ends (rule 18). A batch of one.
        JobSet job_set(number: u64, change: SetChange) -> SetOutcome;
    } };
    (queries, $make:ident) => { $make! {
        /// Gets ready, before anything else is asked: a store on a disk reads its files. It has as long as it needs.
        Prepare prepare() -> ();
        /// Checks that the store can be reached and answers, and returns its clock. Two commands.
        Contact contact() -> Timestamp;
        /// Checks the version of a topic and the types of its keys, before a node or provider uses the topic. The error is
        /// [`StoreError::Version`] if another version of dq wrote the topic and cannot share it, and [`StoreError::WrongType`] if a
        /// key of the topic belongs to another program.
        Open open(topic: &'a TopicKey) -> ();
        /// Says that somebody listens to the moves of a topic: for the next [`LISTENING`](crate::store::LISTENING) its steps tell them to
        /// the subscribers that want moves. Nobody says that listening has ended.
        Listen listen(topic: &'a TopicKey) -> ();
        /// Says what a topic keeps of the histories of its jobs, from now on and for all nodes and producers (rule 31). Said again,
        /// it does nothing.
        KeepHistory keep_history(topic: &'a TopicKey, setting: HistorySetting) -> ();
        /// Returns what the topic has kept of the moves of a job, oldest first, also of one that is gone: `None` where it has kept
        /// nothing.
        History history(topic: &'a TopicKey, id: &'a JobId) -> Option<JobHistory>;
        /// Returns until when an id stays taken (rule 18), perhaps a time that is over. One command.
        Taken taken(topic: &'a TopicKey, id: &'a JobId) -> Option<Timestamp>;
        /// Returns the jobs with these ids, in the order of the ids; at most 1,000. The answer has at most
        /// [`DEFAULT_BYTES`](crate::store::step::DEFAULT_BYTES) of records, or one larger record: if it is shorter than the ids, ask again for
        /// the rest.
        Get get(topic: &'a TopicKey, ids: &'a [JobId]) -> Vec<Option<Stored>>;
        /// Returns a page of the jobs in one state. Two commands for RUNNING jobs.
        Page page(topic: &'a TopicKey, request: PageRequest) -> Page;
        /// Returns the first job of each state that has an order of time: the next due, the longest UNACKED and DEAD, and the DONE job
        /// that the store removes next. Four commands.
        Oldest oldest(topic: &'a TopicKey) -> Vec<(JobId, JobState)>;
        /// Returns the ids of the schedules behind `after`, in their order; at most `limit`, which is 1 to 1,000. It names every
        /// schedule there is, and may name some that are gone.
        Schedules schedules(topic: &'a TopicKey, after: Option<&'a JobId>, limit: usize) -> Vec<JobId>;
        /// Returns a page of an export: copies of the jobs in one state, or of the waiting broadcasts if the request is for DELAYED, with
        /// all that the store keeps of them. RUNNING jobs come as they would be if their nodes gave them back now.
        Export export(topic: &'a TopicKey, request: PageRequest, broadcasts: bool) -> Exported;
        /// Returns a page of the topics of an app that hold any job or broadcast, in the order of their names: up to `limit` behind
        /// the name `after`, which need not exist. For people: nothing is decided by it, and a store may forget the names of topics
        /// that hold nothing. It looks at [`MAX_NAMES`](crate::store::MAX_NAMES) names at most and says how far it looked, so its cost
        /// does not grow with the topics of the app. On Redis two commands, and a short one for each of these names.
        TopicsBehind topics_behind(app: &'a AppName, after: Option<&'a str>, limit: usize) -> TopicNames;
        /// Returns whether a topic is paused or drains, and its default delay. A pause that has ended by itself is none.
        TopicState topic_state(topic: &'a TopicKey) -> TopicState;
        /// Returns the topic as a whole, with up to `nodes` of the nodes that hold jobs; at most
        /// [`MAX_NODES`](crate::store::MAX_NODES). Two commands with any node.
        Overview overview(topic: &'a TopicKey, nodes: usize) -> TopicOverview;
        /// Returns a page of the nodes that hold jobs of the topic. Two commands.
        Nodes nodes(topic: &'a TopicKey, request: NodesRequest) -> HolderPage;
        /// Returns a page of the groups of a topic that have jobs, in the order of their names, with the jobs that have a seat. Two
        /// commands.
        Groups groups(topic: &'a TopicKey, request: &'a GroupsRequest) -> GroupPage;
        /// Returns how many DELAYED jobs are due between each of these times and the next one: from the first on, and before the
        /// second. The times are in order; at most [`MAX_BUCKETS`](crate::store::MAX_BUCKETS) and one more.
        DueCounts due_counts(topic: &'a TopicKey, times: &'a [Timestamp]) -> Vec<DueCount>;
        /// Examines a page of a topic: where its keys do not agree. It changes nothing. Two commands at most.
        Examine examine(topic: &'a TopicKey, request: Examine) -> Examined;
        /// Examines a page of the names of all keys, for those of an app, or of one topic of it: what a topic itself does not know.
        /// It changes nothing. `after` is where the page begins. Two commands.
        ExamineKeys examine_keys(app: &'a AppName, topic: Option<&'a TopicName>, after: Option<&'a str>) -> Examined;
        /// Makes a repair, if what is wrong is still there, and returns whether it did. It loses no job: a mismatch of a job is repaired as
        /// by [`Recover`](crate::store::step::Recover).
        Repair repair(topic: &'a TopicKey, repair: &'a Repair) -> bool;
        /// Removes entries of the outbox of a topic that have arrived, and returns the next ones to the node that relays. Asked again, it
        /// does nothing more. One command, and one for each target that has answered.
        Relay relay(topic: &'a TopicKey, request: &'a Relay) -> Relayed;
        /// Returns what waits in the outbox of a topic, target by target, behind `after`; at most `limit`, which is 1 to 1,000.
        Outbox outbox(topic: &'a TopicKey, after: Option<&'a TopicName>, limit: usize) -> Vec<OutboxSeen>;
        /// Returns the entries of the outbox of a topic behind this position of this target, target by target and in order; at most
        /// `limit`, which is 1 to [`MAX_READ`](crate::store::MAX_READ).
        FollowUps follow_ups(topic: &'a TopicKey, after: Option<(&'a TopicName, u64)>, limit: usize) -> Vec<OutboxEntry>;
        /// Returns the position up to which the follow-ups of another topic of the app have arrived in a topic; its start: none has.
        Arrived arrived(topic: &'a TopicKey, source: &'a TopicName) -> OutboxPosition;
        /// Returns job sets that live in a topic: one, with members that it waits for, or a page of all.
        JobSets job_sets(topic: &'a TopicKey, request: &'a SetsRequest) -> Vec<JobSetSummary>;
        /// Returns what endangers the jobs of the store as a whole.
        Dangers dangers() -> Vec<Danger>;
        /// Returns what the steps of links that [count](crate::store::LinkOptions::counts) did in the minutes `from` to `to` of the
        /// store's clock, both included, in order; at most [`MAX_MINUTES`](crate::store::MAX_MINUTES). Minutes in which nothing was
        /// counted are missing, and those of more than a day ago make room for newer ones.
        Statistics statistics(topic: &'a TopicKey, from: u64, to: u64) -> Vec<MinuteCounts>;
        /// Returns how many jobs of a topic are in each state.
        Counts counts(topic: &'a TopicKey) -> TopicCounts;
    } };
}

/// A step of one kind, and the type of its answer.
pub trait StepRequest: Into<Request> {
    /// What the store answers.
    type Answer: Send + 'static;

    /// The answer to this kind of request; `None` when it belongs to another kind.
    fn answer(answer: Answer) -> Option<Self::Answer>;
}

macro_rules! step_types {
    ($($(#[$doc:meta])+ $step:ident $name:literal -> $answer:ty;)+) => {
        /// What a node asks of a topic.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Request { $($(#[$doc])+ $step($step),)+ }

        /// What the store answers to a [`Request`].
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

macro_rules! batch_types {
    ($($(#[$doc:meta])+ $batch:ident $name:ident($($field:ident: $type:ty),*) -> $outcome:ty;)+) => {
        /// What a producer asks of a topic, under a number.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the fields match the call")]
        pub enum Batch { $($(#[$doc])+ $batch { $($field: $type),* },)+ }

        /// What the store answers to a [`Batch`].
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum BatchReply {
            $(#[doc = concat!("The answer to [`Batch::", stringify!($batch), "`].")] $batch(BatchAnswer<$outcome>),)+
        }

        impl Batch {
            /// The name of the operation in errors and logs.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$batch { .. } => stringify!($name),)+ }
            }

            /// The answer if the store will never execute the batch.
            pub(super) const fn late(&self) -> BatchReply {
                match self { $(Self::$batch { .. } => BatchReply::$batch(BatchAnswer::Late),)+ }
            }
        }
    };
}

/// The typed calls of a producer.
macro_rules! batch_calls {
    ($($(#[$doc:meta])+ $batch:ident $name:ident($($field:ident: $type:ty),*) -> $outcome:ty;)+) => {
        $($(#[$doc])+
        pub fn $name(&self, $($field: $type),*) -> Pending<BatchAnswer<$outcome>> {
            let answer = self.ask(Batch::$batch { $($field),* });
            Box::pin(async move {
                match answer.await? {
                    BatchReply::$batch(answer) => Ok(answer),
                    _ => Err(other_kind(stringify!($name))),
                }
            })
        })+
    };
}

macro_rules! query_types {
    ($($(#[$doc:meta])+ $query:ident $name:ident($($field:ident: $type:ty),*) -> $reply:ty;)+) => {
        /// What is asked of a store outside of any order.
        #[derive(Debug, Clone)]
        #[expect(missing_docs, reason = "the fields match the call")]
        pub enum Query<'a> { $($(#[$doc])+ $query { $($field: $type),* },)+ }

        /// What the store answers to a [`Query`].
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(clippy::large_enum_variant, reason = "a reply is read where it arrives, and never kept")]
        pub enum QueryReply {
            $(#[doc = concat!("The answer to [`Query::", stringify!($query), "`].")] $query($reply),)+
        }

        impl Query<'_> {
            /// The name of the operation in errors and logs.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$query { .. } => stringify!($name),)+ }
            }
        }
    };
}

/// The typed calls of a store.
macro_rules! query_calls {
    ($($(#[$doc:meta])+ $query:ident $name:ident($($field:ident: $type:ty),*) -> $reply:ty;)+) => {
        $($(#[$doc])+
        fn $name<'a>(&'a self, $($field: $type),*) -> BoxFuture<'a, Result<$reply, StoreError>> {
            let answer = self.ask(Query::$query { $($field),* });
            Box::pin(async move {
                match answer.await? {
                    QueryReply::$query(answer) => Ok(answer),
                    _ => Err(other_kind(stringify!($name))),
                }
            })
        })+
    };
}

operations!(steps, step_types);
operations!(batches, batch_types);
operations!(queries, query_types);

/// The error of a store whose answer belongs to another operation.
pub(crate) fn other_kind(operation: &'static str) -> StoreError {
    StoreError::Other { operation, source: "the store answered a request of another kind".into() }
}

pub(super) use {batch_calls, operations, query_calls};
