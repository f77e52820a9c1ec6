//! The outbox and the positions of others come back from the changes, and from a dump (rule 18).

use super::*;
use crate::job::TopicName;
use crate::store::step::Ending;
use crate::store::{FollowUpBatch, FollowUpBatches, OutboxEntry, OutboxPosition, Relay, relay_of};

fn target() -> TopicName {
    TopicName::new("t").unwrap()
}

fn relay(topic: &mut Topic, now: Now, arrived: &[(TopicName, OutboxPosition)]) -> Vec<OutboxEntry> {
    let (node, lease) = (node("n"), LEASE);
    let request =
        Relay { node, lease, arrived: Vec::new(), unread: vec![], without: vec![], limit: 10, bytes: DEFAULT_BYTES };
    topic.outbox.relay(now, &request, arrived).entries
}

/// A run that ends with a follow-up; `all` gets the changes of each step.
fn run_with_follow_up(bench: &mut Bench, name: &str, all: &mut Vec<Vec<u8>>) {
    let mut follow_ups = FollowUpBatches::default();
    follow_ups.push(target(), &FollowUpBatch::Add(vec![job(&format!("after-{name}"))]));
    bench.add(job(name));
    all.push(changes(&mut bench.topic));
    let token = bench.claim("n", name);
    all.push(changes(&mut bench.topic));
    let verdict = bench.settle("n", name, token, Change::Then(Ending::Ack, std::sync::Arc::new(follow_ups)));
    assert_eq!(verdict, Verdict::Done);
    all.push(changes(&mut bench.topic));
}

/// What changes and a dump make of a topic.
fn twice(bench: &mut Bench, all: &[Vec<u8>]) -> [Topic; 2] {
    let (mut page, mut cursor) = (Vec::new(), bench.topic.begin_dump());
    assert!(bench.topic.dump(&mut cursor, 100, 10_000, &mut page));
    [replayed(all), replayed([&page])]
}

#[test]
fn entries_that_wait_come_back_and_later_ones_follow_them() {
    let (mut bench, mut all) = (logged(), Vec::new());
    for name in ["a", "b"] {
        run_with_follow_up(&mut bench, name, &mut all);
        // So the place of the next one is not when it was written.
        bench.now = Now::from_micros(bench.now.micros() - 1_000_000);
    }
    let (now, entries) = (bench.now, relay(&mut bench.topic, bench.now, &[]));
    assert_eq!((entries.len(), entries[1].after), (2, entries[0].position));
    assert_eq!(relay(&mut bench.topic, now, &[(target(), entries[0].position)]), entries[1..]);
    all.push(changes(&mut bench.topic));
    for mut topic in twice(&mut bench, &all) {
        assert_eq!(relay(&mut topic, now, &[]), entries[1..]);
    }
    relay(&mut bench.topic, now, &[(target(), entries[1].position)]);
    all.push(changes(&mut bench.topic));
    for topic in twice(&mut bench, &all) {
        let mut other = Bench::new();
        other.topic = topic;
        assert_eq!(relay(&mut other.topic, now, &[]), []);
        run_with_follow_up(&mut other, "c", &mut Vec::new());
        let next = relay(&mut other.topic, now, &[]).remove(0);
        assert!(next.position > entries[1].position && next.after == entries[1].position, "{next:?}");
    }
}

#[test]
fn an_entry_that_has_come_does_nothing_after_the_store_was_opened_again() {
    let mut source = logged();
    run_with_follow_up(&mut source, "a", &mut Vec::new());
    let entry = relay(&mut source.topic, source.now, &[]).remove(0);
    let entry = OutboxEntry { position: OutboxPosition { written: 7, ..entry.position }, ..entry };
    let (mut bench, relay) = (logged(), relay_of(&TopicName::new("s").unwrap()));
    let now = bench.now;
    let batch = Batch::Relay { entry: entry.clone() };
    bench.topic.execute(now, &relay, batch.clone()).unwrap();
    let all = [changes(&mut bench.topic)];
    for mut topic in twice(&mut bench, &all) {
        assert_eq!(topic.calls.highest(&relay), entry.position);
        assert_eq!(topic.execute(now, &relay, batch.clone()).unwrap(), BatchReply::Relay(BatchAnswer::Late));
        assert_eq!(topic.jobs.len(), 1);
    }
}
