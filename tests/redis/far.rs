//! The tree of jobs that are due much later: what it looks like, that jobs leave it in time and in parts, and that what another program
//! removed from it comes back (rules 1, 2, 5).

use std::sync::Arc;
use std::time::Duration;

use dq::job::{AppName, Codec, Delivery, JobState, Metadata, Record};
use dq::store::redis::RedisStore;
use dq::store::step::{Audit, DEFAULT_BYTES, Scan};
use dq::store::{CommandKind, Due, NewJob, OnDuplicate, Store};
use dq::testing::ManualClock;
use dq::time::Timestamp;
use dq_tests::redis::RedisServer;

use super::cost::{spent, total};
use super::topic::{Topic, generated, id, job};

const NOW: u64 = 1_800_000_000_000;
const DUE: u64 = NOW + 3_600_000;
/// A leaf comes near so long before it is due, ms.
const NEAR: u64 = 150_000;
const LEAF: usize = 67;

/// The bound of each leaf, and how many ids it has.
const LEAVES: &str = "local all, found = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do found[i], found[i + 1] = all[i], #cmsgpack.unpack(all[i + 1]) end
return table.concat(found, ' ')";

struct Fixture {
    server: RedisServer,
    topic: Topic,
    clock: Arc<ManualClock>,
}

impl Fixture {
    async fn start() -> Self {
        let server = RedisServer::start();
        let clock = Arc::new(ManualClock::at(NOW * 1_000));
        let topic = Topic::of(RedisStore::apart(&server.url(), "dq:", Some(clock.clone())).unwrap(), "t");
        let fixture = Self { server, topic, clock };
        fixture.topic.reconcile().await;
        fixture
    }

    fn set_clock(&self, ms: u64) {
        self.clock.set(ms * 1_000);
    }

    fn key(name: &str) -> String {
        format!("dq:{{shop:t}}:{name}")
    }

    fn number(&self, command: &[&str]) -> usize {
        self.server.command(command).trim_start_matches(':').parse().unwrap()
    }

    fn leaves(&self) -> Vec<(String, usize)> {
        let found = self.server.command(&["EVAL", LEAVES, "1", &Self::key("far-leaves")]);
        let words: Vec<_> = found.split_whitespace().collect();
        words.chunks(2).map(|leaf| (leaf[0].to_owned(), leaf[1].parse().unwrap())).collect()
    }

    /// How many jobs are far, and how many near.
    fn far_and_near(&self) -> (usize, usize) {
        let near = self.number(&["ZCARD", &Self::key("delayed")]);
        assert_eq!(near, self.number(&["HLEN", &Self::key("jobs")]));
        (self.number(&["HLEN", &Self::key("far-jobs")]), near)
    }

    /// How many jobs have a record and no place.
    async fn lost(&self) -> usize {
        let scanned = self.topic.link.step(Scan).await.unwrap();
        scanned.records - scanned.places
    }

    /// Audits all pages.
    async fn audit(&self) {
        let mut after = None;
        loop {
            let page = self.topic.link.step(Audit { after, limit: 100, bytes: DEFAULT_BYTES }).await.unwrap();
            assert!(page.lost.is_empty(), "a far job is put back at once");
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }
}

fn due_at(ms: u64, job: NewJob) -> NewJob {
    NewJob { due: Due::At(Timestamp::from_millis(ms)), ..job }
}

/// Jobs that are due together.
fn together(count: u16) -> Vec<NewJob> {
    (0..count).map(|n| due_at(DUE, generated(n))).collect()
}

#[tokio::test]
async fn far_jobs_are_in_short_lists_and_leave_nothing_behind() {
    let fixture = Fixture::start().await;
    // Many that come before all of a full leaf, that come after all, and that come in between.
    for (at, from, to) in [(30_000, 0, 130), (10_000, 130, 200), (40_000, 200, 280), (20_000, 280, 300)] {
        fixture.topic.add((from..to).map(|n| due_at(DUE + at, generated(n))).collect()).await;
    }
    for n in 0..300_u64 {
        fixture.topic.add(vec![due_at(DUE + n * 7_919 % 100_000, job(&n.to_string()))]).await;
    }
    assert_eq!(fixture.far_and_near(), (600, 0));
    let leaves = fixture.leaves();
    let sizes: Vec<_> = leaves.iter().map(|(_, size)| *size).collect();
    assert_eq!((sizes.iter().sum::<usize>(), fixture.number(&["ZCARD", &Fixture::key("far")])), (600, leaves.len()));
    assert!(sizes.iter().all(|size| (1..=LEAF).contains(size)) && leaves.len() < 24, "{sizes:?}");
    assert_eq!(
        fixture.topic.store.topics(&AppName::new("shop").unwrap()).await.unwrap().len(),
        1,
        "the topic is listed"
    );
    let names = (0..300).map(|n| n.to_string()).chain((0..300).map(|n| generated(n).id.to_string()));
    for name in names {
        assert!(fixture.topic.command(CommandKind::Delete, &name).await.changed);
    }
    assert_eq!((fixture.far_and_near(), fixture.leaves().len()), ((0, 0), 0));
    assert_eq!(fixture.server.command(&["EXISTS", &Fixture::key("far")]), ":0");
}

#[tokio::test]
async fn only_small_jobs_for_the_queue_that_are_due_much_later_are_far() {
    let fixture = Fixture::start().await;
    let soon = due_at(NOW + 299_999, job("soon"));
    let large = Record::new(&Metadata::default(), Codec::Json, format!("\"{}\"", "x".repeat(2_000)).as_bytes());
    fixture.topic.add(vec![due_at(DUE, NewJob { record: large, ..job("large") })]).await;
    fixture.topic.add(vec![soon, due_at(DUE, NewJob { deliver: Delivery::Both, ..job("both") })]).await;
    assert_eq!(fixture.far_and_near(), (0, 3));
    fixture.topic.add(vec![due_at(NOW + 300_000, job("later"))]).await;
    assert_eq!(fixture.far_and_near(), (1, 3));
}

#[tokio::test]
async fn leaves_come_near_in_time_and_in_parts() {
    let fixture = Fixture::start().await;
    fixture.topic.add(together(1_000)).await;
    fixture.set_clock(DUE - NEAR - 1);
    let answer = fixture.topic.try_transfer(10).await.unwrap();
    assert_eq!((fixture.far_and_near(), answer.sleep), ((1_000, 0), Duration::from_millis(1)));
    fixture.set_clock(DUE - NEAR);
    for far in [732, 464, 196, 0] {
        let answer = fixture.topic.try_transfer(10).await.unwrap();
        assert_eq!(fixture.far_and_near(), (far, 1_000 - far));
        assert!(answer.claims.is_empty() && !answer.more);
        let sleep = if far > 0 { Duration::from_millis(5) } else { Duration::from_secs(15) };
        assert_eq!(answer.sleep, sleep);
    }
    assert_eq!(fixture.server.command(&["HEXISTS", &Fixture::key("meta"), "far"]), ":0");
    fixture.set_clock(DUE);
    assert_eq!(fixture.topic.try_transfer(1_000).await.unwrap().claims.len(), 1_000);
}

#[tokio::test]
async fn far_jobs_that_lost_their_place_wait_again_under_their_due_time() {
    for (removed, looks) in [("far", false), ("far-leaves", true), ("leaf", true), ("mangled leaf", true)] {
        let fixture = Fixture::start().await;
        fixture.topic.add(together(300)).await;
        let later = (0..5).map(|n| due_at(DUE + 86_400_000, job(&n.to_string()))).collect();
        fixture.topic.add(later).await;
        assert_eq!(fixture.lost().await, 0);
        let (leaves, (first, _)) = (Fixture::key("far-leaves"), fixture.leaves().into_iter().min().unwrap());
        match removed {
            "leaf" => fixture.server.command(&["HDEL", &leaves, &first]),
            "mangled leaf" => fixture.server.command(&["HSET", &leaves, &first, "of another program"]),
            key => fixture.server.command(&["DEL", &Fixture::key(key)]),
        };
        if looks {
            // A step finds that a leaf has gone when it is to come near.
            fixture.set_clock(DUE - NEAR);
            fixture.topic.try_transfer(10).await.unwrap();
        }
        assert_eq!(fixture.lost().await, 1, "{removed}: nobody knows how many");
        fixture.audit().await;
        assert_eq!(fixture.lost().await, 0, "{removed}");
        for new in together(300) {
            let stored = fixture.topic.store.get(&fixture.topic.key, &[new.id]).await.unwrap().remove(0).unwrap();
            assert_eq!(stored.place, JobState::Delayed { due: Timestamp::from_millis(DUE) });
        }
        fixture.set_clock(DUE);
        assert_eq!(fixture.topic.try_transfer(1_000).await.unwrap().claims.len(), 300, "{removed}");
    }
}

#[tokio::test]
async fn an_audit_brings_near_all_far_jobs_of_a_page_that_is_larger_than_a_repair() {
    let fixture = Fixture::start().await;
    // Redis reads a small hash as a whole, whatever was asked for.
    fixture.server.command(&["CONFIG", "SET", "hash-max-ziplist-entries", "4000"]);
    fixture.topic.add(together(1_000)).await;
    fixture.server.command(&["DEL", &Fixture::key("far")]);
    assert_eq!(fixture.lost().await, 1, "it is not known how many");
    fixture.audit().await;
    assert_eq!((fixture.far_and_near(), fixture.lost().await), ((0, 1_000), 0));
}

#[tokio::test]
async fn scan_restores_when_the_first_leaf_comes_near() {
    let fixture = Fixture::start().await;
    fixture.topic.add(together(1)).await;
    fixture.server.command(&["HDEL", &Fixture::key("meta"), "far"]);
    fixture.topic.link.step(Scan).await.unwrap();
    fixture.set_clock(DUE);
    assert_eq!(fixture.topic.try_transfer(1).await.unwrap().claims.len(), 1);
}

#[tokio::test]
async fn full_memory_refuses_adds_of_far_jobs_and_nothing_else() {
    let fixture = Fixture::start().await;
    fixture.topic.add(vec![due_at(DUE, job("a")), due_at(DUE, job("b"))]).await;
    fixture.server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let replacing = NewJob { on_duplicate: OnDuplicate::Replace, ..job("a") };
    for new in [due_at(DUE, generated(1)), due_at(DUE, job("c")), replacing] {
        let error = fixture.topic.try_add(vec![new]).await.unwrap_err();
        assert!(error.nothing_done() && error.to_string().contains("OOM"), "{error:?}");
    }
    assert_eq!(fixture.far_and_near(), (2, 0));
    assert!(fixture.topic.command(CommandKind::Delete, "b").await.changed);
    fixture.set_clock(DUE);
    let claims = fixture.topic.try_transfer(10).await.unwrap().claims;
    assert_eq!(claims.iter().map(|claim| &claim.id).collect::<Vec<_>>(), [&id("a")]);
}

#[tokio::test]
async fn a_far_job_costs_eight_commands_and_a_thousand_together_few_more() {
    let (server, topic) = Topic::served();
    let hour = |n| NewJob { due: Due::After(Duration::from_secs(3_600)), ..generated(n) };
    topic.add(vec![hour(0)]).await;
    topic.add(vec![hour(1)]).await;
    assert_eq!(total(&spent(&server, topic.add(vec![hour(2)])).await), 8);
    let thousand = total(&spent(&server, topic.add((10..1_010).map(hour).collect())).await);
    assert!((20..=60).contains(&thousand), "{thousand}");
}
