//! The doctor: it finds what other programs damaged, repairs it, and loses no job.

use std::collections::BTreeSet;
use std::sync::Arc;

use dq::config::NodeSettings;
use dq::inspect::{Doctor, Finding, FindingCode, Inspector};
use dq::job::{Cause, JobId, Metadata, Priority, State};
use dq::store::redis::RedisStore;
use dq::store::step::{Change, DEFAULT_BYTES, Scan};
use dq::store::{CommandKind, Due, NewJob, OnDuplicate, PageRequest, Store, Stored};
use dq_tests::redis::RedisServer;

use super::topic::{Topic, id, job, provider, provider_on};

const HOUR: std::time::Duration = std::time::Duration::from_secs(3_600);

/// What is damaged, and what becomes of it.
struct Corruption {
    code: FindingCode,
    /// The id of the finding.
    id: &'static str,
    /// The commands of another program.
    commands: &'static [&'static [&'static str]],
    /// What the text of the finding has.
    says: &'static str,
    /// A job and its state after the repair.
    after: Option<(&'static str, State)>,
}

const fn finds(code: FindingCode, id: &'static str, commands: &'static [&'static [&'static str]]) -> Corruption {
    Corruption { code, id, commands, says: "", after: None }
}

/// A row that a hand has written, so that it does not fit a record.
const fn foreign(id: &'static str, says: &'static str, commands: &'static [&'static [&'static str]]) -> Corruption {
    Corruption { says, ..finds(FindingCode::ForeignChange, id, commands) }
}

impl Corruption {
    const fn leaves(self, job: &'static str, state: State) -> Self {
        Self { after: Some((job, state)), ..self }
    }
}

const EVAL_NEAR_TOO: &str =
    "redis.call('HSET', KEYS[1], 'far', string.sub(redis.call('HGET', KEYS[2], 'far'), 7)) return 1";
const EVAL_NOT_JSON: &str =
    "redis.call('HSET', KEYS[1], 'b', string.sub(redis.call('HGET', KEYS[1], 'b'), 1, -2)) return 1";

const EVAL_ENTRY: &str =
    "return redis.call('ZREM', KEYS[1], redis.call('ZRANGE', KEYS[1], '[one\\0w', '(one\\0x', 'BYLEX')[2])";

const CORRUPTIONS: [Corruption; 14] = [
    finds(FindingCode::FenceTooLarge, "fence", &[&["HSET", "dq:{shop:t}:meta", "fence", "9007199254740992"]]),
    finds(FindingCode::FenceTooLarge, "fence", &[&["HSET", "dq:{shop:t}:meta", "fence", "a fence"]]),
    finds(FindingCode::JobWithoutPlace, "b", &[&["ZREM", "dq:{shop:t}:delayed", "b"]]).leaves("b", State::Dead),
    finds(FindingCode::RowsWithoutLease, "n", &[&["DEL", "dq:{shop:t}:leases"]]).leaves("runs", State::Running),
    finds(FindingCode::LeaseWithoutRows, "idle", &[&["ZADD", "dq:{shop:t}:leases", "5", "idle"]]),
    finds(FindingCode::MangledRecord, "d", &[&["HSET", "dq:{shop:t}:jobs", "d", "rubbish"]]).leaves("d", State::Dead),
    finds(FindingCode::NotJson, "b", &[&["EVAL", EVAL_NOT_JSON, "1", "dq:{shop:t}:jobs"]]).leaves("b", State::Dead),
    finds(FindingCode::WrongType, "dq:{shop:t}:crashes", &[&["SET", "dq:{shop:t}:crashes", "mine"]])
        .leaves("b", State::Delayed),
    finds(FindingCode::FarWithoutLeaf, "far", &[&["DEL", "dq:{shop:t}:far-leaves"]]).leaves("far", State::Delayed),
    finds(FindingCode::ScheduleNotListed, "dq:schedule:nightly", &[&["DEL", "dq:{shop:t}:schedules"]])
        .leaves("dq:schedule:nightly", State::Delayed),
    finds(FindingCode::NotInGroup, "second", &[&["EVAL", EVAL_ENTRY, "1", "dq:{shop:t}:grouped"]])
        .leaves("second", State::Delayed),
    finds(FindingCode::NoExpiry, "dq:{shop:t}:sequence:n", &[&["PERSIST", "dq:{shop:t}:sequence:n"]]),
    finds(FindingCode::NoExpiry, "dq:{shop:t}:taken", &[&["ZADD", "dq:{shop:t}:taken", "1", "a"]]),
    finds(FindingCode::TopicNotListed, "t", &[&["DEL", "dq:{shop}:topics"]]),
];

/// What only a hand can do. What an earlier job of an id left must not take hold of the far job, which was added since.
const FOREIGN: [Corruption; 10] = [
    foreign("ghost", "record is gone is still in: `unacked`", &[&["ZADD", "dq:{shop:t}:unacked", "5", "ghost"]]),
    foreign(
        "ghost-row",
        "record is gone is still in: `running` of node n",
        &[&["HSET", "dq:{shop:t}:running:n", "ghost-row", "1:2"]],
    ),
    foreign("ghost-entry", "still in: `crashes`", &[&["HSET", "dq:{shop:t}:crashes", "ghost-entry", "3"]]),
    foreign("ghost-event", "still in: `broadcasts`", &[&["ZADD", "dq:{shop:t}:broadcasts", "9e15", "ghost-event"]]),
    foreign("c", "in several places: `delayed`, `dead`", &[&["ZADD", "dq:{shop:t}:dead", "5", "c"]])
        .leaves("c", State::Delayed),
    foreign(
        "runs",
        "in several places: `delayed`, `running`, `running`",
        &[
            &["ZADD", "dq:{shop:t}:delayed", "5", "runs"],
            &["HSET", "dq:{shop:t}:running:m", "runs", "1:2"],
            &["ZADD", "dq:{shop:t}:leases", "5", "m"],
        ],
    )
    .leaves("runs", State::Running),
    foreign(
        "jobs/far",
        "bytes: the job has another record, in `jobs` or in `far-jobs`",
        &[&["EVAL", EVAL_NEAR_TOO, "2", "dq:{shop:t}:jobs", "dq:{shop:t}:far-jobs"]],
    )
    .leaves("far", State::Delayed),
    foreign("jobs/far", "`jobs` has a row of 17 bytes", &[&["HSET", "dq:{shop:t}:jobs", "far", "another record"]])
        .leaves("far", State::Delayed),
    foreign(
        "far",
        "record is gone is still in: `metadata`, `pending`, `crashes`",
        &[
            &["HSET", "dq:{shop:t}:metadata", "far", "of another"],
            &["HSET", "dq:{shop:t}:pending", "far", "d:"],
            &["HSET", "dq:{shop:t}:crashes", "far", "2"],
        ],
    )
    .leaves("far", State::Delayed),
    foreign("far", "still in: `running`", &[&["HSET", "dq:{shop:t}:running:n", "far", "1:2"]])
        .leaves("far", State::Delayed),
];

/// What the notes of a topic are about, and how they are damaged.
const NOTES: [(&str, &[&str]); 5] = [
    ("protocol", &["HDEL", "dq:{shop:t}:meta", "protocol"]),
    ("retains", &["HDEL", "dq:{shop:t}:meta", "retains"]),
    ("priorities", &["HDEL", "dq:{shop:t}:meta", "priorities"]),
    ("groups", &["HDEL", "dq:{shop:t}:meta", "groups"]),
    ("largest", &["HSET", "dq:{shop:t}:meta", "largest", "1"]),
];

/// The jobs of the sound topic.
const JOBS: [&str; 12] =
    ["b", "c", "d", "dead", "done", "dq:schedule:nightly", "far", "first", "parked", "replaced", "runs", "second"];

pub fn inspector(server: &RedisServer) -> Inspector {
    provider(&server.url()).inspect()
}

/// A topic with jobs in every state, a schedule, broadcasts, a far job, a group of two, and a replacement that waits; node `n` runs two jobs.
pub async fn sound() -> (RedisServer, Topic) {
    let (server, topic) = Topic::entered().await;
    let record = |metadata: &Metadata| dq::job::Record::new(metadata, dq::job::Codec::Json, b"{}");
    let retained = Metadata { retain: HOUR, ..Metadata::default() };
    topic
        .add(vec![
            job("runs"),
            job("replaced"),
            job("parked"),
            job("dead"),
            NewJob { record: record(&retained), ..job("done") },
        ])
        .await;
    let claims = topic.claims().await;
    let of = |name: &str| claims.iter().find(|claim| claim.id == id(name)).unwrap().clone();
    for (name, change) in [("parked", Change::Park), ("dead", Change::Dead), ("done", Change::Ack)] {
        topic.try_settle(&[of(name)], change).await.unwrap();
    }
    topic.try_add(vec![NewJob { on_duplicate: OnDuplicate::Replace, ..job("replaced") }]).await.unwrap();
    let wide = NewJob { deliver: dq::job::Delivery::Both, due: Due::After(HOUR / 60), ..job("b") };
    let later = |name: &str| NewJob { due: Due::After(HOUR / 60), ..job(name) };
    let high = Metadata { priority: Priority::High, ..Metadata::default() };
    let group = Metadata { group: Some(dq::job::GroupName::new("one").unwrap()), ..Metadata::default() };
    topic.add(["first", "second"].map(|name| NewJob { record: record(&group), ..later(name) }).to_vec()).await;
    let urgent = NewJob { record: record(&high), ..later("c") };
    topic.add(vec![wide, urgent, later("d"), NewJob { due: Due::After(2 * HOUR), ..job("far") }]).await;
    // It is near, and not due while a test runs.
    let start = std::time::SystemTime::now() + HOUR / 15;
    let schedule =
        provider(&server.url()).topic("t").unwrap().add_schedule_json("nightly", "{}").every("4m").start_at(start);
    schedule.await.unwrap();
    (server, topic)
}

/// Examines everything, and returns what concerns topics.
pub async fn examined(doctor: &mut Doctor) -> Vec<Finding> {
    while doctor.step().await.unwrap().is_some() {}
    doctor.findings().iter().filter(|finding| finding.topic.is_some()).cloned().collect()
}

pub async fn found(server: &RedisServer) -> Vec<Finding> {
    examined(&mut inspector(server).doctor(None).unwrap()).await
}

/// Repairs all that can be repaired, and returns how much was.
pub async fn repair(doctor: &mut Doctor) -> usize {
    let mut done = 0;
    while let Some(said) = doctor.next_repair().cloned() {
        let repaired = doctor.repair().await.unwrap().unwrap();
        assert_eq!(repaired.finding, said, "it says before what it does");
        done += usize::from(repaired.done);
    }
    done
}

pub fn codes(findings: &[Finding]) -> Vec<(FindingCode, &str)> {
    findings.iter().map(|finding| (finding.code, finding.id.as_deref().unwrap_or_default())).collect()
}

pub async fn stored(topic: &Topic, name: &str) -> Option<Stored> {
    topic.store.get(&topic.key, &[JobId::new(name).unwrap()]).await.unwrap().remove(0)
}

/// Checks that the audit counts as many records as places, that all jobs are there, and that a DEAD one says why.
pub async fn is_whole(topic: &Topic) {
    let scanned = topic.link.step(Scan).await.unwrap();
    assert_eq!(scanned.records, scanned.places);
    let mut all = BTreeSet::new();
    for state in State::ALL {
        let request = PageRequest { state, after: None, limit: 100, bytes: DEFAULT_BYTES };
        for job in topic.store.page(&topic.key, request).await.unwrap().jobs {
            let cause = job.record.metadata().unwrap().cause;
            assert!(state != State::Dead || job.id == id("dead") || cause.is_some(), "{job:?}");
            assert!(all.insert(job.id.to_string()), "{} is in two states", job.id);
        }
    }
    assert_eq!(all.iter().map(String::as_str).collect::<Vec<_>>(), JOBS);
}

/// What was set aside of a key of the topic under this field.
pub fn set_aside(server: &RedisServer, key: &str, field: &str) -> String {
    let find = "return redis.call('HGET', redis.call('KEYS', ARGV[1])[1], ARGV[2])";
    server.command(&["EVAL", find, "0", &format!("dq:set-aside:*:{key}"), field])
}

#[tokio::test]
async fn a_sound_topic_gives_no_finding() {
    let (server, topic) = sound().await;
    assert_eq!(found(&server).await, []);
    is_whole(&topic).await;
    // A node that died, and jobs that came back from it.
    assert_eq!(topic.reclaim(&server, "n", 3).await, 2);
    assert!(topic.command(CommandKind::Requeue, "dead").await.changed);
    topic.command(CommandKind::Delete, "far").await;
    let findings = found(&server).await;
    assert!(findings.iter().all(|finding| finding.code == FindingCode::NoListener), "{findings:?}");
}

#[tokio::test]
async fn each_corruption_is_found_by_its_code_and_repaired_without_the_loss_of_a_job() {
    for corruption in CORRUPTIONS.into_iter().chain(FOREIGN) {
        let (server, topic) = sound().await;
        for command in corruption.commands {
            server.command(command);
        }
        let mut doctor = inspector(&server).doctor(None).unwrap();
        let findings = examined(&mut doctor).await;
        let wanted = (corruption.code, corruption.id);
        assert_eq!(codes(&findings), [wanted], "{findings:#?}");
        assert!(findings[0].text.contains(corruption.says), "{}", findings[0].text);
        assert!(repair(&mut doctor).await > 0, "{wanted:?}");
        assert_eq!(found(&server).await, [], "{wanted:?}");
        is_whole(&topic).await;
        if let Some((key, field)) = corruption.id.split_once('/') {
            assert_ne!(set_aside(&server, key, field), "", "{wanted:?}: what goes is kept");
        }
        if let Some((name, state)) = corruption.after {
            let job = stored(&topic, name).await.unwrap();
            assert_eq!(job.place.state(), state, "{wanted:?}");
            for key in ["metadata", "pending", "crashes", "running:n"].iter().filter(|_| state == State::Delayed) {
                let field = server.command(&["HEXISTS", &format!("dq:{{shop:t}}:{key}"), name]);
                assert_eq!(field, ":0", "{wanted:?}: {key}");
            }
        }
    }
}

#[tokio::test]
async fn what_a_topic_notes_of_its_jobs_is_written_again() {
    for (name, command) in NOTES {
        let (server, topic) = sound().await;
        let before = server.command(&["HGET", "dq:{shop:t}:meta", name]);
        server.command(command);
        let mut doctor = inspector(&server).doctor(Some("t")).unwrap();
        let findings = examined(&mut doctor).await;
        assert_eq!(codes(&findings), [(FindingCode::NotesBehind, name)]);
        assert_eq!(repair(&mut doctor).await, 1);
        assert_eq!(found(&server).await, []);
        let after = server.command(&["HGET", "dq:{shop:t}:meta", name]);
        assert!(after == before || ["groups", "largest"].contains(&name), "{name}: {before} {after}");
        is_whole(&topic).await;
    }
}

/// The corruptions that need a topic of their own: one removes all leases, two are about what others damage, and one keeps the topic
/// from being examined.
const APART: [FindingCode; 3] = [FindingCode::RowsWithoutLease, FindingCode::WrongType, FindingCode::JobWithoutPlace];

#[tokio::test]
async fn corruptions_beside_each_other_are_all_repaired_and_every_job_runs_or_says_why_not() {
    let (server, topic) = sound().await;
    let together: Vec<_> =
        CORRUPTIONS.iter().chain(&FOREIGN[..7]).filter(|corruption| !APART.contains(&corruption.code)).collect();
    for command in together.iter().flat_map(|corruption| corruption.commands) {
        server.command(command);
    }
    let mut doctor = inspector(&server).doctor(None).unwrap();
    let findings = examined(&mut doctor).await;
    for corruption in &together {
        let wanted = (corruption.code, corruption.id);
        assert!(codes(&findings).contains(&wanted), "{wanted:?} of {findings:#?}");
    }
    repair(&mut doctor).await;
    let again = found(&server).await;
    assert_eq!(again, []);
    is_whole(&topic).await;
    // A second doctor that repairs what the first one found does nothing.
    let changes = server.changes();
    assert_eq!(repair(&mut inspector(&server).doctor(None).unwrap()).await, 0);
    assert_eq!(server.changes(), changes);
    for name in ["b", "d"] {
        let job = stored(&topic, name).await.unwrap();
        assert_eq!(job.record.metadata().unwrap().cause, Some(Cause::Decode), "{name}");
        assert!(topic.command(CommandKind::Requeue, name).await.changed);
    }
    assert_eq!(stored(&topic, "d").await.unwrap().record.payload().unwrap().1, b"rubbish");
    for name in ["c", "far"] {
        provider(&server.url()).topic("t").unwrap().run_now(name).await.unwrap();
    }
    let mut ran = BTreeSet::new();
    while ran.len() < 4 {
        ran.extend(topic.try_transfer(10).await.unwrap().claims.into_iter().map(|claim| claim.id.to_string()));
    }
    assert_eq!(ran.iter().map(String::as_str).collect::<Vec<_>>(), ["b", "c", "d", "far"]);
}

#[tokio::test]
async fn another_version_and_due_jobs_without_a_listener_are_found() {
    let server = RedisServer::start();
    let topic = Topic::on(&server.url());
    topic.add(vec![job("a")]).await;
    topic.ready().await;
    assert_eq!(codes(&found(&server).await), [(FindingCode::NoListener, "")]);
    server.command(&["HSET", "dq:{shop:t}:meta", "protocol", "99"]);
    let findings = found(&server).await;
    assert_eq!(codes(&findings), [(FindingCode::OtherVersion, "")]);
    assert!(findings[0].text.contains("99") && findings[0].repair.is_none(), "{findings:?}");
}

#[tokio::test]
async fn a_topic_with_over_a_thousand_producers_is_found() {
    let (server, _topic) = sound().await;
    let more = "for n = 1, ARGV[1] do redis.call('SET', KEYS[1] .. n, '1', 'EX', 3600) end return 1";
    assert_eq!(found(&server).await, []);
    server.command(&["EVAL", more, "1", "dq:{shop:t}:calls:p", "900"]);
    assert_eq!(found(&server).await, []);
    server.command(&["EVAL", more, "1", "dq:{shop:t}:calls:q", "900"]);
    let findings = found(&server).await;
    assert_eq!(codes(&findings), [(FindingCode::ManyProducers, "")]);
    assert!(findings[0].text.starts_with("180"), "{findings:?}");
}

async fn of_the_store(server: &RedisServer) -> Vec<FindingCode> {
    inspector(server).examine_store().await.unwrap().iter().map(|finding| finding.code).collect()
}

#[tokio::test]
async fn the_settings_the_memory_and_the_clock_of_the_server_are_examined() {
    let server = RedisServer::start();
    server.command(&["CONFIG", "SET", "appendonly", "yes"]);
    assert_eq!(of_the_store(&server).await, []);
    server.command(&["CONFIG", "SET", "appendonly", "no"]);
    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    assert_eq!(of_the_store(&server).await, [FindingCode::EvictsJobs, FindingCode::NotPersistent]);
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(of_the_store(&server).await, [FindingCode::NotPersistent, FindingCode::MemoryFull]);
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let clock = Arc::new(dq::testing::ManualClock::at(1_000_000_000));
    let store = RedisStore::apart(&server.url(), "dq:", Some(clock)).unwrap();
    let look = provider_on(store, NodeSettings::default()).inspect();
    let findings = look.examine_store().await.unwrap();
    let said = findings.iter().find(|finding| finding.code == FindingCode::ClockDifference).unwrap();
    assert!(said.text.contains("behind that of this machine"), "{said}");
}

#[tokio::test]
async fn what_the_user_of_the_store_may_not_see_is_a_finding_and_the_rest_is_examined() {
    let (server, _topic) = sound().await;
    server.command(&["ACL", "SETUSER", "guest", "on", ">secret", "~dq:*", "+@all", "-scan", "-info"]);
    server.command(&["ZREM", "dq:{shop:t}:delayed", "c"]);
    let look = provider(&server.url_for("guest:secret")).inspect();
    let mut doctor = look.doctor(None).unwrap();
    while doctor.step().await.unwrap().is_some() {}
    let codes: Vec<_> = doctor.findings().iter().map(|finding| finding.code).collect();
    assert_eq!(codes, [FindingCode::NotExamined, FindingCode::NotExamined, FindingCode::JobWithoutPlace]);
}

#[tokio::test]
async fn a_directory_of_a_wrong_type_is_a_finding_and_a_named_topic_is_examined() {
    let (server, _topic) = sound().await;
    server.command(&["SET", "dq:{shop}:topics", "mine"]);
    server.command(&["ZREM", "dq:{shop:t}:delayed", "c"]);
    let mut doctor = inspector(&server).doctor(None).unwrap();
    assert_eq!(examined(&mut doctor).await, [], "nothing leads to the topic");
    let found: Vec<_> = doctor.findings().iter().map(|finding| finding.code).collect();
    assert_eq!(found, [FindingCode::NotPersistent, FindingCode::NotExamined]);
    let mut doctor = inspector(&server).doctor(Some("t")).unwrap();
    assert_eq!(codes(&examined(&mut doctor).await), [(FindingCode::JobWithoutPlace, "c")]);
}

/// 20,000 jobs in one topic, and 200 other topics.
#[tokio::test]
async fn a_step_takes_20_commands_of_the_store_at_most() {
    let (server, topic) = Topic::entered().await;
    for first in (0..20_000).step_by(1_000) {
        // Four of ten are near, and no other comes near while the doctor looks.
        let due = |n: usize| if n % 10 < 4 { HOUR / 13 } else { HOUR * (n as u32 % 10) };
        let later = |n: usize| NewJob { due: Due::After(due(n)), ..job(&format!("j{n}")) };
        topic.add((first..first + 1_000).map(later).collect()).await;
    }
    for n in 0..200 {
        Topic::named(&server.url(), &format!("t{n}")).add(vec![NewJob { due: Due::After(HOUR), ..job("a") }]).await;
    }
    let mut doctor = inspector(&server).doctor(None).unwrap();
    let (mut steps, mut most, mut most_topics) = (0, 0, 0);
    loop {
        server.command(&["CONFIG", "RESETSTAT"]);
        let step = doctor.step().await.unwrap();
        let calls = server.calls();
        let of = |name| calls.get(name).copied().unwrap_or_default();
        // The scripts use ZRANGE and SCAN of hashes themselves.
        most = most.max(of("evalsha") + of("scan") + of("info"));
        // A page of the names of keys asks each topic that is in it.
        most_topics = most_topics.max(of("eval"));
        steps += 1;
        if step.is_none() {
            break;
        }
    }
    assert!(
        (1..=18).contains(&most) && (1..=2 * 201).contains(&most_topics) && steps > 100,
        "{most} commands, {most_topics} topics, {steps} steps"
    );
    let progress = doctor.progress();
    let of_topics: Vec<_> = doctor.findings().iter().filter(|finding| finding.topic.is_some()).collect();
    assert!(progress.topics == 201 && of_topics.is_empty(), "{of_topics:?}");
    assert!(progress.looked_at > 40_000, "{progress:?}");
}
