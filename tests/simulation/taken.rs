//! Each rule of the protocol taken away once: what is gone, the faults that show it, and what the judge says then.
//!
//! `docs/internals/guarantees.md` has this table with the first seed of each row; `tests/simulate --rules` prints it anew.

use dq_testing::simulation::Profile;

/// A rule, and how the simulation notices that it is gone.
pub struct Taken {
    pub rule: u8,
    /// What the switch takes away.
    pub gone: &'static str,
    pub faults: Profile,
    /// Found in fewer seeds than this.
    pub within: u64,
    /// What the judge says, after the rule.
    pub says: &'static str,
    /// What has happened.
    pub seen: &'static str,
}

impl Taken {
    /// Its row, of which the seed is not known yet.
    pub fn row(&self, seed: &str) -> String {
        let Self { rule, gone, faults, says, seen, .. } = self;
        format!("| {rule} | {gone} | `{}` | {seed} | {seen}: `{says}` |", faults.name())
    }
}

const fn taken(
    rule: u8,
    faults: Profile,
    within: u64,
    gone: &'static str,
    seen: &'static str,
    says: &'static str,
) -> Taken {
    Taken { rule, gone, faults, within, says, seen }
}

pub const TAKEN: [Taken; 15] = [
    taken(
        2,
        Profile::Killers,
        500,
        "a reclaimed job is waiting again in the step that takes its row; here two steps, and the reclaimer dies between them",
        "a job that was running is nowhere",
        "LOST: version",
    ),
    taken(
        6,
        Profile::Unresponsive,
        500,
        "a request names the last turn its node heard, and a reconcile renews nothing; here the store takes any turn for the right one",
        "a node that hears nothing holds what it swallowed, and its lease never runs out",
        "has been deaf for a minute and keeps jobs",
    ),
    taken(
        7,
        Profile::Fall,
        1_000,
        "a lost answer, another turn or another number of rows starts a reconcile",
        "a node holds a job of which the store knows nothing, and asks for its lease again and again",
        "ENDLESS",
    ),
    taken(
        8,
        Profile::Fall,
        500,
        "a lease stays while rows are left; here it goes with the first bounded step, or with the release",
        "nobody finds the jobs of a node that is gone",
        "STUCK",
    ),
    taken(
        9,
        Profile::Fall,
        500,
        "fences come from the clock, and a node gives up the older run of an id it is given again; here from a counter, and it does not",
        "the store falls back, and a fence is given out twice",
        "the fence of",
    ),
    taken(
        10,
        Profile::All,
        500,
        "a step that takes a job out of RUNNING compares the token",
        "the outcome of an older run is taken for that of the one that holds the job",
        "is accepted for run",
    ),
    taken(
        12,
        Profile::Calm,
        500,
        "a replacement of a running job waits for the end of its run; here it overwrites the record",
        "the job that was running is nowhere",
        "LOST: version",
    ),
    taken(
        13,
        Profile::Calm,
        500,
        "a delete, cancel or ack of a running job leaves an end",
        "the run ends, and the job that was to be gone waits again",
        "though",
    ),
    taken(
        15,
        Profile::Crowd,
        500,
        "exhaustion is written before `final_retry` is called",
        "the node loses its lease in `final_retry`, and the next one calls `on_due`",
        "after its final_retry",
    ),
    taken(
        17,
        Profile::Calm,
        500,
        "an ack or requeue that names a run does nothing to another one; here it names none",
        "the late ack of an older run ends the job",
        "LOST: version",
    ),
    taken(
        18,
        Profile::NoClock,
        500,
        "a repeated batch goes under its own number; here under a new one",
        "one add is done twice",
        "the add of",
    ),
    taken(
        19,
        Profile::Killers,
        500,
        "a job one crash short of its cap is begun, alone, and only begun ones are charged the last crash",
        "a job that sat beside killers is dead by crashes",
        "is DEAD by crashes: begun false",
    ),
    taken(
        20,
        Profile::All,
        500,
        "a reclaimer watches an expired lease for one and a half renewals, and names the end it saw; here it takes at once, whatever the end",
        "the clock of the store jumps ahead, and a node that renews loses its jobs to the first that looks",
        "is connected and renewing, and its jobs are reclaimed",
    ),
    taken(
        21,
        Profile::NoClock,
        500,
        "no handler starts, and none goes on, unless the lease is provably good",
        "a node that could not renew for longer than its lease starts handlers all the same",
        "without a live lease",
    ),
    taken(
        23,
        Profile::Calm,
        500,
        "an earlier head is signalled",
        "a job waits until its node wakes for another reason",
        "late without a fault",
    ),
];
