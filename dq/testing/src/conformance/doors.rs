//! What no door lets in: each kind of job over a limit of the format by adds, job sets, follow-ups, changes, imports and
//! relays, and numbers that are ahead of the store's clock (rules 5, 9, 18, 27).

use std::sync::Arc;
use std::time::Duration;

use super::copies::{copy, copy_with, import_of};
use super::producer::{job, with_metadata};
use super::topic::{Topic, id, ms};
use dq::job::{Codec, Delivery, Fence, GroupName, JobId, Metadata, Record, State, limits};
use dq::schedule::{Definition, JobOfTick, OnMissed, Origin, Overlap, Ticks, Times};
use dq::store::step::{Change, Ending};
use dq::store::{
    BatchAnswer, ChangeKind, Due, FollowUpBatch, FollowUpBatches, FollowUpOutcome, Import, JobChange, JobCopy,
    MAX_AHEAD, Membership, NewJob, OnDead, OnDuplicate, OutboxEntry, OutboxPosition, SetChange, SetVerb, StoreError,
};
use dq::time::Timestamp;

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Jobs of each kind that no door lets in, and whether that is in the record or the id.
fn over_limits() -> Vec<(NewJob, bool)> {
    let header = |text: &str| Metadata { headers: vec![("h".into(), text.into())], ..Metadata::default() };
    let of_record = |name: &str, record: Record| (NewJob { record, ..job(name) }, true);
    let payload = |bytes: usize| Record::new(&Metadata::default(), Codec::Json, &vec![b'1'; bytes]);
    let in_group =
        Metadata { group: GroupName::new("g").ok(), group_order: 9_999_999_999_999_999, ..Metadata::default() };
    let long_name = id(&format!("dq:schedule:{}", "x".repeat(244)));
    let unusual = |name: &str, change: fn(&mut NewJob)| {
        let mut job = job(name);
        change(&mut job);
        (job, false)
    };
    vec![
        of_record("cr", with_metadata("cr", &header("a\rb")).record),
        of_record("lf", with_metadata("lf", &header("a\nb")).record),
        of_record("nul", with_metadata("nul", &header("a\0b")).record),
        of_record("esc", with_metadata("esc", &header("a\x1b[2Jb")).record),
        of_record("payload", payload(limits::PAYLOAD.most as usize + 1)),
        of_record("40-mib", payload(40 << 20)),
        of_record("headers", with_long_header(65_000)),
        of_record("order", with_metadata("order", &in_group).record),
        (NewJob { record: every_millisecond(), ..job("dq:schedule:each-ms") }, true),
        (NewJob { id: long_name, ..job("name") }, true),
        unusual("after", |job| job.due = Due::After(8_900 * YEAR)),
        unusual("at", |job| job.due = Due::At(Timestamp::from_millis(limits::DUE.most + 1))),
        unusual("expires", |job| job.expires_after = Some(8_900 * YEAR)),
        unusual("unique", |job| job.unique_for = Some(Duration::from_secs(1 << 60))),
        unusual("extends", |job| job.on_duplicate = OnDuplicate::Extend { at_most: Some(8_900 * YEAR) }),
    ]
}

/// A record as another program might write it: no encoder of dq does.
fn with_long_header(length: u16) -> Record {
    // A list of six fields, of which the last one has two texts.
    let mut bytes = b"\x96\0\xa0\0\0\0\x92\xa1h\xda".to_vec();
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.resize(bytes.len() + usize::from(length), b'x');
    bytes.extend_from_slice(b"J1");
    Record::from_bytes(bytes.into())
}

fn every_millisecond() -> Record {
    let record = Record::new(&Metadata::default(), Codec::Json, b"1");
    Definition {
        ticks: Ticks { times: Times::Every(ms(1)), start: None, end: None },
        on_missed: OnMissed::All,
        overlap: Overlap::Allow,
        jitter: Duration::ZERO,
        job: JobOfTick { record, expires_after: None, deliver: Delivery::Queue },
        tick: Timestamp::from_millis(1_000),
        last: None,
        origin: Origin::Call,
        made: false,
        pause: None,
        gap: None,
    }
    .to_record(0)
}

fn is_refused(what: &JobId, answer: Result<(), StoreError>) {
    let error = answer.expect_err(what.as_str());
    assert!(matches!(error, StoreError::OverLimit { .. }) && error.nothing_done(), "{what}: {error}");
}

/// A follow-up entry for a topic, as a source or an import has it.
fn entry(target: &Topic, (position, after): (u64, u64), batch: &FollowUpBatch) -> OutboxEntry {
    let mut follow_ups = FollowUpBatches::default();
    follow_ups.push(target.key.topic.clone(), batch);
    let (target, batch) = follow_ups.parts()[0].clone();
    let [position, after] = [position, after].map(OutboxPosition::clock);
    OutboxEntry { target, position, after, batch }
}

/// How many jobs the topic holds.
async fn held(t: &Topic) -> usize {
    let counts = t.counts().await;
    counts.delayed + counts.running + counts.unacked + counts.dead + counts.done + counts.broadcasts
}

/// No door lets in a job over a limit: a batch with one is refused as a whole (rule 5).
pub async fn job_over_a_limit_enters_by_no_door(t: &Topic) {
    let claim = t.running("n", "there").await;
    t.add_later("waits", ms(60_000)).await;
    let waits = t.stored("waits").await;
    for (bad, is_of_record) in over_limits() {
        let (topic, what) = (t.key.topic.clone(), bad.id.clone());
        is_refused(&what, t.producer().add(t.numbered(vec![job("a"), bad.clone()])).await.map(drop));
        for change in [
            SetVerb::Add(OnDead::Count, vec![(topic.clone(), job("a")), (topic.clone(), bad.clone())]),
            SetVerb::Close(Box::new(bad.clone())),
        ] {
            let change = SetChange { set: id("s"), what: change };
            is_refused(&what, t.producer_named("set").job_set(1, change).await.map(drop));
        }
        let mut follow_ups = FollowUpBatches::default();
        follow_ups.push(topic, &FollowUpBatch::Add(vec![job("a"), bad.clone()]));
        let settle = t.settle_of("n", &claim, Change::Then(Ending::Ack, Arc::new(follow_ups)));
        is_refused(&what, t.link("n").ask(settle.into()).await.map(drop));
        if !is_of_record {
            continue;
        }
        // Only the id of a schedule makes a record the definition of one.
        let changed = if what.as_str().starts_with("dq:schedule:") { what.clone() } else { id("waits") };
        let change = JobChange::new(changed, ChangeKind::Update(bad.record.clone()));
        is_refused(&what, t.producer().change(t.numbered(vec![change])).await.map(drop));
        let good = copy("a", State::Dead, t.now());
        let copies = vec![good.clone(), JobCopy { id: bad.id, record: bad.record, ..good }];
        is_refused(&what, t.try_import(import_of(copies, OnDuplicate::Keep)).await.map(drop));
    }
    assert_eq!((t.state("a").await, t.stored("waits").await), (None, waits));
    t.delete("waits").await;
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(held(t).await, 0);
    assert_eq!(t.relay_of("n", &[], &[]).await.waiting, 0);
}

/// The last job of a set has room for the headers with the counts (rules 5, 18).
pub async fn last_job_of_a_set_has_room_for_its_counts(t: &Topic) {
    let with_header = |size: u64| {
        let headers = vec![("h".into(), "x".repeat(size as usize - 5))];
        SetVerb::Close(Box::new(with_metadata("then", &Metadata { headers, ..Metadata::default() })))
    };
    let counts = ["dq-set-acked", "dq-set-dead", "dq-set-left"].map(|name| 4 + name.len() as u64 + 7);
    let most = limits::HEADERS.most - counts.iter().sum::<u64>();
    let close = async |number, size| {
        let change = SetChange { set: id("s"), what: with_header(size) };
        t.producer_named("set").job_set(number, change).await.map(drop)
    };
    is_refused(&id("then"), close(1, most + 1).await);
    close(1, most).await.expect("there is room");
    let entry = t.relay_of("n", &[], &[]).await.entries.remove(0);
    assert_eq!(t.gets(t, &entry).await.expect("relay is answered"), BatchAnswer::Done(vec![FollowUpOutcome::Done]));
    assert_eq!(t.metadata("then").await.headers.len(), 4);
}

/// A target refuses a job over a limit for good, takes the others of the entry, and the next entries (rules 5, 18).
pub async fn job_over_a_limit_of_an_entry_is_passed_over(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    let (mut position, mut after) = (t.micros(), 0);
    for (n, (bad, _)) in over_limits().into_iter().enumerate() {
        let jobs = vec![job(&format!("before-{n}")), bad.clone(), job(&format!("behind-{n}"))];
        let entry = entry(&target, (position, after), &FollowUpBatch::Add(jobs));
        let BatchAnswer::Done(outcomes) = target.gets(t, &entry).await.expect("relay is answered") else {
            panic!("{}: it has not arrived before", bad.id)
        };
        assert_eq!((&outcomes[0], &outcomes[2]), (&FollowUpOutcome::Done, &FollowUpOutcome::Done), "{}", bad.id);
        let FollowUpOutcome::Refused { id, cause } = &outcomes[1] else { panic!("{} came in", bad.id) };
        let says = ["; the limit is ", "; the least is "].into_iter().any(|limit| cause.contains(limit));
        assert!(*id == bad.id && says, "{id}: {cause}");
        target.gets(t, &entry).await.expect("a repeat is answered");
        (position, after) = (position + 1, position);
    }
    let alone = FollowUpBatch::Add(vec![over_limits().remove(0).0]);
    let refused = target.gets(t, &entry(&target, (position, after), &alone)).await.expect("relay is answered");
    assert!(
        matches!(refused, BatchAnswer::Done(outcomes) if matches!(outcomes[..], [FollowUpOutcome::Refused { .. }]))
    );
    assert_eq!(held(&target).await, 2 * over_limits().len());
    target.close().await;
}

/// A set is told that a member which no store can take has left, so it ends (rules 5, 18).
pub async fn member_over_a_limit_has_left(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    let membership = || Membership { home: t.key.topic.clone(), set: id("s"), on_dead: OnDead::Count };
    let bad = over_limits().remove(0).0;
    // No store can write an expiry into it.
    let record = Record::from_bytes(bytes::Bytes::from_static(b"what?"));
    let unreadable = NewJob { record, expires_after: Some(ms(5)), ..job("unreadable") };
    let members = vec![job("sound"), NewJob { id: id("bad"), ..bad }, unreadable];
    let join = ["sound", "bad", "unreadable"].map(|name| (target.key.topic.clone(), job(name))).to_vec();
    let change = SetChange { set: id("s"), what: SetVerb::Add(OnDead::Count, join) };
    t.producer_named("set").job_set(1, change).await.expect("job_set is answered");
    let arrives = t.relay_of("n", &[], &[]).await.entries.remove(0);
    // What a program that knows no limit would have sent.
    let altered = entry(&target, (arrives.position.at, 0), &FollowUpBatch::Members(membership(), members));
    let outcomes = target.gets(t, &altered).await.expect("relay is answered");
    let BatchAnswer::Done(outcomes) = outcomes else { panic!("it has not arrived before") };
    assert!(
        matches!(&outcomes[..], [FollowUpOutcome::Done, FollowUpOutcome::Refused { id: bad, .. }, FollowUpOutcome::Refused { .. }] if bad.as_str() == "bad"),
        "{outcomes:?}"
    );
    let told = target.relay_of("m", &[], &[]).await.entries.remove(0);
    let FollowUpBatch::Set(SetChange { what: SetVerb::End(_, ends), .. }) = told.batch().expect("it is readable")
    else {
        panic!("{told:?}")
    };
    let mut left: Vec<_> = ends.iter().map(|(id, _)| id.as_str()).collect();
    left.sort_unstable();
    assert_eq!(left, ["bad", "unreadable"]);
    target.close().await;
}

/// A position over its limit is refused, and the target knows none then (rules 5, 18).
pub async fn position_over_its_limit_is_refused(t: &Topic) {
    let target = t.beside("conformance", "target").await;
    let add = FollowUpBatch::Add(vec![job("a")]);
    for position in [0, limits::POSITION.last() + 1, i64::MAX as u64, u64::MAX] {
        let refused = target.gets(t, &entry(&target, (position, 0), &add)).await.map(drop);
        is_refused(&id("a"), refused);
        let arrived = target.store.arrived(&target.key, &t.key.topic).await.expect("arrived is answered");
        assert_eq!((arrived, target.state("a").await), (OutboxPosition::START, None), "{position}");
    }
    target.close().await;
}

/// An import of a fence or an order that is more than a day ahead of the store's clock is refused, and the error names both (rules 9, 27).
pub async fn number_ahead_of_the_clock_is_refused(t: &Topic) {
    let in_group = |group_order: u64| {
        let metadata = Metadata { group: GroupName::new("g").ok(), group_order, ..Metadata::default() };
        copy_with("a", State::Delayed, t.in_ms(60_000), &metadata)
    };
    let import =
        |fence: u64, order: u64| Import { fence: Fence(fence), ..import_of(vec![in_group(order)], OnDuplicate::Keep) };
    let clock = t.micros();
    for (fence, order, what) in [(clock + MAX_AHEAD + 1, 0, limits::FENCE), (0, clock + MAX_AHEAD + 1, limits::ORDER)] {
        let refused = t.try_import(import(fence, order)).await.expect_err("it is ahead");
        assert!(refused.nothing_done(), "{refused}");
        let StoreError::AheadOfClock { what: named, number, clock: by } = refused else { panic!("{refused}") };
        assert_eq!((named, number, by), (what.what, clock + MAX_AHEAD + 1, clock));
        assert_eq!(t.state("a").await, None);
    }
    t.import(import(clock + MAX_AHEAD, clock + MAX_AHEAD)).await;
    assert_eq!(t.state("a").await, Some(State::Delayed));
    assert_eq!(t.running("n", "b").await.token.fence, Fence(clock + MAX_AHEAD + 1));
}
