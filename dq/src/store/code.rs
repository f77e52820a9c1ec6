//! The codes of what the doctor finds, said once: how bad each is, what a repair does, and what to do by hand.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($(#[$doc:meta])+ $code:ident $word:literal $severity:ident $repair:literal $advice:expr;)+) => {
        /// What the doctor finds. The text of a code is stable: scripts may rely on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingCode { $($(#[$doc])+ $code,)+ }

        impl FindingCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$code,)+];

            /// The code as text, for example `job-without-place`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$code => $word,)+ }
            }

            /// How bad it is.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$code => Severity::$severity,)+ }
            }

            /// Whether the doctor can repair it.
            pub const fn can_be_repaired(self) -> bool {
                !self.repair().is_empty()
            }

            /// What a repair does; empty if the doctor cannot repair it.
            pub(crate) const fn repair(self) -> &'static str {
                match self { $(Self::$code => $repair,)+ }
            }

            /// What to do by hand.
            pub(crate) const fn advice(self) -> &'static str {
                match self { $(Self::$code => $advice,)+ }
            }
        }
    };
}

const FIND_WHO: &str = "find out which program changes keys of dq";
const EVICTED: &str = "set `maxmemory-policy` to `noeviction`, and find out which program changes keys of dq";
const MORE_MEMORY: &str = "raise `maxmemory`, or the `max_memory` of a `file:` store, or delete what you do not need";

codes! {
    /// The server removes keys when its memory is full.
    EvictsJobs "evicts-jobs" Error "" "set `maxmemory-policy` to `noeviction`";
    /// A restart of the server loses jobs.
    NotPersistent "not-persistent" Warning "" "set `appendonly` to `yes`";
    /// At least 80 % of the memory that the store may use are in use.
    MemoryNearlyFull "memory-nearly-full" Warning "" MORE_MEMORY;
    /// At least 95 % of the memory that the store may use are in use.
    MemoryFull "memory-full" Error "" MORE_MEMORY;
    /// The server is older than dq needs.
    OldServer "old-server" Error "" "upgrade the server to Redis 6.2 or later";
    /// The disk of the store is full.
    DiskFull "disk-full" Error "" "make room on the disk; the store then continues";
    /// The store has stopped, because its disk failed it.
    StoreHalted "store-halted" Error "" "fix the disk, and start the program again";
    /// Fewer replicas are connected than `durability` waits for.
    TooFewReplicas "too-few-replicas" Error "" "connect more replicas";
    /// The clock of the store and that of this machine differ by a second or more.
    ClockDifference "clock-difference" Warning ""
        "let NTP set both: jobs are due by the clock of the store, people and programs go by their own";
    /// Something could not be examined: the store refused it.
    NotExamined "not-examined" Warning ""
        "give the user the permissions in docs/guide/deploying-on-redis.md, or fix what the error names";
    /// Another version of dq wrote the topic.
    OtherVersion "other-version" Error "" "upgrade the older program, or use another app name";
    /// A key has a type that dq did not give it. The id is the key, and the detail the type that it should have.
    WrongType "wrong-type" Error "rename the key: its new name begins with `set-aside:` after the prefix of dq"
        "look at the key, then delete it, or rename it yourself";
    /// A topic that holds something is missing in the directory. The id is the topic.
    TopicNotListed "topic-not-listed" Warning "enter it into the directory" EVICTED;
    /// Jobs are due and no node listens.
    NoListener "no-listener" Warning "" "start a node with a listener for the topic";
    /// Nodes with several versions of dq listen to the topic.
    SeveralVersions "several-versions" Warning "" "fine while you deploy; otherwise replace the older programs";
    /// The topic remembers answers for very many producers.
    ManyProducers "many-producers" Warning ""
        "start dq once in a program and share its provider, instead of once for each request";
    /// Nodes could not decode payloads that are JSON: the program that adds them and the one that handles them differ.
    SchemaDifference "schema-difference" Warning ""
        "make the program that adds these jobs and the one that handles them agree, then requeue them";
    /// Follow-ups have waited in the outbox of the topic for a minute or more. The id is the topic that they are for.
    FollowUpsWait "follow-ups-wait" Warning ""
        "end the drain of the topic that they are for, or make room in it; start a node of the topic that they come from";
    /// The topic has a position of follow-ups that is more than a day ahead of the store's clock, and that is none of those that wait. The id
    /// is the topic that they come from.
    TargetAhead "target-ahead" Error "set the position back to the last one before those that wait"
        "find out which program or import wrote the position; some of the follow-ups may arrive twice after the repair";
    /// A job set waits for a member that does not exist. The id is the name of the set.
    MemberMissing "member-missing" Error "count the job as left, so that the set waits for it no longer"
        "after a failover that lost the job, add it again to a set of another name; otherwise find out which program changes keys of dq";
    /// dq itself panicked at a job, and gave it up.
    DefectiveJob "defective-job" Error ""
        "report the panic as a bug; once that is fixed, upgrade and requeue the job, whose payload is kept";
    /// What the topic notes of its jobs falls behind them. The id says what: `protocol`, `retains`, `priorities`, `groups` or `largest`;
    /// the detail is its value.
    NotesBehind "notes-behind" Error "write it" EVICTED;
    /// A node holds jobs and has no lease. The id is the node.
    RowsWithoutLease "rows-without-lease" Error
        "give it a lease of a minute: if it lives it renews the lease, otherwise its jobs go to other nodes" EVICTED;
    /// A node has a lease and holds no job. The id is the node.
    LeaseWithoutRows "lease-without-rows" Warning "remove the lease; a node that holds a job has one again" EVICTED;
    /// A key has a row that no record explains, or that cannot be read: another program, or a later version of dq, wrote or removed it. The
    /// id is the job, or the key and the beginning of the row; the detail says what is wrong.
    ForeignChange "foreign-change" Error
        "put the job into the place that its record names, remove what is left of a job without a record, or move the row into a hash whose name begins with `set-aside:` after the prefix of dq; a `file:` store keeps it where it is"
        "if a later version of dq wrote the row, use that version; otherwise find out which program changes keys of dq, and set `maxmemory-policy` to `noeviction`";
    /// A job has a record and no place.
    JobWithoutPlace "job-without-place" Error
        "put it back: UNACKED if it was parked, otherwise DEAD with the cause `place lost`"
        "requeue it after the repair if it should run";
    /// A job that is due much later is missing in the tree of such jobs.
    FarWithoutLeaf "far-without-leaf" Error "let it wait in `delayed` under its due time" EVICTED;
    /// A broadcast has a record and no due time.
    BroadcastWithoutPlace "broadcast-without-place" Error ""
        "publish it again if it still matters, then remove its field from `broadcast-jobs` with HDEL";
    /// A job waits for others of its group, and the group does not know it.
    NotInGroup "not-in-group" Error "let it wait in its group again" EVICTED;
    /// A schedule is missing in the list of schedules.
    ScheduleNotListed "schedule-not-listed" Warning "enter it into the list" EVICTED;
    /// The program that looks cannot read a schedule, so it does not tick.
    ScheduleUnreadable "schedule-unreadable" Error ""
        "add the schedule again with a line and a zone that this version of dq reads, or use the version that wrote it";
    /// A schedule waits for a tick that was computed while the clock of the store was ahead. The id is the job that keeps it.
    ScheduleAhead "schedule-ahead" Error "let it wait for its next tick by the clock of the store"
        "let NTP set the clocks of all servers; resume the schedule, or add it again, if it should not wait";
    /// A key that should expire does not. The id is the key.
    NoExpiry "no-expiry" Warning "let it expire: a day from now for a node, an hour for a producer, a month for ids that stay taken" FIND_WHO;
    /// A record cannot be read.
    MangledRecord "mangled-record" Error "make the job DEAD with the cause `decode`; its bytes stay as its payload"
        "look at it with `dq show --payload` after the repair; add the job again if you know it";
    /// A record is over a limit of the format, which an import of an older version, or another program, has let in.
    OverLimit "over-limit" Error "make the job DEAD with the cause `decode`; its payload stays"
        "look at it with `dq show --payload` after the repair; add the job again with less";
    /// The last fence of a topic is above the largest that an import may bring. The detail is its value.
    FenceTooLarge "fence-too-large" Error "let the next fence follow the clock again; it is smaller than those of the last runs"
        "find out which program wrote it; lower the fences in your own databases with the repair, or they refuse every later run";
    /// A payload is not JSON.
    NotJson "not-json" Error "make the job DEAD with the cause `decode`; its bytes stay as its payload"
        "give it a payload that decodes with `update`, or delete it";
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Jobs run. Fix it before it hurts.
    Warning,
    /// Jobs are stuck, are in danger, or cannot run.
    Error,
}

impl Severity {
    /// The severity as a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for FindingCode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../../docs/guide/doctor.md");

    #[test]
    fn the_guide_has_every_code_with_its_severity_and_whether_it_can_be_repaired() {
        let row = |line: &str| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let code = cells.next()?.trim_end_matches('`').to_owned();
            let (severity, _, repair) = (cells.next()?.to_owned(), cells.next()?, cells.next()?);
            Some((code, severity, repair != "none"))
        };
        let written: Vec<_> = GUIDE.lines().filter_map(row).collect();
        let known = FindingCode::ALL.iter();
        let known = known.map(|code| (code.to_string(), code.severity().to_string(), code.can_be_repaired()));
        assert_eq!(written, known.collect::<Vec<_>>());
    }
}
