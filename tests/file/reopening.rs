//! What the next process finds: every job as it was.

use std::sync::Arc;
use std::time::Duration;

use dq::job::{Cause, Codec, Delivery, JobId, Metadata, Record, State};
use dq::store::file::{FileStore, check_on};
use dq::store::step::Change;
use dq::store::{Due, NewJob};
use dq::testing::ManualClock;
use dq::testing::seam::View;
use dq_testing::disk::{Fate, SimulatedDisk};

use crate::node::{self, Work, count, start};
use crate::rig::{Rig, START, job, key, now, store_on};

fn with(id: &str, metadata: &Metadata) -> NewJob {
    NewJob { record: Record::new(metadata, Codec::Json, b"1"), ..job(id, "1") }
}

/// Jobs in every state, with all that a job may have.
fn every_state(rig: &mut Rig) {
    let headers = vec![("trace".into(), "7".into())];
    let (hour, minute) = (Duration::from_secs(3_600), Duration::from_secs(60));
    let later =
        NewJob { due: Due::After(hour), ..with("later", &Metadata { headers, delay: hour, ..Metadata::default() }) };
    let news = NewJob { due: Due::After(hour), deliver: Delivery::Broadcast, ..job("news", "2") };
    let both = NewJob { due: Due::After(hour), deliver: Delivery::Both, ..job("both", "3") };
    let retained = with("done", &Metadata { retain: minute, ..Metadata::default() });
    let due = ["retried", "parked", "dead", "running", "replaced"].map(|id| job(id, "1"));
    let items = due.into_iter().chain([later, news, both, retained]).collect();
    let (added, claims) = (rig.add_all(items), rig.transfer(100));
    rig.confirmed(added);
    let claims = rig.claimed(claims).unwrap();
    let claim = |id: &str| claims.iter().find(|claim| claim.id.as_str() == id).unwrap();
    let failed = Metadata { attempts: 3, error: Some("no".into()), cause: Some(Cause::Timeout), ..Metadata::default() };
    let settled = rig.settle(vec![
        (claim("retried"), Change::Retry(minute), Some(failed.clone())),
        (claim("parked"), Change::Park, None),
        (claim("dead"), Change::Dead, Some(failed)),
        (claim("done"), Change::Ack, None),
    ]);
    let (replaced, deleted) = (rig.add_all(vec![job("replaced", "new")]), rig.delete("running"));
    rig.confirmed(settled);
    now(replaced).unwrap();
    now(deleted).unwrap();
}

fn rows(store: &FileStore) -> View {
    store.rows().unwrap().view(&key())
}

#[test]
fn reopening_gives_back_every_job_in_its_state() {
    let (disk, mut rig) = Rig::new();
    every_state(&mut rig);
    let before = rows(&rig.store);
    let states: Vec<_> = before.jobs.iter().map(|(id, job)| (id.as_str(), job.state)).collect();
    let running = State::Running;
    let expected = [
        ("both", State::Delayed),
        ("dead", State::Dead),
        ("done", State::Done),
        ("later", State::Delayed),
        ("parked", State::Unacked),
        ("replaced", running),
        ("retried", State::Delayed),
        ("running", running),
    ];
    assert_eq!(states, expected);
    assert_eq!(before.broadcasts.len(), 2);
    for (how, disk) in [("killed", disk.copy()), ("cut", disk.cut(|_| Fate::Lost))] {
        let reopened = Rig::open(&disk);
        let after = rows(&reopened.store);
        assert_eq!((&after.jobs, &after.broadcasts), (&before.jobs, &before.broadcasts), "{how}");
        let metadata = reopened.get(&["retried"])[0].as_ref().unwrap().record.metadata().unwrap();
        assert_eq!((metadata.attempts, metadata.cause), (3, Some(Cause::Timeout)));
        let metadata = reopened.get(&["later"])[0].as_ref().unwrap().record.metadata().unwrap();
        assert_eq!(metadata.headers.len(), 1);
    }
}

/// A pending command holds in the next process: the deleted job is gone once its rows are reclaimed, the replacement waits.
#[test]
fn pending_commands_are_obeyed_in_the_next_process() {
    let disk = SimulatedDisk::new();
    every_state(&mut Rig::open(&disk));
    let mut rig = Rig::open(&disk.copy());
    let leases: Vec<_> = rows(&rig.store).leases.into_iter().collect();
    let [(node, seen)] = &leases[..] else { panic!("one node held jobs: {leases:?}") };
    let request =
        dq::store::step::Reclaim { node: node.clone(), seen: *seen, limit: 100, bytes: 1 << 20, max_crashes: 3 };
    let reclaimed = rig.link().step(request);
    assert_eq!(rig.confirmed(reclaimed).moved, 2, "at once: nobody waits for a lease of a dead process");
    assert!(!rig.has("running"), "it was deleted while it ran");
    let after = rows(&rig.store);
    let job = &after.jobs[&JobId::new("replaced").unwrap()];
    assert_eq!((job.state, job.record.payload().unwrap().1), (State::Delayed, &b"new"[..]));
    rig.clock.set(START + 1);
    drop(rig.transfer(1));
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_process_was_killed_runs_again_at_once_and_is_charged() {
    let mut disk = SimulatedDisk::new();
    let (dq, _, watch) = start(&disk, 1, 0).await;
    dq.provider().add(Work { number: 1 }).await.unwrap();
    dq.settle().await;
    assert_eq!(count(&watch.began), 1);
    let crashes = |store: &FileStore| {
        let job = rows_of_work(store).remove(&JobId::new("1").unwrap()).unwrap();
        (job.state, job.crashes)
    };
    let mut lives = Vec::new();
    for seed in 2..5 {
        disk = disk.copy();
        let (dq, store, _) = start(&disk, seed, 0).await;
        dq.advance(Duration::from_millis(10)).await;
        lives.push(crashes(&store));
        dq.kill();
        if lives.last().unwrap().0 == State::Dead {
            break;
        }
    }
    assert_eq!(lives, [(State::Running, 1), (State::Dead, 0)], "the second crash convicts it, as on any store");
    dq.kill();
}

fn rows_of_work(store: &FileStore) -> std::collections::BTreeMap<JobId, dq::testing::seam::JobView> {
    let app = dq::job::AppName::new("test").unwrap();
    let key = dq::job::TopicKey { app, topic: dq::job::TopicName::new("work").unwrap() };
    store.rows().unwrap().view(&key).jobs
}

#[tokio::test(start_paused = true)]
async fn after_a_clean_stop_nothing_is_charged_and_the_files_say_so() {
    let disk = SimulatedDisk::new();
    let (dq, store, watch) = start(&disk, 1, 0).await;
    dq.provider().add(Work { number: 1 }).await.unwrap();
    dq.settle().await;
    assert_eq!(count(&watch.began), 1);
    dq.shutdown(Duration::ZERO).await;
    drop(store);
    tokio::task::yield_now().await;
    let checked = check_on(&disk).unwrap();
    assert!(checked.is_sealed && checked.torn.is_none(), "{checked:?}");
    let (dq, store, watch) = start(&disk.copy(), 2, 1).await;
    assert_eq!(rows_of_work(&store).values().map(|job| job.crashes).sum::<u32>(), 0);
    dq.advance(Duration::from_millis(10)).await;
    assert_eq!((count(&watch.began), count(&watch.ended)), (1, 1));
    assert!(dq.job::<Work>(1).await.is_none());
    assert_eq!(node::condition(&dq), dq::context::Condition::Working);
}

#[test]
fn what_was_confirmed_and_nothing_else_counts_when_a_directory_is_opened_many_times() {
    let mut disk = SimulatedDisk::new();
    for life in 0..20 {
        let clock = Arc::new(ManualClock::at(START));
        let store = store_on(&disk, &clock);
        now(store.open()).unwrap();
        let mut rig = Rig::of(store, clock);
        for earlier in 0..life {
            assert!(rig.has(&format!("{earlier}")) && !rig.has(&format!("{earlier} unsynced")), "life {life}");
        }
        rig.added(&[&life.to_string()]);
        drop(rig.add(&format!("{life} unsynced")));
        disk = if life % 2 == 0 { disk.copy() } else { disk.cut(|_| Fate::Lost) };
    }
}

#[test]
fn files_and_changes_of_another_version_are_refused() {
    let name = format!("journal-{:020}.dq", 0);
    for (at, part, known) in [(12, "format", 3), (16, "content", 5)] {
        for (version, told) in [
            (known - 1, format!("reads version {known}: use the version of dq that wrote it")),
            (known + 1, format!("reads {known} at most: use a newer version of dq")),
        ] {
            let disk = SimulatedDisk::new();
            Rig::open(&disk).added(&["a"]);
            let mut bytes = disk.file(&name);
            assert_eq!(std::mem::replace(&mut bytes[at], version), known);
            let crc = crc32fast::hash(&bytes[12..512]);
            bytes[8..12].copy_from_slice(&crc.to_le_bytes());
            disk.put(&name, &bytes);
            let refused = now(store_on(&disk, &Arc::new(ManualClock::at(START))).open()).unwrap_err().to_string();
            let told = format!("simulated/{name} has version {version} of the {part}, and this program {told}");
            assert!(refused.contains(&told), "{refused}");
        }
    }
}

#[test]
fn a_rate_holds_over_a_restart() {
    let disk = SimulatedDisk::new();
    let claims = |rig: &mut Rig| rig.claims(10).len();
    let mut rig = Rig::open(&disk).with_rate("10/s, burst 4");
    let added = rig.add_all(["a", "b", "c", "d", "e", "f", "g"].map(|id| job(id, "1")).to_vec());
    rig.confirmed(added);
    assert_eq!((claims(&mut rig), claims(&mut rig)), (5, 0), "the burst and one");
    drop(rig);
    // Its clock begins at the same time.
    let mut rig = Rig::open(&disk).with_rate("10/s, burst 4");
    assert_eq!(claims(&mut rig), 0, "the burst is spent");
    rig.clock.advance(Duration::from_millis(101));
    assert_eq!((claims(&mut rig), claims(&mut rig)), (1, 0));
}
