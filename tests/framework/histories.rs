//! The histories of jobs: the settings of a topic, the callers of commands, and what becomes of them.

use dq::config::TopicOverrides;
use dq::inspect::{NotRunReason, Why};
use dq::testing::Harness;
use dq_tests::Fault;

use crate::scripted_listener::{HOUR, MINUTE, MS, SECOND, Script, TestJob, default_settings, faulty_store, test_job};

fn keeps(topic: TopicOverrides) -> TopicOverrides {
    topic.history_max(20).history_retention("1h")
}

async fn why(dq: &Harness, id: &str) -> Why {
    dq.provider().inspect().why("work", id).await.unwrap()
}

async fn history(dq: &Harness, id: &str) -> Vec<String> {
    let history = dq.provider().inspect().history("work", id).await.unwrap();
    history.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn why_says_who_deleted_a_job_that_is_gone() {
    let dq = Script::acks().start(keeps).await;
    dq.advance(SECOND).await;
    dq.provider().add(test_job("a")).after("1m").await.unwrap();
    let [anna, bob] = ["anna", "bob"].map(|name| dq.provider().by(name));
    bob.extend_by::<TestJob>("a", "1m").await.unwrap();
    anna.delete::<TestJob>("a").await.unwrap();
    let why = why(&dq, "a").await;
    assert_eq!(why.job, None);
    assert!(matches!(&why.reasons[..], [NotRunReason::Gone { by: Some(by), .. }] if by == "anna"), "{why:?}");
    assert!(why.to_string().starts_with("it was deleted by anna at "), "{why}");
    let told: Vec<_> = why.history.iter().map(|past| past.to_string()).collect();
    assert!(told[1].starts_with("changed, due ") && told[1].ends_with(", by bob"), "{told:?}");
    assert_eq!((told.len(), told[2].as_str()), (3, "deleted, by anna"));
    let unknown = dq.provider().inspect().why("work", "b").await.unwrap();
    assert_eq!(unknown.reasons, [NotRunReason::Unknown]);
}

stores!(a_history_tells_the_node_and_how_late_the_job_was: memory, file, redis);
async fn a_history_tells_the_node_and_how_late_the_job_was() {
    let dq = Script::takes(SECOND).start(|topic| keeps(topic).concurrency(1).lookahead("0s")).await;
    dq.advance(SECOND).await;
    for id in ["a", "b"] {
        dq.provider().add(test_job(id)).await.unwrap();
    }
    dq.advance(MINUTE).await;
    let node = dq.health().node;
    let told = history(&dq, "b").await;
    assert!(told[0].starts_with("added, due "), "{told:?}");
    assert!(told[1].starts_with(&format!("claimed by {node}")), "{told:?}");
    assert_eq!(told.last(), Some(&format!("done, by {node}")));
    assert!(why(&dq, "b").await.to_string().starts_with(&format!("it is done by {node} at ")));
}

#[tokio::test(start_paused = true)]
async fn a_topic_without_a_job_forgets_its_histories() {
    let dq = Script::acks().start(keeps).await;
    dq.advance(SECOND).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(HOUR - MINUTE).await;
    assert_eq!(history(&dq, "a").await.len(), 3);
    dq.advance(20 * MINUTE).await;
    assert_eq!(history(&dq, "a").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_says_nothing_of_histories_leaves_them_and_zero_ends_them() {
    let script = Script::acks();
    let dq = script.start(keeps).await;
    dq.advance(SECOND).await;
    dq.provider().add(test_job("a")).after("1h").await.unwrap();
    let silent = script.beside(&dq, 2, default_settings).await;
    silent.advance(SECOND).await;
    assert_eq!(history(&dq, "a").await.len(), 1);
    let ends = script.beside(&dq, 3, |topic| topic.history_max(0)).await;
    ends.advance(SECOND).await;
    assert_eq!(history(&dq, "a").await, [""; 0]);
}

stores!(a_node_tells_the_store_before_it_claims_also_after_an_outage: memory, file, redis);
async fn a_node_tells_the_store_before_it_claims_also_after_an_outage() {
    let (store, faults) = faulty_store();
    faults.fail_only("keep_history", Fault::Unavailable);
    let script = Script::acks();
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, keeps)).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!((script.log.take(), faults.requests_for("transfer")), (vec![], 0));
    faults.clear();
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    assert_eq!(history(&dq, "a").await.len(), 2, "what came since: claimed and done");
}

#[tokio::test(start_paused = true)]
async fn the_name_of_a_caller_is_any_text_and_cut_at_256_bytes() {
    let dq = Script::acks().start(keeps).await;
    dq.advance(SECOND).await;
    let long = format!("a{}", "\u{e9}".repeat(200));
    for (id, name) in [("long", long.as_str()), ("odd", "\t\n\\n"), ("none", "")] {
        dq.provider().add(test_job(id)).after("1m").await.unwrap();
        dq.provider().by(name).delete::<TestJob>(id).await.unwrap();
    }
    dq.advance(MS).await;
    assert_eq!(history(&dq, "long").await[1], format!("deleted, by a{}", "\u{e9}".repeat(127)));
    assert_eq!(history(&dq, "odd").await[1], "deleted, by \t\n\\n");
    let named = history(&dq, "none").await.remove(1);
    assert!(named.len() > "deleted, by ".len(), "without a name it is the producer: {named}");
}
