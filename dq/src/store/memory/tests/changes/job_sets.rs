//! Sets, their members, and which jobs are members come back from the changes, and from a dump (rule 18).

use super::super::super::job_sets::SetRow;
use super::*;
use crate::job::TopicName;
use crate::store::{
    BatchAnswer, MAX_MEMBERS, MemberEnd, OnDead, OutboxEntry, Relay, SetChange, SetCounts, SetOutcome, SetRefusal,
    SetVerb, relay_of,
};

fn name() -> TopicName {
    TopicName::new("t").unwrap()
}

/// A topic that is the home of the set `s` and the topic of its members.
fn home() -> Bench {
    let mut bench = logged();
    bench.topic.name = Some(name());
    bench
}

fn change(bench: &mut Bench, what: SetVerb, all: &mut Vec<Vec<u8>>) {
    bench.number += 1;
    let change = SetChange { set: id("s"), what };
    bench.execute("p", Batch::JobSet { number: bench.number, change }).unwrap();
    all.push(changes(&mut bench.topic));
}

/// Brings the entries of the outbox where they belong, which is here.
fn relay(bench: &mut Bench, all: &mut Vec<Vec<u8>>) {
    let own = relay_of(&name());
    loop {
        let (node, lease, arrived) = (node("n"), LEASE, vec![(name(), bench.topic.calls.highest(&own))]);
        let request = Relay {
            node,
            lease,
            arrived: Vec::new(),
            unread: vec![],
            without: vec![],
            limit: 10,
            bytes: DEFAULT_BYTES,
        };
        let entries: Vec<OutboxEntry> = bench.topic.outbox.relay(bench.now, &request, &arrived).entries;
        all.push(changes(&mut bench.topic));
        if entries.is_empty() {
            return;
        }
        for entry in entries {
            bench.topic.begin_step(bench.now, false);
            bench.execute(own.as_str(), Batch::Relay { entry }).unwrap();
            bench.topic.end_step(bench.now);
            all.push(changes(&mut bench.topic));
        }
    }
}

/// The changes and a dump in small pages make the same topic.
fn check(bench: &mut Bench, all: &[Vec<u8>]) {
    let (mut pages, mut cursor) = (Vec::new(), bench.topic.begin_dump());
    loop {
        let mut page = Vec::new();
        let is_last = bench.topic.dump(&mut cursor, 1, 10_000, &mut page);
        pages.push(page);
        if is_last {
            break;
        }
    }
    for copy in [replayed(all), replayed(&pages)] {
        assert_eq!(state(&copy), state(&bench.topic));
        assert_eq!((copy.members.bytes, copy.job_sets.bytes), (bench.topic.members.bytes, bench.topic.job_sets.bytes));
    }
}

#[test]
fn a_set_comes_back_at_each_step_of_its_life() {
    let (mut bench, mut all) = (home(), Vec::new());
    let members = ["a", "b", "c"].map(|text| (name(), job(text)));
    change(&mut bench, SetVerb::Add(OnDead::Wait, members.into()), &mut all);
    check(&mut bench, &all);
    relay(&mut bench, &mut all);
    change(&mut bench, SetVerb::Close(Box::new(job("then"))), &mut all);
    check(&mut bench, &all);
    for (text, end) in [("a", MemberEnd::Acked), ("b", MemberEnd::DeadCancels)] {
        change(&mut bench, SetVerb::End(name(), vec![(id(text), end)]), &mut all);
        check(&mut bench, &all);
    }
    relay(&mut bench, &mut all);
    check(&mut bench, &all);
    assert_eq!(bench.topic.state(&id("then")), Some(State::Delayed), "the delete of the last member has ended the set");
    assert_eq!(bench.topic.job_sets.bytes, super::super::super::places::bytes_of_row(&id("s"), 128));
    bench.advance(Duration::from_secs(2 * 86_400));
    change(&mut bench, SetVerb::End(name(), vec![(id("a"), MemberEnd::Acked)]), &mut all);
    check(&mut bench, &all);
    assert_eq!((bench.topic.job_sets.bytes, bench.topic.job_sets.is_empty()), (0, true));
}

/// 1,000,000 members: a set takes no more, and those that it has may come again.
#[test]
fn the_members_of_a_set_are_bounded() {
    let mut bench = home();
    let counts = SetCounts { members: MAX_MEMBERS - 1, ..SetCounts::default() };
    bench.topic.job_sets.put(&id("s"), SetRow { counts, ..SetRow::default() });
    let mut add = |names: &[&str]| {
        bench.number += 1;
        let what = SetVerb::Add(OnDead::Count, names.iter().map(|text| (name(), job(text))).collect());
        let change = SetChange { set: id("s"), what };
        match bench.execute("p", Batch::JobSet { number: bench.number, change }).unwrap() {
            BatchReply::JobSet(BatchAnswer::Done(mut outcomes)) => outcomes.remove(0),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(add(&["a", "b"]), SetOutcome::Refused(SetRefusal::TooManyMembers));
    for _ in 0..2 {
        assert!(matches!(add(&["a"]), SetOutcome::Done(seen) if seen.counts.members == MAX_MEMBERS));
    }
    assert_eq!(add(&["b"]), SetOutcome::Refused(SetRefusal::TooManyMembers));
}
