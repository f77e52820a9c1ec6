//! For each rule small files that break it, beside files that do not.

use dq::job::State;

use super::*;
use crate::ledger::{Answer, End, Entry, Line, Verb};
use crate::process::work::SLOTS;

const DONE: Answer = Answer::Done { found: None, changed: true };

/// The files of a storm with one job, `j`. Times are in ms.
#[derive(Default)]
struct Storm(BTreeMap<&'static str, Vec<Line>>);

impl Storm {
    fn note(mut self, process: &'static str, at: u64, entry: Entry) -> Self {
        self.0.entry(process).or_default().push(Line { at: at * 1_000, entry });
        self
    }

    /// Adds the job at second 1, due 100 ms later.
    fn added(self, answer: Answer) -> Self {
        let adding = Entry::Adding { id: "j".into(), after: 100 };
        self.note("producer-0.1", 1_000, adding).note("producer-0.1", 1_010, Entry::Added { id: "j".into(), answer })
    }

    fn start_as(self, process: &'static str, at: u64, fence: u64, attempt: u32) -> Self {
        self.note(process, at, Entry::Start { id: "j".into(), fence, due: 1_100_000, attempt })
    }

    fn start(self, process: &'static str, at: u64, fence: u64) -> Self {
        self.start_as(process, at, fence, 0)
    }

    fn end(self, process: &'static str, at: u64, fence: u64, end: End) -> Self {
        self.note(process, at, Entry::End { id: "j".into(), fence, end })
    }

    fn settled(self, process: &'static str, at: u64, fence: u64, change: &str, verdict: &str) -> Self {
        let (change, verdict) = (change.into(), verdict.into());
        self.note(process, at, Entry::Settled { id: "j".into(), fence, change, verdict })
    }

    /// A run that is acked, 10 ms long, whose answer comes 10 ms later.
    fn acked(self, process: &'static str, at: u64, fence: u64) -> Self {
        self.start(process, at, fence).end(process, at + 10, fence, End::Ack).settled(
            process,
            at + 20,
            fence,
            "acked",
            "taken",
        )
    }

    fn event(self, target: &str, what: &str, at: u64) -> Self {
        let (target, what, from) = (target.into(), what.into(), at * 1_000);
        self.note("storm", at, Entry::Event { target, what, from, to: from })
    }

    fn command(self, at: u64, verb: Verb, answer: Answer) -> Self {
        let sending = Entry::Sending { id: "j".into(), verb };
        self.note("producer-0.1", at, sending).note(
            "producer-0.1",
            at + 10,
            Entry::Sent { id: "j".into(), verb, answer },
        )
    }

    fn commanded(self, at: u64, verb: Verb, found: Option<State>) -> Self {
        self.command(at, verb, Answer::Done { found, changed: found.is_some() })
    }

    fn listed(mut self, at: u64, jobs: &[(&str, State, Option<&str>)]) -> Self {
        self = self.note("storm", at, Entry::Listing);
        for (id, place, cause) in jobs {
            let (id, cause) = ((*id).into(), cause.map(Into::into));
            self = self.note("storm", at, Entry::Listed { id, place: *place, cause });
        }
        self.note("storm", at, Entry::ListingEnd)
    }

    fn report(self) -> Report {
        let logs = self.0.into_iter().map(|(process, lines)| Log { process: process.into(), lines });
        verify(&logs.collect::<Vec<_>>())
    }

    /// The rules that do not hold, with what the checker says.
    fn found(self) -> Vec<(&'static str, String)> {
        self.report().findings.into_iter().map(|finding| (finding.rule, finding.what)).collect()
    }

    #[track_caller]
    fn breaks(self, rule: &str, what: &str) {
        let found = self.found();
        assert!(found.iter().any(|(broken, said)| *broken == rule && said.contains(what)), "{found:?}");
    }

    #[track_caller]
    fn holds(self) {
        assert_eq!(self.found(), []);
    }
}

fn storm() -> Storm {
    Storm::default().added(DONE)
}

#[test]
fn a_job_that_is_nowhere_is_lost() {
    storm().acked("node-1.1", 1_100, 5).listed(9_000, &[]).holds();
    storm().listed(9_000, &[("j", State::Delayed, None)]).holds();
    storm().listed(9_000, &[]).breaks("lost", "nowhere");
    Storm::default().added(Answer::Unknown).listed(9_000, &[]).holds();
    let failed = || storm().start("node-1.1", 1_100, 5).end("node-1.1", 1_110, 5, End::Failed(Some(50)));
    failed().settled("node-1.1", 1_120, 5, "retried", "taken").listed(9_000, &[]).breaks("lost", "nowhere");
}

#[test]
fn an_end_of_which_only_the_answer_is_missing_needs_a_reason() {
    let unanswered = || storm().start("node-1.1", 1_100, 5).end("node-1.1", 1_110, 5, End::Ack).listed(60_000, &[]);
    unanswered().breaks("lost", "without a reason");
    unanswered().event("node-1.1", "killed", 1_111).holds();
    unanswered().event("node-1.1", "killed", 1_105).breaks("lost", "without a reason");
    let refused = || unanswered().settled("node-1.1", 2_000, 5, "acked", "stale");
    refused().event("node-1", "cut", 1_120).holds();
    refused().event("node-2", "cut", 1_120).breaks("outcome", "refused without a reason");
    refused().event("node-1", "stopped", 1_120).breaks("outcome", "refused without a reason");
}

#[test]
fn a_job_is_in_one_place_and_dead_for_a_cause() {
    let twice = [("j", State::Delayed, None), ("j", State::Running, None)];
    storm().listed(9_000, &twice).breaks("lost", "in 2 places");
    let dead = |cause| storm().start("node-1.1", 1_100, 5).listed(9_000, &[("j", State::Dead, cause)]);
    let finally =
        |storm: Storm| storm.note("node-1.1", 1_105, Entry::Final { id: "j".into(), fence: 5, cause: "error".into() });
    finally(dead(Some("error"))).holds();
    finally(dead(None)).breaks("lost", "without a cause");
    dead(Some("error")).breaks("lost", "`on_exhausted` was not called");
    let alone = || dead(Some("crashes")).note("node-2.1", 1_105, Entry::Alone { ids: vec!["j".into()] });
    alone().breaks("lost", "`on_exhausted` was not called");
    alone().event("node-2.1", "killed", 1_100).breaks("lost", "`on_exhausted` was not called");
    alone().event("node-2.1", "killed", 1_106).holds();
}

#[test]
fn an_acked_job_does_not_return() {
    storm()
        .acked("node-1.1", 1_100, 5)
        .listed(9_000, &[("j", State::Delayed, None)])
        .breaks("lost", "after the accepted ack");
    storm()
        .acked("node-1.1", 1_100, 5)
        .acked("node-2.1", 2_000, 6)
        .breaks("outcome", "run 6 came after the accepted outcome acked");
    let absent = storm().listed(2_000, &[]).acked("node-1.1", 3_000, 5);
    absent.breaks("lost", "ran later");
}

#[test]
fn jobs_that_nobody_added_are_made_up() {
    Storm::default().acked("node-1.1", 1_100, 5).breaks("made up", "nobody added it");
    storm()
        .listed(9_000, &[("j", State::Delayed, None), ("k", State::Delayed, None)])
        .breaks("made up", "nobody added it");
    let refused = || Storm::default().added(Answer::NotDone);
    refused().listed(9_000, &[]).holds();
    refused().acked("node-1.1", 1_100, 5).breaks("made up", "it ran");
    refused().listed(9_000, &[("j", State::Delayed, None)]).breaks("made up", "it is in the store");
}

#[test]
fn no_outcome_counts_of_a_run_that_had_lost_its_job() {
    let stalled =
        || storm().start("node-1.1", 1_100, 5).event("node-1.1", "stalled", 1_101).start("node-2.1", 2_000, 6);
    let late = |change: &str, end, verdict: &str| {
        stalled().end("node-1.1", 2_005, 5, end).settled("node-1.1", 2_006, 5, change, verdict)
    };
    late("acked", End::Ack, "stale").holds();
    late("acked", End::Ack, "taken").breaks("outcome", "had lost its job to run 6");
    late("retried", End::Failed(Some(1_000)), "taken").breaks("outcome", "had lost its job to run 6");
    late("given back", End::Dropped, "stale").holds();
    late("acked", End::Ack, "dropped").breaks("outcome", "the verdict on acked of run 5 is dropped");
    storm().acked("node-1.1", 1_100, 5).settled("node-1.1", 1_200, 5, "acked", "taken").breaks("outcome", "2 outcomes");
}

#[test]
fn no_handler_begins_early() {
    storm().acked("node-1.1", 1_099, 5).breaks("early", "1000 µs early");
    let rejoined = |again| {
        let first = storm().start("node-1.1", 1_100, 5).end("node-1.1", 1_110, 5, End::Rejoin(300));
        first.settled("node-1.1", 1_120, 5, "rejoined", "taken").acked("node-1.1", again, 6)
    };
    rejoined(1_410).holds();
    rejoined(1_409).breaks("early", "1000 µs early");
}

#[test]
fn deletes_and_acks_from_outside_hold() {
    let by = |verb, found| storm().commanded(1_050, verb, found);
    by(Verb::Delete, Some(State::Delayed)).listed(9_000, &[]).holds();
    by(Verb::Delete, Some(State::Delayed)).start("node-1.1", 1_100, 5).breaks("command", "1 runs began after");
    by(Verb::Delete, Some(State::Delayed))
        .listed(9_000, &[("j", State::Delayed, None)])
        .breaks("command", "in the store");
    by(Verb::Delete, Some(State::Running)).start("node-1.1", 1_100, 5).listed(9_000, &[]).holds();
    let twice = by(Verb::Delete, Some(State::Running)).start("node-1.1", 1_100, 5).start("node-1.1", 2_100, 6);
    twice.event("node-1.1", "cut", 1_101).breaks("command", "2 runs began after");
    by(Verb::Ack, Some(State::Unacked)).start("node-1.1", 1_100, 5).breaks("command", "1 runs began after");
    by(Verb::AckRun, Some(State::Unacked)).start("node-1.1", 1_100, 5).breaks("command", "1 runs began after");
    by(Verb::AckRun, Some(State::Running)).acked("node-1.1", 1_100, 5).holds();
    by(Verb::Delete, None).acked("node-1.1", 1_100, 5).breaks("command", "found nothing");
    let unsent = storm().command(1_050, Verb::Delete, Answer::NotDone).listed(9_000, &[]);
    unsent.breaks("lost", "nowhere");
    storm().command(1_050, Verb::Delete, Answer::Unknown).listed(9_000, &[]).holds();
}

#[test]
fn a_second_run_needs_a_reason() {
    let twice = || storm().start("node-1.1", 1_100, 5).acked("node-2.1", 3_000, 6);
    twice().breaks("duplicate", "without a reason");
    twice().event("node-1.1", "killed", 1_105).holds();
    twice().event("node-1.2", "killed", 1_105).breaks("duplicate", "without a reason");
    twice().event("node-1.1", "killed", 1_099).breaks("duplicate", "without a reason");
    twice().event("node-1", "held up", 1_099).holds();
    twice().event("node-2", "held up", 1_105).breaks("duplicate", "without a reason");
    twice().event("store", "killed", 1_105).holds();
    storm().start("node-1.1", 1_100, 5).acked("node-1.1", 1_200, 5).breaks("duplicate", "run 5 began 2 times");
}

#[test]
fn a_retry_of_which_a_killed_node_did_not_learn_is_no_second_run() {
    let again = |attempt| {
        let run = storm().start("node-1.1", 1_100, 5).end("node-1.1", 1_110, 5, End::Failed(Some(200)));
        let start = Entry::Start { id: "j".into(), fence: 6, due: 1_310_000, attempt };
        run.note("node-2.1", 1_320, start)
    };
    again(1).breaks("duplicate", "without a reason");
    again(1).event("node-1.1", "killed", 1_330).holds();
    again(0).event("node-1.1", "killed", 1_330).breaks("duplicate", "without a reason");
}

/// The nodes do not wait until a replica has an outcome.
#[test]
fn an_outcome_that_a_failover_lost_may_come_again() {
    let twice = |at| storm().acked("node-1.1", 1_100, 5).acked("node-2.1", 9_000, 6).event("store", "failed over", at);
    twice(1_900).holds();
    twice(3_000).breaks("duplicate", "after the accepted outcome acked");
    twice(1_000).breaks("duplicate", "after the accepted outcome acked");
    let restarted = storm().acked("node-1.1", 1_100, 5).acked("node-2.1", 9_000, 6);
    restarted.event("store", "restarted", 1_900).breaks("duplicate", "after the accepted outcome acked");
}

#[test]
fn an_on_exhausted_that_was_given_back_is_no_second_run() {
    let owed = |first: &[u64]| {
        let run = storm().start("node-1.1", 1_100, 5).end("node-1.1", 1_110, 5, End::Failed(None));
        let finally = |at, process, fence, storm: Storm| {
            storm.note(process, at, Entry::Final { id: "j".into(), fence, cause: "error".into() })
        };
        let run = first.iter().fold(run, |run, at| finally(*at, "node-1.1", 5, run));
        finally(2_000, "node-2.1", 6, run.settled("node-1.1", 1_900, 5, "given back", "taken"))
    };
    owed(&[]).holds();
    owed(&[1_120]).breaks("duplicate", "without a reason");
}

#[test]
fn a_parked_job_runs_again_only_after_a_requeue() {
    let parked = || {
        let run = storm().start("node-1.1", 1_100, 5).end("node-1.1", 1_110, 5, End::Park);
        run.settled("node-1.1", 1_120, 5, "parked", "taken").acked("node-1.1", 3_000, 6)
    };
    parked().breaks("duplicate", "after the accepted outcome parked");
    parked().commanded(2_000, Verb::Requeue, Some(State::Unacked)).holds();
}

#[test]
fn the_attempt_is_the_number_of_failed_runs() {
    let retried = |attempt| {
        let run = storm().start("node-1.1", 1_100, 5).end("node-1.1", 1_110, 5, End::Failed(Some(50)));
        let run = run.settled("node-1.1", 1_120, 5, "retried", "taken").start_as("node-1.1", 2_000, 6, attempt);
        run.end("node-1.1", 2_010, 6, End::Ack).settled("node-1.1", 2_020, 6, "acked", "taken")
    };
    retried(1).holds();
    retried(0).breaks("attempt", "run 6 is attempt 0");
    retried(2).breaks("attempt", "run 6 is attempt 2");
}

#[test]
fn no_process_ends_of_itself() {
    storm().acked("node-1.1", 1_100, 5).event("node-1.1", "stopped", 2_000).holds();
    storm()
        .acked("node-1.1", 1_100, 5)
        .event("node-1.1", "ended of itself: exit status: 4", 2_000)
        .breaks("process", "status: 4");
}

#[test]
fn what_happened_is_counted() {
    let storm = storm().start("node-1.1", 1_100, 5).acked("node-2.1", 3_000, 6).event("node-1.1", "killed", 1_105);
    let counts = storm.report().counts;
    for (name, count) in [("runs", 2), ("duplicates", 1), ("duplicates: cut short, killed", 1), ("node killed", 1)] {
        assert_eq!(counts.get(name), Some(&count), "{name}: {counts:?}");
    }
    assert_eq!(counts["adds confirmed"], 1);
}

/// Six runs of jobs with this gate, on two nodes. Each begins 10 ms after the one before it and takes `takes` ms.
fn six_runs(gate: &str, takes: u64) -> Storm {
    let at = |storm: Storm, n: u64, at, entry| {
        storm.note(if n.is_multiple_of(2) { "node-0.1" } else { "node-1.1" }, at, entry)
    };
    (0..6).fold(storm(), |storm, n| {
        let (id, begins) = (format!("r{n}@{gate}"), 5_000 + 10 * n);
        let storm = at(storm, n, begins, Entry::Start { id: id.clone(), fence: n + 1, due: 1_100_000, attempt: 0 });
        at(storm, n, begins + takes, Entry::End { id, fence: n + 1, end: End::Ack })
    })
}

/// How often a storm breaks the rule of slots.
fn broken(storm: Storm) -> usize {
    storm.found().into_iter().filter(|(rule, _)| *rule == "slots").count()
}

#[test]
fn no_more_jobs_run_at_a_time_than_have_a_slot() {
    let exactly = 10 * SLOTS as u64;
    assert_eq!(broken(six_runs("slots", exactly)), 0, "a run ends as another begins");
    assert_eq!(broken(six_runs("slots", exactly + 1)), 6 - SLOTS);
    let stalled = || six_runs("slots", exactly + 1).event("node-1.1", "stalled", 5_015);
    assert_eq!(broken(stalled()), 1, "it has not lost its lease");
    assert_eq!(broken(stalled().event("store", "failed over", 5_060)), 0, "the store may have lost it");
}

/// A node learns at this time that its lease is valid until then.
fn leased(storm: Storm, process: &'static str, at: u64, topic: &str, until: u64) -> Storm {
    storm.note(process, at, Entry::Lease { topic: topic.into(), until: until * 1_000 })
}

#[test]
fn a_run_has_its_slot_until_the_lease_of_its_node_lapses() {
    let runs = || six_runs("slots", 51);
    let of_others = |storm| leased(storm, "node-1.1", 4_990, "rejoin", 9_000);
    let until = |until| leased(of_others(runs()), "node-0.1", 4_990, "rejoin", until);
    assert_eq!(
        (broken(until(5_051)), broken(until(5_050))),
        (1, 0),
        "the first run is at its end, and then beyond its lease"
    );
    let renewed = |at| broken(leased(until(5_040), "node-0.1", at, "rejoin", 9_000));
    assert_eq!((renewed(5_039), renewed(5_040)), (1, 0), "a lease that comes too late does not count");
    assert_eq!(broken(leased(of_others(runs()), "node-0.1", 4_990, "grouped", 5_040)), 1, "that is of another topic");
    let beyond = |storm: Storm| storm.report().counts.get("runs with a slot beyond their lease").copied();
    assert_eq!((beyond(until(5_041)), beyond(until(9_000))), (Some(3), None));
}

#[test]
fn one_job_of_a_group_runs_at_a_time_and_a_killed_one_runs_until_then() {
    assert_eq!(broken(six_runs("g7", 10)), 0);
    assert_eq!(broken(six_runs("g7", 11)), 5);
    let start = |storm: Storm, process, at, fence| {
        storm.note(process, at, Entry::Start { id: format!("r{fence}@g7"), fence, due: 1_100_000, attempt: 0 })
    };
    let killed = |at| {
        let storm = start(start(storm(), "node-0.1", 5_000, 1), "node-1.1", 5_050, 2).event("node-0.1", "killed", at);
        broken(storm.event("node-1.1", "killed", 5_060))
    };
    assert_eq!((killed(5_049), killed(5_051)), (0, 1));
    // The time is that before the kill, however long this takes.
    let slow = Entry::Event { target: "node-0.1".into(), what: "killed".into(), from: 5_049_000, to: 5_900_000 };
    let slowly = start(start(storm(), "node-0.1", 5_000, 1), "node-1.1", 5_050, 2).note("storm", 5_900, slow);
    assert_eq!(broken(slowly.event("node-1.1", "killed", 5_060)), 0);
    let lapsed = |until| {
        let storm = leased(storm(), "node-0.1", 4_000, "grouped", until);
        let storm = start(start(storm, "node-0.1", 5_000, 1), "node-1.1", 5_050, 2).event("node-0.1", "killed", 5_090);
        broken(storm.event("node-1.1", "killed", 5_060))
    };
    assert_eq!((lapsed(5_050), lapsed(5_051)), (0, 1), "it had lost its lease before it was killed");
}

/// A set of two members, of which this one ends at second 2, and whose last job begins then and is told these counts.
fn set(begins: u64, counts: [u64; 3]) -> Storm {
    let run = |storm: Storm, id: &str, at, fence| {
        let start = Entry::Start { id: id.into(), fence, due: 1_000_000, attempt: 0 };
        let end = Entry::End { id: id.into(), fence, end: End::Ack };
        let (change, verdict) = ("acked".into(), "taken".into());
        let settled = Entry::Settled { id: id.into(), fence, change, verdict };
        storm.note("node-1.1", at, start).note("node-1.1", at + 10, end).note("node-1.1", at + 20, settled)
    };
    let set = || "s".to_owned();
    let storm = Storm::default()
        .note("producer-0.1", 1_000, Entry::Members { set: set(), from: 2, to: 4 })
        .note("producer-0.1", 1_010, Entry::Joined { set: set(), from: 2, to: 4, answer: DONE })
        .note("producer-0.1", 1_020, Entry::Adding { id: "s%last".into(), after: 0 })
        .note("producer-0.1", 1_030, Entry::Added { id: "s%last".into(), answer: DONE });
    let storm = run(run(storm, "s%2", 1_100, 5), "s%3", 1_990, 6);
    run(storm.note("node-1.1", begins, Entry::Counts { id: "s%last".into(), counts }), "s%last", begins, 7)
}

#[test]
fn the_last_job_of_a_set_comes_after_its_members_and_counts_them() {
    set(2_100, [2, 0, 0]).listed(9_000, &[]).holds();
    set(1_995, [2, 0, 0]).listed(9_000, &[]).breaks("set", "a member ended at 2000000");
    for counts in [[1, 0, 0], [1, 1, 0], [1, 0, 1], [3, 0, 0]] {
        set(2_100, counts).listed(9_000, &[]).breaks("set", "it is told");
    }
    let closed = Storm::default().note("producer-0.1", 1_000, Entry::Adding { id: "s%last".into(), after: 0 });
    let closed = closed.note("producer-0.1", 1_010, Entry::Added { id: "s%last".into(), answer: DONE });
    closed.listed(9_000, &[]).breaks("lost", "nowhere");
}
