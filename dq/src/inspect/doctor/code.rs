//! The codes of findings.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($(#[$doc:meta])+ $code:ident $word:literal $severity:ident $repairs:literal;)+) => {
        /// What the doctor finds. The text of a code is stable: scripts may rely on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingCode { $($(#[$doc])+ $code,)+ }

        impl FindingCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$code,)+];

            /// The code as text, for example `job-without-place`.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$code => $word,)+ }
            }

            /// How bad it is.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$code => Severity::$severity,)+ }
            }

            /// Whether the doctor can repair it.
            pub const fn can_be_repaired(self) -> bool {
                match self { $(Self::$code => $repairs,)+ }
            }
        }
    };
}

codes! {
    /// The server removes keys when its memory is full.
    EvictsJobs "evicts-jobs" Error false;
    /// A restart of the server loses jobs.
    NotPersistent "not-persistent" Warning false;
    /// At least 80 % of the memory that the server may use are in use.
    MemoryNearlyFull "memory-nearly-full" Warning false;
    /// At least 95 % of the memory that the server may use are in use.
    MemoryFull "memory-full" Error false;
    /// The server is older than dq needs.
    OldServer "old-server" Error false;
    /// The disk of the store is full.
    DiskFull "disk-full" Error false;
    /// The store has stopped, because its disk failed it.
    StoreHalted "store-halted" Error false;
    /// Fewer replicas are connected than `durability` waits for.
    TooFewReplicas "too-few-replicas" Error false;
    /// The clock of the store and that of this machine differ by a second or more.
    ClockDifference "clock-difference" Warning false;
    /// Something could not be examined: the store refused it.
    NotExamined "not-examined" Warning false;
    /// Another version of dq wrote the topic.
    OtherVersion "other-version" Error false;
    /// A key has a type that dq did not give it.
    WrongType "wrong-type" Error true;
    /// A topic that holds something is missing in the directory.
    TopicNotListed "topic-not-listed" Warning true;
    /// Jobs are due and no node listens.
    NoListener "no-listener" Warning false;
    /// Nodes with several versions of dq listen to the topic.
    SeveralVersions "several-versions" Warning false;
    /// The topic remembers answers for very many producers.
    ManyProducers "many-producers" Warning false;
    /// Nodes could not decode payloads that are JSON: the program that adds them and the one that handles them differ.
    SchemaDifference "schema-difference" Warning false;
    /// What the topic notes of its jobs falls behind them.
    NotesBehind "notes-behind" Error true;
    /// A node holds jobs and has no lease.
    RowsWithoutLease "rows-without-lease" Error true;
    /// A node has a lease and holds no job.
    LeaseWithoutRows "lease-without-rows" Warning true;
    /// A job is in several places.
    SeveralPlaces "several-places" Error true;
    /// A job has two records.
    SeveralRecords "several-records" Error true;
    /// A job has a record and no place.
    JobWithoutPlace "job-without-place" Error true;
    /// A job that is due much later is missing in the tree of such jobs.
    FarWithoutLeaf "far-without-leaf" Error true;
    /// A place names a job that has no record.
    PlaceWithoutJob "place-without-job" Warning true;
    /// A node holds a job that has no record.
    RowWithoutJob "row-without-job" Warning true;
    /// A broadcast has a record and no due time.
    BroadcastWithoutPlace "broadcast-without-place" Error false;
    /// A schedule is missing in the list of schedules.
    ScheduleNotListed "schedule-not-listed" Warning true;
    /// A key keeps something of a job that does not exist.
    LeftoverEntry "leftover-entry" Warning true;
    /// A key that should expire does not.
    NoExpiry "no-expiry" Warning true;
    /// A record cannot be read.
    MangledRecord "mangled-record" Error true;
    /// A payload is not JSON.
    NotJson "not-json" Error true;
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Jobs run, and it should be mended before it hurts.
    Warning,
    /// Jobs are stuck, are in danger, or cannot run.
    Error,
}

impl Severity {
    /// The severity as a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Serialize for FindingCode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../../../docs/guide/doctor.md");

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
