//! The bytes of changes: how many, and what is refused.

use std::collections::BTreeSet;

use super::super::super::changes::ends_of;
use super::*;
use crate::job::{ProducerId, TopicName};
use crate::store::{FollowUpBatch, FollowUpBatches, OutboxEntry, OutboxPosition};

/// A hundred jobs with generated ids and payloads of 100 bytes.
fn hundred(bench: &Bench) -> Numbered<NewJob> {
    let item = |n| NewJob {
        id: JobId::generated(bench.now.micros() + n, 0x55_1234_5678),
        generated: true,
        record: record(&Metadata { delay: Duration::from_secs(60), ..Metadata::default() }, &"x".repeat(100)),
        ..job("-")
    };
    Numbered { number: 1, items: (0..100).map(item).collect() }
}

#[test]
fn a_life_costs_well_under_300_bytes_of_changes() {
    let mut bench = logged();
    let batch = hundred(&bench);
    bench.add_numbered(1, batch.items);
    let added = changes(&mut bench.topic).len();
    let claims = bench.transfer("0123456789abcdef", 100).claims;
    let claimed = changes(&mut bench.topic).len();
    let ack = |claim: &Claim| Outcome { id: claim.id.clone(), token: claim.token, change: Change::Ack, metadata: None };
    let outcomes = claims.iter().map(ack).collect();
    let last_seen = bench.sequence("0123456789abcdef");
    let request = Settle { last_seen, lease: LEASE, bytes: DEFAULT_BYTES, outcomes };
    bench.topic.settle(bench.now, &node("0123456789abcdef"), request).unwrap();
    let acked = changes(&mut bench.topic).len();
    assert!(bench.topic.is_empty());
    assert_eq!([added / 100, claimed / 100, acked / 100], [127, 17, 16], "bytes a job: add, claim, ack");
}

#[test]
fn a_waiting_job_costs_no_byte_more_for_the_journal() {
    use super::super::super::places::{Place, Slot};
    let group = size_of::<usize>();
    let parts = size_of::<Record>() + size_of::<Place>() + size_of::<u32>() + group;
    assert_eq!(size_of::<Slot>(), parts.next_multiple_of(align_of::<Slot>()), "what has changed is in the padding");
}

#[test]
fn a_retry_does_not_write_its_payload_again() {
    let mut bench = logged();
    let token = bench.run("n", NewJob { record: record(&Metadata::default(), &"x".repeat(250_000)), ..job("a") });
    changes(&mut bench.topic);
    let metadata = Metadata { attempts: 1, error: Some("it failed".into()), ..Metadata::default() };
    bench.settle_with("n", "a", token, Change::Retry(Duration::from_secs(1)), Some(metadata));
    let written = changes(&mut bench.topic).len();
    assert!((1..50).contains(&written), "{written} bytes");
}

/// Changes of every kind, one step each: with all that the format has.
fn every_kind() -> (Vec<Vec<u8>>, JournaledState) {
    let mut bench = logged();
    let mut all = Vec::new();
    let mut step = |bench: &mut Bench, act: &dyn Fn(&mut Bench)| {
        act(bench);
        let changes = changes(&mut bench.topic);
        assert!(!changes.is_empty());
        all.push(changes);
    };
    let kept = Metadata { retain: Duration::from_secs(60), ..Metadata::default() };
    step(&mut bench, &|bench| drop(bench.add(NewJob { record: record(&kept, "1"), ..job("done") })));
    for name in ["alone", "parked", "acked", "replaced"] {
        step(&mut bench, &|bench| drop(bench.add(job(name))));
    }
    let both = NewJob { deliver: Delivery::Both, due: Due::After(LEASE), ..job("both") };
    step(&mut bench, &|bench| drop(bench.add(both.clone())));
    step(&mut bench, &|bench| drop(bench.command(CommandKind::Ack, "done", None)));
    step(&mut bench, &|bench| drop(bench.transfer("n", 10)));
    step(&mut bench, &|bench| assert_eq!(bench.crash("n").left, 0));
    step(&mut bench, &|bench| drop(bench.transfer("n", 10)));
    let news = NewJob { deliver: Delivery::Broadcast, due: Due::After(LEASE), ..job("news") };
    step(&mut bench, &|bench| drop(bench.add(news.clone())));
    step(&mut bench, &|bench| drop(bench.command(CommandKind::Delete, "news", None)));
    step(&mut bench, &|bench| drop(bench.add(NewJob { due: Due::After(LEASE), ..job("gone") })));
    step(&mut bench, &|bench| drop(bench.command(CommandKind::Delete, "gone", None)));
    let token = |bench: &Bench, name: &str| bench.topic.jobs.get(&id(name)).unwrap().run().unwrap().token;
    step(&mut bench, &|bench| assert_eq!(bench.isolate("n", "alone", token(bench, "alone")), NoteVerdict::Done));
    let failed = || Some(Metadata { attempts: 2, error: Some("no".into()), ..Metadata::default() });
    step(&mut bench, &|bench| drop(bench.settle_with("n", "parked", token(bench, "parked"), Change::Park, failed())));
    step(&mut bench, &|bench| {
        let fence = token(bench, "acked").fence;
        bench.command(CommandKind::Ack, "acked", Some(fence));
    });
    let conditional = NewJob { on_duplicate: OnDuplicate::Keep, deliver: Delivery::Both, ..job("acked") };
    step(&mut bench, &|bench| drop(bench.add(conditional.clone())));
    step(&mut bench, &|bench| drop(bench.command(CommandKind::Delete, "alone", None)));
    step(&mut bench, &|bench| drop(bench.add(replacing("replaced", "2"))));
    step(&mut bench, &|bench| drop(bench.command(CommandKind::Delete, "both", None)));
    let target = TopicName::new("target").unwrap();
    let batch = FollowUpBatch::Delete(vec![id("unknown")]);
    let arrived = OutboxEntry {
        target: target.clone(),
        position: OutboxPosition { at: 900, written: 800 },
        after: OutboxPosition::START,
        batch: batch.packed(),
    };
    step(&mut bench, &|bench| {
        let relay = Batch::Relay { entry: arrived.clone() };
        bench.topic.execute(bench.now, &ProducerId::new("outbox:source"), relay).unwrap();
    });
    let mut follow_ups = FollowUpBatches::default();
    (0..2).for_each(|_| follow_ups.push(target.clone(), &batch));
    step(&mut bench, &|bench| bench.topic.outbox.write(bench.now, &follow_ups));
    step(&mut bench, &|bench| bench.topic.outbox.remove(&target, bench.now.micros()));
    step(&mut bench, &|bench| {
        let last_seen = bench.sequence("n");
        bench.topic.release(bench.now, &node("n"), Release { last_seen });
    });
    // A dump logs rows whole.
    let mut page = Vec::new();
    let mut cursor = bench.topic.begin_dump();
    assert!(bench.topic.dump(&mut cursor, 100, 10_000, &mut page));
    all.push(page);
    (all, state(&bench.topic))
}

const FIXTURE: &str = include_str!("version-5.hex");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn the_bytes_of_version_5_are_those_of_the_fixture_and_read_as_the_same_state() {
    let (all, expected) = every_kind();
    let written: Vec<String> = all.iter().map(|changes| hex(changes)).collect();
    assert_eq!(super::super::super::changes::CHANGES_VERSION, 5);
    assert_eq!(written.join("\n"), FIXTURE.trim_end(), "the format has changed: write the next version");
    let read: Vec<Vec<u8>> = FIXTURE.lines().map(bytes_of).collect();
    let (page, steps) = read.split_last().unwrap();
    assert_eq!(state(&replayed(steps)), expected);
    assert_eq!(state(&replayed([page])), expected);
}

#[test]
fn the_fixture_has_every_kind_of_change_of_jobs_and_follow_ups() {
    let kinds = FIXTURE.lines().flat_map(|line| ends_of(&bytes_of(line)));
    let kinds: BTreeSet<String> = kinds.map(|(_, kind)| kind).collect();
    let expected =
        ["Broadcast", "Claim", "Claimed", "Gone", "Lease", "Origin", "Outbox", "OutboxGone", "Part", "Position", "Put"];
    assert_eq!(kinds, expected.map(str::to_owned).into());
}

/// Applies bytes that are not changes to a copy of a topic, which must stay sound.
fn damaged(topic: &Topic, bytes: &[u8]) -> bool {
    let mut copy = topic.clone();
    let strict = copy.apply(bytes, Replay::Strict).is_err();
    assert!(copy.jobs.is_consistent());
    let mut copy = topic.clone();
    copy.apply(bytes, Replay::WithinDump).ok();
    assert!(copy.jobs.is_consistent());
    strict
}

#[test]
fn bytes_that_are_cut_short_are_an_error_unless_a_change_ends_there() {
    let (all, _) = every_kind();
    for (n, changes) in all.iter().enumerate() {
        let before = replayed(&all[..n.min(all.len() - 1)]);
        let ends: BTreeSet<_> = ends_of(changes).into_iter().map(|(end, _)| end).collect();
        for cut in 1..changes.len() {
            assert_eq!(damaged(&before, &changes[..cut]), !ends.contains(&cut), "change {n} cut at {cut}");
        }
    }
}

#[test]
fn no_byte_that_is_flipped_or_made_up_makes_a_replay_panic_or_a_topic_unsound() {
    let (all, _) = every_kind();
    for (n, changes) in all.iter().enumerate() {
        let before = replayed(&all[..n.min(all.len() - 1)]);
        for bit in 0..changes.len() * 8 {
            let mut flipped = changes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            damaged(&before, &flipped);
        }
    }
    let topic = replayed(&all[..all.len() - 1]);
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as u8
    };
    for _ in 0..20_000 {
        let kind = next() % 20;
        let bytes: Vec<u8> = std::iter::once(kind).chain((0..next() % 40).map(|_| next() % 10)).collect();
        damaged(&topic, &bytes);
    }
}

#[test]
fn the_error_of_damaged_changes_says_where_and_a_length_that_is_a_lie_allocates_nothing() {
    let said = |bytes: &[u8]| Topic::default().apply(bytes, Replay::Strict).unwrap_err().to_string();
    let lie = [1, 1, b'a', 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F];
    assert_eq!(said(&lie), "the changes are damaged at byte 0 of 16: they end too early");
    assert_eq!(said(&[0, 5, 0x7F, 0, 0]), "the changes are damaged at byte 2 of 5: the bytes mean nothing");
}

#[test]
fn the_changes_of_a_large_step_are_cut_into_parts_of_whole_rows() {
    let mut bench = logged();
    let large = |n: u64, byte: &str| NewJob {
        record: record(&Metadata::default(), &byte.repeat(256 << 10)),
        ..replacing(&n.to_string(), "")
    };
    let mut copy = Topic::default();
    let mut apply = |bench: &mut Bench| {
        let (mut bytes, mut from) = (Vec::new(), 0);
        let cuts = bench.topic.take_changes(&mut bytes);
        let ends: Vec<_> = cuts.into_iter().chain([bytes.len()]).collect();
        for end in &ends {
            assert!((1..(1 << 20) + (257 << 10)).contains(&(end - from)), "a part of {} bytes", end - from);
            copy.apply(&bytes[from..*end], Replay::Strict).unwrap();
            from = *end;
        }
        // Not `state`: it writes megabytes as text.
        for (id, slot) in bench.topic.jobs.iter() {
            let copied = copy.jobs.get(id).expect("the row is in a part");
            let is_same = copied.record == slot.record && format!("{:?}", copied.place) == format!("{:?}", slot.place);
            assert!(is_same, "{id}");
        }
        ends.len()
    };
    bench.add_numbered(1, (0..100).map(|n| large(n, "x")).collect());
    assert_eq!(apply(&mut bench), 25, "the step has 25 MiB");
    while !bench.transfer("n", 100).claims.is_empty() {
        assert_eq!(apply(&mut bench), 1, "claims have few bytes");
    }
    // A dump goes on, so that a step of few bytes logs the rows whole.
    bench.topic.begin_dump();
    let runs: Vec<_> = bench.topic.jobs.iter().filter_map(|(id, slot)| Some((id.clone(), slot.run()?.token))).collect();
    let outcome = |(id, token)| Outcome { id, token, change: Change::Retry(Duration::ZERO), metadata: None };
    let outcomes: Vec<_> = runs.into_iter().map(outcome).collect();
    assert_eq!(outcomes.len(), 100);
    let request = Settle { last_seen: bench.sequence("n"), lease: LEASE, bytes: DEFAULT_BYTES, outcomes };
    bench.topic.settle(bench.now, &node("n"), request).unwrap();
    assert_eq!(apply(&mut bench), 25);
}
