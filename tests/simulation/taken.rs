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

/// Each row: the rule, its faults and the seeds that find it; what the rule says, and what happens without it; what has happened, and what the
/// checker says of it.
macro_rules! table {
    ($($rule:literal $faults:ident $within:literal: $gone:literal; $seen:literal: $says:literal;)+) => {
        pub const TAKEN: [Taken; 60] = [$(
            Taken { rule: $rule, gone: $gone, faults: Profile::$faults, within: $within, says: $says, seen: $seen }
        ),+];
    };
}

table! {
    "2" Killers 500:
        "a reclaimed job waits again in the step that removes its row; here the row goes first, and the reclaimer dies before the second step";
        "a job that was running is nowhere": "LOST: version";
    "6" Unresponsive 500:
        "a request names the last seen sequence number, and a reconcile renews nothing; here the store accepts any sequence number";
        "a node that receives no answers keeps the jobs it claimed, and its lease never expires": "has been unresponsive for a minute, but keeps jobs";
    "7" Fall 1_000:
        "a lost answer, another sequence number or another number of rows starts a reconcile; here no answer shows a row whose claim was lost";
        "a node keeps a row that it does not know, and the job never runs again": "STUCK";
    "8" Fall 500:
        "a lease stays while rows are left; here it goes with the first bounded step, or with the release";
        "no node finds the jobs of a node that is gone": "STUCK";
    "9" Fall 500:
        "fences come from the store's clock; here from a counter";
        "the store falls back and gives a fence out twice": "the fence of";
    "10" NoClock 500:
        "a step that takes a job out of RUNNING compares the token";
        "the outcome of an older run is taken for that of the run that holds the job": "is accepted for run";
    "13" Calm 500:
        "a delete, cancel or ack of a running job leaves a pending command";
        "the run ends, and the job that should be gone waits again": "though";
    "15" Crowd 500:
        "exhaustion is written before `final_retry` is called";
        "the node loses its lease in `final_retry`, and the next node calls `on_due`": "after its final_retry";
    "18" NoClock 500:
        "a repeated batch has its own call number; here it has a new one";
        "one add takes effect twice": "the add of";
    "19" Killers 500:
        "a quarantined job runs in a group or alone, and only one that is alone is convicted; here it is noted as alone and runs beside others";
        "a job that ran beside killers is dead by crashes": "is DEAD by crashes";
    "20" All 500:
        "a reclaimer watches an expired lease until every living node would be back and names the end it saw; here it reclaims at once, whatever the end";
        "the store's clock jumps ahead, and a node that renews loses its jobs to the first reclaimer": "is connected and renews its lease, but its jobs are reclaimed";
    "21" NoClock 500:
        "no handler starts, and none goes on, unless the lease is provably good; here the node believes in a longer lease than the store";
        "a node that could not renew for longer than its lease starts handlers": "without a lease";
    "23" Calm 500:
        "an earlier head is signalled";
        "a job waits until its node wakes for another reason": "late without a fault";
    "28" Calm 500:
        "a change of a running job is refused; here its caller is told that it took effect";
        "a job that should be due at another time is not": "is answered";
    "29" Calm 500:
        "a paused topic claims nothing; here a transfer sees no pause";
        "a job is claimed under a pause": "is claimed while its topic is paused";
    "30" Calm 500:
        "one step adds the jobs of a tick and moves the schedule on; here the jobs are added in a step of their own, and the node dies before the second";
        "the schedule has its tick again": "waits with";
    "34" Panics 500:
        "a job is convicted of a panic once the task has panicked at it again; here the first panic convicts each job whose outcome the node sends next";
        "a job is DEAD for a panic that another job, or no job, may have caused": "is DEAD by a defect";
    "ahead" Net 1_000:
        "a target with a position at which its source has no entry is set back; here it stays";
        "an import has left it there, and follow-ups are late for ever": "have not come";
    "begin" Starved 500:
        "a run begins with the first poll of its handler; here its node counts it from the start of a task that does not poll it";
        "a job is charged an attempt though its handler was never polled": "was polled";
    "borrowed" All 1_000:
        "a group borrows only while nothing else is due; here what it may borrow is its own";
        "a group runs more than its number while another job waits": "borrows with";
    "bytes" Large 500:
        "a step is bounded by bytes, and an answer that still arrives is not given up; here only its jobs are counted";
        "a node asks for the same large answer again and again": "on a slow link";
    "connect" Refused 500:
        "what could not be sent was certainly not done; here a refused connection tells nothing";
        "a caller gets `Unknown` for a job that never left its program": "was never sent";
    "counted" Calm 500:
        "a set ends with its last member; here one end counts for all of a topic";
        "the last job of a set comes too early": "has come before the end of";
    "drain" Calm 500:
        "a topic that drains takes no job; here its adds see no drain";
        "an add takes effect": "takes effect in a topic that drains";
    "drained" Calm 500:
        "a topic that drains runs only what was due when the drain began; here a transfer sees no drain";
        "a job that became due later is claimed": "in a topic that drains since";
    "early" Calm 500:
        "a handler whose job was claimed before it is due starts once the store's clock has certainly reached the due time; here the node believes that the clock is ahead";
        "a handler begins before its job is due": "µs early";
    "ended" Calm 500:
        "the step that ends a member tells home; here home learns of no end";
        "a closed set waits for ever": "has not come; not ended: []";
    "fenced" Calm 500:
        "an ack or requeue that names a run does nothing to another run; here it names none";
        "the late ack of an older run ends the job": "LOST: version";
    "full" Calm 500:
        "an add beyond what may wait is refused; here it takes effect";
        "more jobs wait than may": "is added, though";
    "group" All 500:
        "no more jobs of a group run than may; here a transfer does not know how many may";
        "two jobs of a group run where one may": "are RUNNING, and";
    "held" All 500:
        "no job of a paused group is claimed; here a transfer sees no pause of a group";
        "a job is claimed under the pause of its group": "though its group";
    "kept" Calm 500:
        "a checkpoint is there for the next run; here the store answers that it has it, and keeps nothing";
        "a job comes back with the state of an earlier checkpoint, or with none": "though its last run has left";
    "member" Calm 500:
        "a run that adds members has them in the set before its own end; here home does not get them";
        "the last job comes while a member is on its way": "has come before the end of";
    "moved" Calm 500:
        "one step adds the jobs of a tick and moves the schedule on; here the schedule moves on in a step of its own, and the node dies before the second";
        "a tick adds no job": "has its tick, but";
    "noted" Net 1_000:
        "a checkpoint that comes after a later one of its run does nothing; here no checkpoint has a number";
        "a job comes back with the state of an earlier checkpoint": "though its last run has left";
    "outbox" Net 1_000:
        "the position moves in the step that executes the entry; here it moves before";
        "the request with the jobs was lost, and the store took the entry for one that has come": "have not come";
    "overlap" Calm 500:
        "with `overlap = \"skip\"` a tick adds no job while that of the last one has not ended; here it never asks";
        "two jobs of one schedule overlap": "though it must not be";
    "passed" All 500:
        "the ticks of schedules pass slots and rates; here a transfer of a topic that waits for these claims none";
        "a tick comes late because its topic is full": "waits for a limit";
    "paused" Calm 500:
        "a node that hears of a pause starts nothing that it has claimed; here it hears nothing";
        "a handler begins under the pause": "though its topic is paused since";
    "position" Net 1_000:
        "a target keeps the position of the last follow-up that has come; here it executes each entry that comes again";
        "the answer to an entry was lost, and it went out again": "has come twice";
    "priority" Calm 500:
        "a claim takes the job whose due time, shifted by its priority, is the earliest; here priorities have no effect";
        "a job is claimed before one that goes first": "which goes first";
    "published" Broadcasts 500:
        "a paused topic publishes nothing; here a publish sees no pause";
        "a broadcast is published under a pause": "is published while its topic is paused";
    "quota" All 500:
        "no period has more claims of a group than its rate; here a transfer does not know of it";
        "more jobs of a group are claimed within a period than an operator has allowed": "of its group";
    "rate" All 500:
        "no period has more claims than the rate; here a transfer does not know of a rate that is spent";
        "more jobs are claimed within a period than an operator has allowed": "is claimed over the rate";
    "remembered" Calm 500:
        "home keeps the name of a set that has ended; here it forgets it";
        "a repeated close adds the last job again": "has come twice";
    "replaced" Calm 500:
        "a replacement of a running job waits for the end of its run; here it takes the job's place at once";
        "the job that was running is nowhere": "LOST: version";
    "reserve" File 500:
        "a fence leaves a `file:` store once a reservation that covers it is synced; here at once";
        "after a power cut, and with a clock that was set back, a job gets an old fence again": "does not grow";
    "resubscribe" Signals 500:
        "a refused subscription is made again over a new connection; here over the old one, on which nothing comes";
        "a job waits until its node wakes for another reason": "late without a fault";
    "result" Calm 500:
        "a job stays DONE with the result of its ack; here the ack comes without it";
        "a job is gone, or DONE without its result": "LOST: the result of";
    "slots" All 500:
        "no more jobs are RUNNING on all nodes than may be; here a transfer does not know how many may";
        "more jobs run than an operator has allowed": "are RUNNING on all nodes";
    "swept" NoClock 500:
        "a paused topic claims no parked job; here a sweep sees no pause";
        "a parked job is claimed under a pause": "is claimed while its topic is paused";
    "sync" File 500:
        "a `file:` store answers an add once it is synced; here at once";
        "a job whose caller got `Ok` is gone after a power cut": "was confirmed";
    "ticked" NoClock 500:
        "a tick does nothing unless it has the token of the row; here it adds its jobs";
        "a job of a tick is there that no tick has added, or again after its end": "dq:tick:";
    "told" Signals 500:
        "the step that creates a lease tells another node; here no node is told";
        "the jobs of a dead node wait for the fallback of another one as well": "ms after its death";
    "turn" All 500:
        "groups take turns; here a claim passes over the group whose job has been due the longest";
        "another group is served again before it": "is served again with";
    "unique" Calm 500:
        "an id stays taken for as long as its add says; here it is free once its job is gone";
        "an id is added a second time within its time": "is added again, though its id is taken";
    "update" Calm 500:
        "an update brings its payload; here it brings only the version";
        "the job keeps its old payload": "is answered";
    "usual" Calm 500:
        "a job with no delay of its own gets the default delay of the topic; here its own";
        "a job is due at once": "was added for";
    "version" Calm 500:
        "a change that names another version does nothing; here no change names one";
        "a job changes under a version that it does not have": "is answered";
    "watcher" Signals 500:
        "a signal that reaches no watcher goes to all nodes; here the store believes that a dead one still listens";
        "a job waits for the fallback of an idle node": "late without a fault";
}
