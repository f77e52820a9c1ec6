//! Changes of schedules and of many jobs through the pages, and the way back.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use dq::Provider;
use dq::config::NodeSettings;
use dq::context::open_store;
use dq::environment::{Environment, Seeded};
use dq::job::AppName;
use dq::provider::TopicProvider;
use dq_tests::redis::RedisServer;
use serde_json::json;

use super::visitor::{Answer, Visitor, provider};

async fn schedule_is_paused(topic: &TopicProvider) -> Option<bool> {
    let seen = topic.schedules().next_page().await.unwrap().unwrap_or_default();
    seen.first().map(|schedule| schedule.details.as_ref().unwrap().pause.is_some())
}

#[tokio::test]
async fn a_schedule_is_paused_resumed_and_removed_and_each_page_offers_the_way_back() {
    let provider = provider("schedule").await;
    let topic = provider.topic("mail").unwrap();
    topic.add_schedule_json("s", json!(1)).every("1h").await.unwrap();
    let mut visitor = Visitor::free(provider.clone());
    let paused = visitor.confirm("action=pause_schedule&topic=mail&id=s", "reason=not+today").await;
    assert_eq!(
        (paused.status, paused.header("location")),
        (StatusCode::SEE_OTHER, "/schedules?topic=mail&id=s&done=pause_schedule&undo=resume_schedule")
    );
    let page = visitor.get(paused.header("location")).await.body;
    let parts =
        ["The schedule is paused.", "Undo: Resume the schedule", "everyone (dashboard)", "not today", "Resume…"];
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(schedule_is_paused(&topic).await, Some(true));
    let resumed = visitor.confirm("action=resume_schedule&topic=mail&id=s", "").await;
    let page = visitor.get(resumed.header("location")).await.body;
    assert!(page.contains("Undo: Pause the schedule"), "{page}");
    assert_eq!(schedule_is_paused(&topic).await, Some(false));
    let asked = visitor.get("/confirm?action=remove_schedule&topic=mail&id=s").await.body;
    assert!(asked.contains("This cannot be undone."), "{asked}");
    visitor.confirm("action=remove_schedule&topic=mail&id=s", "").await;
    assert_eq!(schedule_is_paused(&topic).await, None);
    let gone = visitor.confirm("action=pause_schedule&topic=mail&id=s", "reason=x").await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_limit_is_set_and_cleared_with_its_reason() {
    let provider = provider("limit").await;
    let topic = provider.topic("mail").unwrap();
    let mut visitor = Visitor::free(provider.clone());
    let set = visitor.confirm("action=limit&topic=mail&limit=max_waiting", "value=500&reason=it+is+slow").await;
    let page = visitor.get(set.header("location")).await.body;
    for part in ["The limit is set.", "At most <b>500</b> waiting jobs", "everyone (dashboard)", "it is slow"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    visitor.confirm("action=clear_limit&topic=mail&limit=max_waiting", "").await;
    assert_eq!(topic.state().await.unwrap().limits, []);
    for wrong in ["value=many&reason=x", "value=0&reason=x"] {
        let refused = visitor.confirm("action=limit&topic=mail&limit=cluster_concurrency", wrong).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

#[tokio::test]
async fn a_page_offers_the_due_time_that_a_job_had() {
    let provider = provider("former").await;
    let topic = provider.topic("mail").unwrap();
    topic.add_json(json!(1)).id("a/b").after("1h").await.unwrap();
    let place = || async { topic.get("a/b").await.unwrap().unwrap().place };
    let before = place().await;
    let mut visitor = Visitor::free(provider.clone());
    for action in ["action=reschedule&topic=mail&id=a%2Fb&due=2h", "action=run_now&topic=mail&id=a%2Fb"] {
        let moved = visitor.confirm(action, "").await;
        assert_ne!(place().await, before, "{action}");
        let page = visitor.get(moved.header("location")).await.body;
        let (_, link) = page.split_once("class=\"notice good\"").unwrap().1.split_once("href=\"").unwrap();
        let link = link.split('"').next().unwrap().replace("&amp;", "&");
        let asked = visitor.get(&link).await;
        let (_, due) = asked.body.split_once("name=\"due\" required value=\"").unwrap();
        let (due, token) = (due.split('"').next().unwrap(), asked.field("form_token"));
        let form = format!("action=reschedule&topic=mail&id=a%2Fb&due={due}&form_token={token}");
        assert_eq!(visitor.post("/act", &form).await.status, StatusCode::SEE_OTHER);
        assert_eq!(place().await, before, "{action}: to the millisecond");
    }
}

/// Goes on until the page says that all is done.
async fn to_its_end(visitor: &mut Visitor, query: &str, mut answer: Answer) -> Answer {
    while answer.body.contains("Working on it") {
        let fields = ["all", "changed", "looked_at", "after_at", "after_id", "form_token", "due"];
        let fields = fields.map(|name| format!("{name}={}", answer.field(name))).join("&");
        answer = visitor.post("/act", &format!("{query}&{fields}")).await;
    }
    answer
}

#[tokio::test]
async fn many_jobs_are_rescheduled_run_and_requeued_in_steps_that_say_how_far_they_are() {
    let provider = provider("many").await;
    let topic = provider.topic("mail").unwrap();
    let jobs = (0..250).map(|n| json!(n));
    topic.add_many_json(jobs.collect::<Vec<_>>()).after("1h").await.unwrap().all().unwrap();
    topic.add_json(json!(1)).id("other").after("1h").header("keep", "me").await.unwrap();
    let mut visitor = Visitor::free(provider.clone());
    let asked = visitor.get("/confirm?action=reschedule&topic=mail&state=delayed").await.body;
    for part in ["100 jobs at least, of 251 in this state", "Reschedule all these jobs?", "This cannot be undone."] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    let query = "action=reschedule&topic=mail&state=delayed";
    let first = visitor.confirm(query, "due=3h&all=251").await;
    assert!(first.body.contains("<progress max=\"251\" value=\"100\""), "{}", first.body);
    let due = first.field("due");
    let last = to_its_end(&mut visitor, query, first).await;
    assert!(last.body.contains("<b>251</b> changed of <b>251</b> looked at"), "{}", last.body);
    assert!(last.body.contains("<progress max=\"251\" value=\"251\""), "{}", last.body);
    let page = provider.inspect().jobs("mail", dq::job::State::Delayed, &Default::default(), None).await.unwrap();
    let all = page.jobs.iter().all(|job| job.at.unwrap().to_string() == due);
    assert!(all, "every step gave the same time");
    let query = "action=run_now&topic=mail&state=delayed&header=keep%3Dme";
    let first = visitor.confirm(query, "").await;
    assert!(to_its_end(&mut visitor, query, first).await.body.contains("<b>1</b> changed of <b>251</b> looked at"));
    while topic.counts().await.unwrap().ready == 0 {} // it is due with the next millisecond at the latest
    let query = "action=delete&topic=mail&state=delayed&id_prefix=other";
    let first = visitor.confirm(query, "").await;
    let last = to_its_end(&mut visitor, query, first).await.body;
    assert!(last.contains("All done") && last.contains("<b>1</b> changed"), "{last}");
    assert_eq!(topic.counts().await.unwrap().delayed, 250);
    let nonsense = visitor.get("/confirm?action=requeue&topic=mail&state=odd").await;
    assert_eq!(nonsense.status, StatusCode::BAD_REQUEST);
}

/// A provider whose calls wait no longer than a quarter of a second for the store.
async fn impatient(server: &RedisServer) -> Provider {
    let store = open_store(&server.url()).unwrap();
    store.prepare().await.unwrap();
    let mut settings = NodeSettings::default();
    settings.call_deadline = Duration::from_millis(250);
    settings.call_timeout = settings.call_deadline;
    let environment = Environment::on_this_runtime(Arc::new(Seeded::by_system()));
    Provider::root(AppName::new("shop").unwrap(), store, environment, settings)
}

#[tokio::test]
async fn a_step_that_fails_can_be_sent_again_and_goes_on_where_it_was() {
    let mut server = RedisServer::start();
    let provider = impatient(&server).await;
    let topic = provider.topic("mail").unwrap();
    topic.add_many_json((0..150).map(|n| json!(n)).collect::<Vec<_>>()).after("1h").await.unwrap().all().unwrap();
    let mut visitor = Visitor::free(provider);
    let query = "action=delete&topic=mail&state=delayed";
    let first = visitor.confirm(query, "all=150").await;
    let fields = |answer: &Answer| {
        let fields = ["all", "changed", "looked_at", "after_at", "after_id", "form_token"];
        fields.map(|name| format!("{name}={}", answer.field(name))).join("&")
    };
    server.kill();
    let failed = visitor.post("/act", &format!("{query}&{}", fields(&first))).await;
    assert_eq!(failed.status, StatusCode::SERVICE_UNAVAILABLE, "{}", failed.body);
    assert!(failed.body.contains("A step failed") && failed.body.contains("Try again"), "{}", failed.body);
    assert!(!failed.body.contains("data-go-on"), "no script goes on by itself");
    assert_eq!(fields(&failed), fields(&first));
}

#[tokio::test]
async fn a_job_that_was_changed_since_somebody_looked_at_it_stays() {
    let provider = provider("changed").await;
    let topic = provider.topic("mail").unwrap();
    topic.add_json("1").id("a").after("1h").await.unwrap();
    let mut visitor = Visitor::free(provider.clone());
    let page = visitor.get("/job?topic=mail&id=a").await.body;
    assert!(page.contains("action=delete&amp;topic=mail&amp;id=a&amp;version=0"), "{page}");
    topic.extend_by("a", "1h").await.unwrap();
    let query = "action=delete&topic=mail&id=a&version=0";
    assert_eq!(visitor.get(&format!("/confirm?{query}")).await.field("version"), "0");
    let refused = visitor.confirm(query, "").await.body;
    assert!(refused.contains("its version is 1"), "{refused}");
    visitor.confirm("action=delete&topic=mail&id=a&version=1", "").await;
    assert_eq!(topic.get("a").await.unwrap().map(|seen| seen.id), None);
}
