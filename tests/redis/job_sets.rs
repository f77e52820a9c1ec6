//! Job sets: how many members one takes, and what becomes of members that another program has damaged or removed.

use dq::inspect::FindingCode;
use dq::prelude::*;
use dq::provider::{OnDead, SetCounts};
use dq::store::{
    BatchAnswer, Due, JobSetSummary, NewJob, SetChange, SetOutcome, SetRefusal, SetVerb, SetsRequest, Store, relay_of,
};
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};

use super::doctor::{codes, examined, found, inspector, repair};
use super::topic::{Topic, id, job, provider};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "row")]
struct Row {
    #[job(id)]
    row: u64,
}

const MINUTE: std::time::Duration = std::time::Duration::from_secs(60);

/// A set `s` in the topic `t`, and a topic of members, which no node relays.
async fn topics() -> (RedisServer, Topic, Topic) {
    let (server, home) = Topic::entered().await;
    let rows = Topic::named(&server.url(), "row");
    rows.reconcile().await;
    (server, home, rows)
}

/// Adds members that are due in a minute, so that they wait in `delayed`.
async fn join(home: &Topic, number: u64, members: &[(&Topic, &str)]) -> SetOutcome {
    let later = |name: &str| NewJob { due: Due::After(MINUTE), ..job(name) };
    let members = members.iter().map(|(topic, name)| (topic.key.topic.clone(), later(name))).collect();
    let change = SetChange { set: id("s"), what: SetVerb::Add(OnDead::Count, members) };
    match home.producer.job_set(number, change).await.unwrap() {
        BatchAnswer::Done(mut outcomes) => outcomes.remove(0),
        BatchAnswer::Late => panic!("the call numbers increase"),
    }
}

/// Brings what one topic has for another; what has arrived before does nothing.
async fn relay(from: &Topic, to: &Topic) {
    let producer = to.store.producer(&to.key, &relay_of(&from.key.topic));
    for entry in from.store.follow_ups(&from.key, Some((&to.key.topic, 0)), 10).await.unwrap() {
        producer.relay(entry).await.unwrap();
    }
}

async fn seen(home: &Topic) -> JobSetSummary {
    home.store.job_sets(&home.key, &SetsRequest::One(id("s"), 10)).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_set_takes_no_more_members_than_it_may_have() {
    let (server, home, rows) = topics().await;
    server.command(&["HSET", "dq:{shop:t}:sets", "s", "o,999999,0,0,0,1,0"]);
    server.command(&["ZADD", "dq:{shop:t}:set-order", "0", "s"]);
    let too_many = SetOutcome::Refused(SetRefusal::TooManyMembers);
    assert_eq!(join(&home, 1, &[(&rows, "a"), (&rows, "b")]).await, too_many);
    for number in [2, 3] {
        let outcome = join(&home, number, &[(&rows, "a")]).await;
        assert!(matches!(&outcome, SetOutcome::Done(seen) if seen.counts.members == 1_000_000), "{outcome:?}");
    }
    assert_eq!(join(&home, 4, &[(&rows, "b")]).await, too_many);
}

/// One member lost its place, another one its record is rubbish: the repairs make both DEAD, and tell the set.
#[tokio::test]
async fn a_member_that_a_repair_makes_dead_has_ended() {
    let (server, home, rows) = topics().await;
    join(&home, 1, &[(&rows, "lost"), (&rows, "rubbish"), (&rows, "sound")]).await;
    relay(&home, &rows).await;
    server.command(&["ZREM", "dq:{shop:row}:delayed", "lost"]);
    server.command(&["HSET", "dq:{shop:row}:jobs", "rubbish", "rubbish"]);
    let mut doctor = inspector(&server).doctor(Some("row")).unwrap();
    let wrong = [(FindingCode::JobWithoutPlace, "lost"), (FindingCode::MangledRecord, "rubbish")];
    assert_eq!(codes(&examined(&mut doctor).await), wrong);
    assert_eq!(repair(&mut doctor).await, 2);
    relay(&rows, &home).await;
    assert_eq!(seen(&home).await.counts, SetCounts { members: 3, acked: 0, dead: 2, left: 0 });
}

/// Of four members one is there, the add of another one is on its way, and so is the end of a third.
#[tokio::test]
async fn a_set_no_longer_waits_for_a_missing_member_after_a_repair() {
    let (server, home, rows) = topics().await;
    let (mails, bills) = (Topic::named(&server.url(), "mail"), Topic::named(&server.url(), "bill"));
    join(&home, 1, &[(&rows, "gone"), (&rows, "there"), (&bills, "ended")]).await;
    relay(&home, &rows).await;
    relay(&home, &bills).await;
    server.command(&["DEL", "dq:{shop:t}:outbox"]); // a relay would have removed what has arrived
    join(&home, 2, &[(&mails, "coming")]).await;
    bills.command(dq::store::CommandKind::Delete, "ended").await;
    for key in ["delayed", "jobs"] {
        let remove = if key == "jobs" { "HDEL" } else { "ZREM" };
        server.command(&[remove, &format!("dq:{{shop:row}}:{key}"), "gone"]);
    }
    server.command(&["HDEL", "dq:{shop:row}:members", "gone"]);
    assert_eq!(found(&server).await, [], "it has not waited for long");
    let row = server.command(&["HGET", "dq:{shop:t}:sets", "s"]);
    let since = seen(&home).await.since.as_millis();
    let earlier = row.lines().last().unwrap().replace(&since.to_string(), &(since - 61_000).to_string());
    server.command(&["HSET", "dq:{shop:t}:sets", "s", &earlier]);
    let mut doctor = inspector(&server).doctor(None).unwrap();
    let findings = examined(&mut doctor).await;
    assert_eq!(codes(&findings), [(FindingCode::MemberMissing, "s")]);
    assert!(findings[0].text.contains("job `gone` of topic row, which does not exist"), "{}", findings[0].text);
    assert_eq!(repair(&mut doctor).await, 1);
    let left = seen(&home).await;
    let waits_for: Vec<_> = left.waits_for.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!((left.counts.left, waits_for), (1, vec!["ended", "coming", "there"]));
    assert_eq!(found(&server).await, []);
}

/// The topic remembers the answers for each producer for an hour.
#[tokio::test]
async fn calls_of_a_program_share_their_producers() {
    let (server, _home, _rows) = topics().await;
    let provider = provider(&server.url());
    for row in 0..20 {
        provider.job_set::<Row>(format!("s{row}")).add(Row { row }).await.unwrap();
    }
    assert_eq!(server.command(&["KEYS", "dq:{shop:row}:calls:*"]), "*1", "an array of one");
}
