//! Each rule of the protocol, or a part of one, taken away once: what is missing, the faults that show it, and what the checker says then.
//!
//! `docs/internals/guarantees.md` has this table with the first seed of each row; `tests/simulate --rules` prints it.

use dq_testing::simulation::Profile;

/// A rule by its number, or a part of one by its name, and how the simulation notices that it is missing.
pub struct Taken {
    pub rule: &'static str,
    /// What the rule says, and what happens without it.
    pub gone: &'static str,
    pub faults: Profile,
    /// Found in fewer seeds than this.
    pub within: u64,
    /// A part of what the checker says.
    pub says: &'static str,
    /// What has happened.
    pub seen: &'static str,
}

impl Taken {
    /// Its row with this first seed.
    pub fn row(&self, seed: &str) -> String {
        let Self { rule, gone, faults, says, seen, .. } = self;
        format!("| {rule} | {gone} | `{}` | {seed} | {seen}: `{says}` |", faults.name())
    }
}

const fn taken(
    rule: &'static str,
    faults: Profile,
    within: u64,
    gone: &'static str,
    seen: &'static str,
    says: &'static str,
) -> Taken {
    Taken { rule, gone, faults, within, says, seen }
}

pub const TAKEN: [Taken; 23] = [
    taken(
        "2",
        Profile::Killers,
        500,
        "a reclaimed job waits again in the step that removes its row; here the row goes first, and the reclaimer dies before the second step",
        "a job that was running is nowhere",
        "LOST: version",
    ),
    taken(
        "6",
        Profile::Unresponsive,
        500,
        "a request names the last seen sequence number, and a reconcile renews nothing; here the store accepts any sequence number",
        "a node that receives no answers keeps the jobs it claimed, and its lease never expires",
        "has been unresponsive for a minute, but keeps jobs",
    ),
    taken(
        "7",
        Profile::Fall,
        1_000,
        "a lost answer, another sequence number or another number of rows starts a reconcile; here no answer shows a row whose claim was lost",
        "a node keeps a row that it does not know, and the job never runs again",
        "STUCK",
    ),
    taken(
        "8",
        Profile::Fall,
        500,
        "a lease stays while rows are left; here it goes with the first bounded step, or with the release",
        "no node finds the jobs of a node that is gone",
        "STUCK",
    ),
    taken(
        "9",
        Profile::Fall,
        500,
        "fences come from the store's clock; here from a counter",
        "the store falls back and gives a fence out twice",
        "the fence of",
    ),
    taken(
        "10",
        Profile::NoClock,
        500,
        "a step that takes a job out of RUNNING compares the token",
        "the outcome of an older run is taken for that of the run that holds the job",
        "is accepted for run",
    ),
    taken(
        "12",
        Profile::Calm,
        500,
        "a replacement of a running job waits for the end of its run; here it takes the job's place at once",
        "the job that was running is nowhere",
        "LOST: version",
    ),
    taken(
        "13",
        Profile::Calm,
        500,
        "a delete, cancel or ack of a running job leaves a pending command",
        "the run ends, and the job that should be gone waits again",
        "though",
    ),
    taken(
        "15",
        Profile::Crowd,
        500,
        "exhaustion is written before `final_retry` is called",
        "the node loses its lease in `final_retry`, and the next node calls `on_due`",
        "after its final_retry",
    ),
    taken(
        "17",
        Profile::Calm,
        500,
        "an ack or requeue that names a run does nothing to another run; here it names none",
        "the late ack of an older run ends the job",
        "LOST: version",
    ),
    taken(
        "18",
        Profile::NoClock,
        500,
        "a repeated batch has its own call number; here it has a new one",
        "one add takes effect twice",
        "the add of",
    ),
    taken(
        "19",
        Profile::Killers,
        500,
        "a quarantined job runs in a group or alone, and only one that is alone is convicted; here it is noted as alone and runs beside others",
        "a job that ran beside killers is dead by crashes",
        "is DEAD by crashes",
    ),
    taken(
        "20",
        Profile::All,
        500,
        "a reclaimer watches an expired lease until every living node would be back and names the end it saw; here it reclaims at once, whatever the end",
        "the store's clock jumps ahead, and a node that renews loses its jobs to the first reclaimer",
        "is connected and renews its lease, but its jobs are reclaimed",
    ),
    taken(
        "21",
        Profile::NoClock,
        500,
        "no handler starts, and none goes on, unless the lease is provably good; here the node believes in a longer lease than the store",
        "a node that could not renew for longer than its lease starts handlers",
        "without a lease",
    ),
    taken(
        "23",
        Profile::Calm,
        500,
        "an earlier head is signalled",
        "a job waits until its node wakes for another reason",
        "late without a fault",
    ),
    taken(
        "begin",
        Profile::Starved,
        500,
        "a run begins with the first poll of its handler; here its node counts it from the start of a task that does not poll it",
        "a job is charged an attempt though its handler was never polled",
        "was polled",
    ),
    taken(
        "bytes",
        Profile::Large,
        500,
        "a step is bounded by bytes, and an answer that still arrives is not given up; here only its jobs are counted",
        "a node asks for the same large answer again and again",
        "on a slow link",
    ),
    taken(
        "connect",
        Profile::Refused,
        500,
        "what could not be sent was certainly not done; here a refused connection tells nothing",
        "a caller gets `Unknown` for a job that never left its program",
        "was never sent",
    ),
    taken(
        "early",
        Profile::Calm,
        500,
        "a handler whose job was claimed before it is due starts once the store's clock has certainly reached the due time; here the node believes that the clock is ahead",
        "a handler begins before its job is due",
        "µs early",
    ),
    taken(
        "reserve",
        Profile::File,
        500,
        "a fence leaves a `file:` store once a reservation that covers it is synced; here at once",
        "after a power cut, and with a clock that was set back, a job gets an old fence again",
        "does not grow",
    ),
    taken(
        "resubscribe",
        Profile::Signals,
        500,
        "a refused subscription is made again over a new connection; here over the old one, on which nothing comes",
        "a job waits until its node wakes for another reason",
        "late without a fault",
    ),
    taken(
        "sync",
        Profile::File,
        500,
        "a `file:` store answers an add once it is synced; here at once",
        "a job whose caller got `Ok` is gone after a power cut",
        "was confirmed",
    ),
    taken(
        "watcher",
        Profile::Signals,
        500,
        "a signal that reaches no watcher goes to all nodes; here the store believes that a dead one still listens",
        "a job waits for the fallback of an idle node",
        "late without a fault",
    ),
];
