//! What a single repair of the doctor does, and what it leaves alone.

use dq::inspect::FindingCode;
use dq::job::State;

use super::doctor::{codes, examined, found, inspector, is_whole, repair, set_aside, sound, stored};

#[tokio::test]
async fn a_note_that_another_version_has_written_since_is_left_as_it_is() {
    let (server, _topic) = sound().await;
    server.command(&["HDEL", "dq:{shop:t}:meta", "protocol"]);
    let mut doctor = inspector(&server).doctor(Some("t")).unwrap();
    assert_eq!(codes(&examined(&mut doctor).await), [(FindingCode::NotesBehind, "protocol")]);
    server.command(&["HSET", "dq:{shop:t}:meta", "protocol", "0"]);
    assert_eq!(repair(&mut doctor).await, 0);
    assert_eq!(server.command(&["HGET", "dq:{shop:t}:meta", "protocol"]), "0");
}

#[tokio::test]
async fn a_run_of_a_node_without_a_lease_is_seen_by_every_repair() {
    let (server, topic) = sound().await;
    server.command(&["DEL", "dq:{shop:t}:leases"]);
    server.command(&["ZADD", "dq:{shop:t}:delayed", "9999999999999", "runs"]);
    let mut doctor = inspector(&server).doctor(None).unwrap();
    let findings = examined(&mut doctor).await;
    assert_eq!(codes(&findings), [(FindingCode::RowsWithoutLease, "n"), (FindingCode::ForeignChange, "runs")]);
    assert!(doctor.repair().await.unwrap().unwrap().done);
    server.command(&["DEL", "dq:{shop:t}:leases"]);
    assert!(doctor.repair().await.unwrap().unwrap().done);
    assert_eq!(stored(&topic, "runs").await.unwrap().place.state(), State::Running);
    assert_eq!(found(&server).await, []);
}

#[tokio::test]
async fn full_memory_refuses_to_give_a_job_up_before_anything_is_changed() {
    let (server, topic) = sound().await;
    server.command(&["HSET", "dq:{shop:t}:jobs", "d", "rubbish"]);
    let mut doctor = inspector(&server).doctor(None).unwrap();
    assert_eq!(codes(&examined(&mut doctor).await), [(FindingCode::MangledRecord, "d")]);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = doctor.repair().await.unwrap_err();
    assert!(error.to_string().contains("OOM"), "{error}");
    assert_eq!(stored(&topic, "d").await.unwrap().place.state(), State::Delayed);
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(repair(&mut doctor).await, 1);
    assert_eq!(stored(&topic, "d").await.unwrap().place.state(), State::Dead);
}

#[tokio::test]
async fn a_replacement_that_waits_for_a_job_without_a_record_takes_its_place() {
    let (server, topic) = sound().await;
    server.command(&["HDEL", "dq:{shop:t}:jobs", "replaced"]);
    let mut doctor = inspector(&server).doctor(None).unwrap();
    let findings = examined(&mut doctor).await;
    assert_eq!(codes(&findings), [(FindingCode::ForeignChange, "replaced")]);
    assert!(repair(&mut doctor).await > 0);
    let again = found(&server).await;
    assert!(again.iter().all(|finding| finding.code == FindingCode::NoListener), "{again:?}");
    is_whole(&topic).await;
    assert_eq!(stored(&topic, "replaced").await.unwrap().place.state(), State::Delayed);
}

#[tokio::test]
async fn a_key_of_a_wrong_type_is_set_aside_with_what_is_in_it() {
    let (server, topic) = sound().await;
    server.command(&["SET", "dq:{shop:t}:crashes", "mine"]);
    let mut doctor = inspector(&server).doctor(None).unwrap();
    examined(&mut doctor).await;
    assert_eq!(repair(&mut doctor).await, 1);
    let find = "for _, key in ipairs(redis.call('KEYS', 'dq:set-aside:*')) do return redis.call('GET', key) end";
    assert_eq!(server.command(&["EVAL", find, "0"]), "mine");
    is_whole(&topic).await;
}

#[tokio::test]
async fn a_second_record_of_a_job_in_several_places_is_set_aside_and_kept_there() {
    let (server, topic) = sound().await;
    server.command(&["HSET", "dq:{shop:t}:far-jobs", "b", "123456another record"]);
    server.command(&["ZADD", "dq:{shop:t}:dead", "5", "b"]);
    server.command(&["ZADD", "dq:{shop:t}:broadcasts", "5", "b"]);
    server.command(&["HDEL", "dq:{shop:t}:broadcast-jobs", "b"]);
    let mut doctor = inspector(&server).doctor(None).unwrap();
    let wanted = [(FindingCode::ForeignChange, "far-jobs/b"), (FindingCode::ForeignChange, "b")];
    let findings = examined(&mut doctor).await;
    assert_eq!(codes(&findings), wanted);
    assert!(findings[1].text.ends_with("in several places: `delayed`, `dead`, `broadcasts`"), "{findings:?}");
    assert_eq!(repair(&mut doctor).await, 2);
    assert_eq!(found(&server).await, []);
    assert_eq!(set_aside(&server, "far-jobs", "b"), "123456another record");
    is_whole(&topic).await;
    assert_eq!(stored(&topic, "b").await.unwrap().place.state(), State::Delayed);
}

#[tokio::test]
async fn what_a_repair_cannot_decide_is_left_to_a_hand() {
    let (server, topic) = sound().await;
    server.command(&["ZREM", "dq:{shop:t}:broadcasts", "b"]);
    let mut doctor = inspector(&server).doctor(None).unwrap();
    let findings = examined(&mut doctor).await;
    let wanted = [(FindingCode::BroadcastWithoutPlace, "b")];
    assert_eq!(codes(&findings), wanted);
    assert_eq!(repair(&mut doctor).await, 0);
    assert_eq!(codes(&found(&server).await), wanted);
    drop(topic);
}
