//! A disk that is full for a while.

use std::time::Duration;

use dq::context::Condition;
use dq::provider::CallError;
use dq::store::file::Commits;
use dq::store::{FindingCode, Store, StoreError};
use dq_testing::disk::{Fate, SimulatedDisk};

use crate::node::{Work, condition, count, start};
use crate::rig::{Rig, bytes, job, now, waits};

#[tokio::test(start_paused = true)]
async fn adds_are_refused_handlers_go_on_and_everything_works_again_once_there_is_room() {
    let disk = SimulatedDisk::new();
    let (dq, _store, watch) = start(&disk, 1, 0).await;
    let mut confirmed = vec![0];
    dq.provider().add(Work { number: 0 }).await.unwrap();
    dq.settle().await;
    assert_eq!(count(&watch.began), 1);
    disk.set_room(Some(bytes(&disk)));
    let mut refused = None;
    for number in 1..200 {
        match dq.provider().add(Work { number }).after(Duration::from_secs(86_400)).await {
            Ok(_) => confirmed.push(number),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    // The first one was in flight when the disk filled.
    let text = refused.as_ref().unwrap().to_string();
    assert!(matches!(refused, Some(CallError::Unknown { .. })) && text.contains("disk is full"), "{text}");
    let next = dq.provider().add(Work { number: 1_000 }).await.unwrap_err();
    assert!(matches!(next, CallError::NotDone { .. }) && next.to_string().contains("disk is full"), "{next}");
    dq.advance(Duration::from_secs(600)).await;
    let Condition::Recovering(text) = condition(&dq) else { panic!("{:?}", condition(&dq)) };
    assert!(text.contains("disk is full") && text.contains("make room"), "{text}");
    assert_eq!(count(&watch.cancelled), 0, "a node that holds a job keeps it, whatever the disk does");
    disk.set_room(None);
    dq.advance(Duration::from_secs(15)).await;
    assert_eq!(condition(&dq), Condition::Working);
    dq.provider().add(Work { number: 2_000 }).after(Duration::from_secs(86_400)).await.unwrap();
    confirmed.push(2_000);
    watch.ends.add_permits(1);
    dq.advance(Duration::from_secs(1)).await;
    assert_eq!((count(&watch.began), count(&watch.ended), count(&watch.cancelled)), (1, 1, 0), "it ran once");
    assert!(dq.job::<Work>(0).await.is_none());
    let (again, _store, _) = start(&disk.cut(|_| Fate::Lost), 2, 0).await;
    for number in confirmed.iter().skip(1) {
        assert!(again.job::<Work>(*number).await.is_some(), "{number} is lost");
    }
    assert!(again.job::<Work>(0).await.is_none() && again.job::<Work>(1_000).await.is_none());
}

/// With the thread of the store: a caller that was in flight gets its answer once there is room.
#[tokio::test]
async fn what_waits_for_a_full_disk_is_answered_once_there_is_room() {
    let disk = SimulatedDisk::new();
    let mut rig = Rig::try_open(&disk, |options| options.commits = Commits::AtOnce).unwrap();
    now(rig.add("before")).unwrap();
    drop(rig);
    let clock = std::sync::Arc::new(dq::testing::ManualClock::at(crate::rig::START));
    let store = crate::rig::store_on(&disk, &clock).with(|options| options.commits = Commits::OnOwnThread);
    store.open().await.unwrap();
    let mut rig = Rig::of(store, clock);
    disk.set_room(Some(0));
    let mut waiting = Vec::new();
    let refused = loop {
        if waiting.len() < 100 {
            let mut added = rig.add_all(vec![job(&waiting.len().to_string(), &"1".repeat(200))]);
            if !waits(&mut added) {
                break now(added).unwrap_err();
            }
            waiting.push(added);
        }
        if let Err(refused) = rig.store.contact().await {
            break refused;
        }
        tokio::task::yield_now().await;
    };
    assert!(matches!(refused, StoreError::Full { .. }) && refused.nothing_done(), "{refused}");
    assert!(rig.add("refused").await.unwrap_err().nothing_done());
    assert!(waits(waiting.last_mut().unwrap()), "the last one is not written");
    assert!(rig.has("before"), "queries go on");
    assert_eq!(rig.dangers(), [FindingCode::DiskFull]);
    disk.set_room(None);
    let waited = waiting.len();
    for answer in waiting {
        answer.await.unwrap();
    }
    assert_eq!(rig.dangers(), []);
    let reopened = Rig::open(&disk.cut(|_| Fate::Lost));
    assert!((0..waited).all(|n| reopened.has(&n.to_string())) && !reopened.has("refused"));
}

#[test]
fn a_disk_that_is_too_slow_takes_no_further_steps_until_it_has_caught_up() {
    let disk = SimulatedDisk::new();
    let mut rig = Rig::try_open(&disk, |options| options.unwritten_bytes = 3_000).unwrap();
    rig.added(&["held"]);
    assert_eq!(rig.claims(1).len(), 1);
    let mut waiting = Vec::new();
    let refused = loop {
        let mut added = rig.add_all(vec![job(&waiting.len().to_string(), &"1".repeat(1_000))]);
        if !waits(&mut added) {
            break now(added).unwrap_err();
        }
        waiting.push(added);
    };
    assert_eq!(waiting.len(), 3, "the last one was taken with less than 3,000 bytes waiting");
    assert!(matches!(refused, StoreError::Refused { .. }) && refused.nothing_done(), "{refused}");
    assert!(refused.to_string().contains("bytes wait for the disk, which is slower than what comes"), "{refused}");
    assert!(now(rig.transfer(1)).unwrap_err().nothing_done());
    assert_eq!(now(rig.renew()).unwrap().rows, 1, "a node keeps what it holds");
    rig.store.commit().unwrap();
    waiting.into_iter().for_each(|added| drop(now(added).unwrap()));
    rig.added(&["after"]);
    assert!(rig.has("0") && rig.has("2") && !rig.has("3"));
}
