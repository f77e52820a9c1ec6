//! Each answer of the JSON API against the document that describes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::Method;
use dq::config::NodeSettings;
use dq::environment::{Environment, StoreClock, WallClock};
use dq::job::AppName;
use dq::prelude::*;
use dq::store::memory::MemoryStore;
use serde_json::{Value, json};

use super::schema::Document;
use super::visitor::{Answer, Visitor, provider};

/// What takes a crash, a damaged record or a clock, or passes before anybody looks.
const NEVER_SEEN: [&str; 17] = [
    "Groups.next",
    "HistoryEntry.state",
    "Job.unreadable",
    "Nodes.next",
    "NotRunReason crashed.crashes",
    "NotRunReason crashed.reason",
    "NotRunReason group_full.group",
    "NotRunReason group_full.reason",
    "NotRunReason group_full.seats",
    "NotRunReason lease_ran_out.at",
    "NotRunReason lease_ran_out.node",
    "NotRunReason lease_ran_out.reason",
    "NotRunReason no_listener.last",
    "NotRunReason no_listener.until",
    "Schedule.last_job",
    "Schedule.unreadable",
    "Topic.error",
];

/// A program that compares what it gets with the document.
struct Reader {
    program: Visitor,
    document: Document,
    called: BTreeSet<(String, String, u16)>,
}

impl Reader {
    async fn new(mut program: Visitor) -> Self {
        let document = Document::new(program.get("/api/v1/openapi.json").await.json());
        Self { program, document, called: BTreeSet::new() }
    }

    /// Calls `METHOD /path` for a topic and a job or schedule. The path may have a query.
    async fn call(&mut self, what: &str, topic: &str, id: &str, body: Value) -> Value {
        let (method, path) = what.split_once(' ').unwrap();
        let template = path.split('?').next().unwrap();
        let filled = path.replace("{topic}", topic).replace("{id}", &id.replace('/', "%2F"));
        let answer: Answer = self.program.call(method.parse::<Method>().unwrap(), &filled, &body).await;
        let status = answer.status.as_u16();
        let faults = self.document.faults(&method.to_lowercase(), template, status, &answer.json());
        assert_eq!(faults, [""; 0], "{what} {status}: {}", answer.body);
        self.called.insert((method.to_lowercase(), template.to_owned(), status));
        answer.json()
    }

    async fn get(&mut self, path: &str, topic: &str, id: &str) -> Value {
        self.call(&format!("GET {path}"), topic, id, Value::Null).await
    }

    /// Asks why until the reasons are these.
    async fn why(&mut self, topic: &str, id: &str, wanted: &[&str]) {
        loop {
            let why = self.get("/topics/{topic}/jobs/{id}/why", topic, id).await;
            let reasons: Vec<_> = why["reasons"]
                .as_array()
                .unwrap_or_else(|| panic!("{id}: {why}"))
                .iter()
                .map(|reason| reason["reason"].clone())
                .collect();
            if reasons == wanted {
                return;
            }
        }
    }
}

const ADD: &str = "POST /topics/{topic}/jobs";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_answer_is_as_the_document_says() {
    let shop = provider("document").await;
    let node = ContextFactory::new("shop").store("memory:dashboard-document").start().await.unwrap();
    let redact = |_: &str, payload: &[u8]| String::from_utf8_lossy(payload).into_owned();
    let dashboard = dq_dashboard::Dashboard::new(shop.clone(), dq_dashboard::Access::everyone_who_reaches_it());
    let mut reader = Reader::new(Visitor::of(dashboard.show_payloads(redact))).await;
    what_waits(&mut reader, &shop).await;
    what_ran(&mut reader, &shop).await;
    what_is_changed(&mut reader, &shop).await;
    the_sets_of_a_topic(&mut reader, &shop).await;
    what_endangers_the_store(&mut reader).await;
    let described = reader.document.operations();
    let missing: Vec<_> = described
        .iter()
        .filter(|(_, _, status)| [200, 201, 404].contains(status))
        .filter(|call| !reader.called.contains(*call))
        .collect();
    assert!(missing.is_empty(), "nothing asks for these: {missing:?}");
    // Whether a job is seen that a node is about to take is a matter of moments.
    let unseen: Vec<_> =
        reader.document.unseen().into_iter().filter(|field| !field.starts_with("NotRunReason next.")).collect();
    assert_eq!(unseen, NEVER_SEEN, "no answer had these");
    drop(node);
}

/// A clock that is an hour behind.
#[derive(Debug)]
struct Behind;

impl StoreClock for Behind {
    fn micros(&self) -> u64 {
        WallClock.micros() - 3_600_000_000
    }
}

async fn what_endangers_the_store(reader: &mut Reader) {
    assert_eq!(reader.get("/doctor", "", "").await, json!({ "findings": [] }));
    let (environment, store) = (Environment::of_this_runtime().unwrap(), MemoryStore::new(Arc::new(Behind)));
    let shop = Provider::root(AppName::new("shop").unwrap(), Arc::new(store), environment, NodeSettings::default());
    let sound = std::mem::replace(&mut reader.program, Visitor::free(shop));
    let found = reader.get("/doctor", "", "").await;
    assert_eq!(found["findings"][0]["code"], "clock-difference", "{found}");
    reader.program = sound;
}

/// Topics with jobs that wait, paused, drained and with a default delay, and schedules.
async fn what_waits(reader: &mut Reader, shop: &Provider) {
    let job = json!({ "payload": { "n": 1 }, "id": "a/1", "after": "1h", "headers": [["source", "test"]], "expires_after": "2h" });
    reader.call(ADD, "waits", "", job.clone()).await;
    reader.call(ADD, "waits", "", job.clone()).await;
    let mut kept = job;
    kept["on_duplicate"] = "keep".into();
    reader.call(ADD, "waits", "", kept).await;
    let many: Vec<_> = (0..150).map(|n| json!({ "n": n })).collect();
    shop.topic("many").unwrap().add_many_json(many).after("1h").await.unwrap().all().unwrap();
    let page = reader.get("/topics/{topic}/jobs?state=delayed", "many", "").await;
    assert_eq!(page["jobs"].as_array().unwrap().len(), 100);
    reader.get("/topics/{topic}/jobs/{id}", "waits", "a/1").await;
    reader.get("/topics/{topic}/jobs/{id}", "waits", "none").await;
    reader.get("/topics/{topic}/jobs?state=nonsense", "waits", "").await;
    reader.get("/topics/{topic}/timeline", "waits", "").await;
    reader.why("waits", "none", &["unknown"]).await;
    reader.why("waits", "a/1", &["not_due_yet", "no_listener"]).await;
    reader.call(ADD, "waits", "", json!({ "payload": 1, "id": "once", "unique_for": "1h" })).await;
    reader.call("DELETE /topics/{topic}/jobs/{id}", "waits", "once", Value::Null).await;
    reader.why("waits", "once", &["unknown", "id_taken"]).await;
    let one = json!({ "kind": "max_waiting", "value": 1, "reason": "it is slow" });
    reader.call("POST /topics/{topic}/limit", "waits", "", one).await;
    reader.why("waits", "none", &["unknown", "topic_full"]).await;
    reader.call(ADD, "waits", "", json!({ "payload": 1, "id": "one more" })).await;
    reader.call("POST /topics/{topic}/limit", "waits", "", json!({ "kind": "max_waiting", "value": null })).await;
    let pause = json!({ "reason": "the bank is down", "lasting": "2h" });
    reader.call("POST /topics/{topic}/pause", "waits", "", pause).await;
    reader.call("POST /topics/{topic}/drain", "waits", "", json!({ "reason": "we move" })).await;
    shop.topic("waits").unwrap().set_default_delay("5m").await.unwrap();
    reader.why("waits", "a/1", &["not_due_yet", "paused", "draining", "no_listener"]).await;
    reader.call(ADD, "close-order", "", json!({ "payload": { "n": 1 }, "id": "leads" })).await;
    reader.why("waits", "none", &["unknown", "follow_ups_wait"]).await;
    let expires = json!({ "payload": 1, "id": "late", "expires_after": "1ms" });
    reader.call(ADD, "nobody", "", expires).await;
    reader.why("nobody", "late", &["no_listener", "expired"]).await;
    for n in 0..100 {
        let schedule = format!("every-hour-{n:02}");
        shop.topic("ticks").unwrap().add_schedule_json(schedule, json!(1)).every("1h").await.unwrap();
    }
    let pause = json!({ "reason": "not today" });
    reader.call("POST /topics/{topic}/schedules/{id}/pause", "ticks", "every-hour-00", pause.clone()).await;
    reader.call("POST /topics/{topic}/schedules/{id}/pause", "ticks", "none", pause).await;
    let seen = reader.get("/topics/{topic}/schedules", "ticks", "").await;
    let first = &seen["schedules"][0];
    assert_eq!((&first["paused"], &first["paused_by"]), (&json!("not today"), &json!("everyone (dashboard)")));
    let behind = reader.get("/topics/{topic}/schedules?cursor=every-hour-99", "ticks", "").await;
    assert_eq!(
        (&seen["next"], behind),
        (&json!("every-hour-99"), json!({ "schedules": [], "next": null })),
        "a full page says where the next one begins"
    );
}

/// Jobs that the listeners of this program have run, run, park and fail.
async fn what_ran(reader: &mut Reader, shop: &Provider) {
    let n = |id: &str| json!({ "payload": { "n": 1 }, "id": id });
    reader.call(ADD, "charge-card", "", n("dies")).await;
    let mut again = n("again");
    again["retry"] = "1h, 1h".into();
    reader.call(ADD, "charge-card", "", again).await;
    a_group_that_stops(reader).await;
    a_group_that_has_spent_its_rate(reader).await;
    let mut kept = n("kept");
    kept["retain"] = "1h".into();
    reader.call(ADD, "welcome-mail", "", kept).await;
    let one = json!({ "kind": "cluster_concurrency", "value": 1, "reason": "the bank asked" });
    reader.call("POST /topics/{topic}/limit", "export-report", "", one).await;
    for id in ["r1", "r2", "r3", "r4", "r5", "r6"] {
        let mut report = n(id);
        if id == "r1" {
            report["group"] = "customer-1".into();
        }
        reader.call(ADD, "export-report", "", report).await;
        // No two are due at the same moment.
        let before = std::time::SystemTime::now() + std::time::Duration::from_millis(2);
        while std::time::SystemTime::now() < before {
            tokio::task::yield_now().await;
        }
    }
    let rate = json!({ "kind": "rate", "value": "1/h" });
    reader.call("POST /topics/{topic}/limit", "welcome-mail", "", rate).await;
    reader.call(ADD, "welcome-mail", "", n("slow")).await;
    reader.why("welcome-mail", "slow", &["rate_spent"]).await;
    reader.get("/topics/{topic}", "welcome-mail", "").await;
    reader.why("charge-card", "dies", &["dead"]).await;
    reader.why("charge-card", "again", &["retry_waits"]).await;
    reader.why("welcome-mail", "kept", &["done"]).await;
    let kept = reader.get("/topics/{topic}/jobs/{id}", "welcome-mail", "kept").await;
    assert_eq!((&kept["result"], &kept["result_bytes"]), (&json!("1"), &json!(1)), "{kept}");
    reader.why("export-report", "r1", &["running"]).await;
    reader.get("/topics/{topic}/groups?cursor=customer", "export-report", "").await;
    reader.why("export-report", "r6", &["no_slot"]).await;
    reader.get("/topics/{topic}", "export-report", "").await;
    let page = reader.program.get("/topic?topic=export-report").await;
    assert!(page.body.contains("1 of 1 run, and due jobs wait for one of them to end"), "{}", page.body);
    reader
        .call(
            "POST /topics/{topic}/limit",
            "export-report",
            "",
            json!({ "kind": "cluster_concurrency", "value": null }),
        )
        .await;
    reader.why("export-report", "r6", &["behind", "busy"]).await;
    let mut job = Value::Null;
    while job["progress"].is_null() || job["kept_state"].is_null() {
        job = reader.get("/topics/{topic}/jobs/{id}", "export-report", "r1").await;
    }
    a_job_of_low_priority(reader, n("low")).await;
    for (topic, state) in
        [("charge-card", "dead"), ("fraud-review", "unacked"), ("welcome-mail", "done"), ("export-report", "running")]
    {
        reader.get(&format!("/topics/{{topic}}/jobs?state={state}"), topic, "").await;
        reader.get("/topics/{topic}", topic, "").await;
    }
    for n in 0..20 {
        shop.topic(&format!("more-{n:02}")).unwrap().add_json(json!(n)).after("1h").await.unwrap();
    }
    reader.get("/topics", "", "").await;
    reader.get("/topics?cursor=n", "", "").await;
    reader.get("/topics/{topic}/past", "charge-card", "").await;
    reader.get("/topics/{topic}/past", "fraud-review", "").await;
    reader.get("/topics/{topic}/nodes", "export-report", "").await;
    reader.get("/topics/{topic}/nodes?cursor=zzz", "export-report", "").await;
}

/// A due job that goes behind all others.
async fn a_job_of_low_priority(reader: &mut Reader, mut job: Value) {
    job["priority"] = "low".into();
    job["group"] = "customer-42".into();
    job["weight"] = 5.into();
    reader.call(ADD, "export-report", "", job).await;
    reader.why("export-report", "low", &["overtaken", "behind", "busy"]).await;
    let page = reader.program.get("/job?topic=export-report&id=low").await;
    assert!(page.body.contains("<dt>Priority</dt><dd>low</dd><dt>Weight</dt><dd>5</dd>"), "{}", page.body);
}

/// A job that its listener parks, and one for which it stops the group.
async fn a_group_that_stops(reader: &mut Reader) {
    for id in ["parked", "waits-for-it"] {
        let job = json!({ "payload": { "n": 1 }, "id": id, "group": "customer-7" });
        reader.call(ADD, "fraud-review", "", job).await;
    }
    reader.why("fraud-review", "parked", &["unacked"]).await;
    reader.why("fraud-review", "waits-for-it", &["group_stopped"]).await;
    let groups = reader.get("/topics/{topic}/groups", "fraud-review", "").await;
    assert_eq!((&groups["groups"][0]["stopped_by"], &groups["groups"][0]["waiting"]), (&json!("parked"), &json!(1)));
    let page = reader.program.get("/topic?topic=fraud-review").await;
    assert!(page.body.contains("stopped") && page.body.contains("action=resume_group"), "{}", page.body);
}

/// Of two jobs of a group one may start in an hour.
async fn a_group_that_has_spent_its_rate(reader: &mut Reader) {
    let limit = "POST /topics/{topic}/limit";
    reader.call(limit, "close-order", "", json!({ "kind": "group_rate", "value": "1/h" })).await;
    for id in ["first", "second"] {
        let job = json!({ "payload": { "n": 1 }, "id": id, "group": "customer-9" });
        reader.call(ADD, "close-order", "", job).await;
    }
    reader.why("close-order", "second", &["group_rate_spent"]).await;
    let groups = reader.get("/topics/{topic}/groups", "close-order", "").await;
    assert!(groups["groups"][0]["rate_opens_at"].is_u64(), "{groups}");
    reader.call(limit, "close-order", "", json!({ "kind": "group_max_waiting", "value": 1 })).await;
    let third = json!({ "payload": { "n": 1 }, "id": "third", "group": "customer-9" });
    let refused = reader.call(ADD, "close-order", "", third).await["error"].to_string();
    assert!(refused.contains("1 jobs of its group customer-9 wait, and 1 may"), "{refused}");
    reader.call(limit, "close-order", "", json!({ "kind": "group_max_waiting", "value": null })).await;
    reader.call(limit, "close-order", "", json!({ "kind": "group_rate", "value": null })).await;
}

/// A page of job sets and one more, one of which has a member that does not come.
async fn the_sets_of_a_topic(reader: &mut Reader, shop: &Provider) {
    let home = shop.topic("home").unwrap();
    for n in 0..101 {
        home.add_json(json!(n)).id("first").after("1h").member_of(&home, format!("set-{n:03}")).await.unwrap();
    }
    let member = json!({ "payload": 1, "id": "m", "set": { "topic": "home", "name": "set-007", "on_dead": "wait" } });
    reader.call(ADD, "other", "", member).await;
    let page = reader.get("/topics/{topic}/sets", "home", "").await;
    assert_eq!((page["sets"].as_array().unwrap().len(), &page["next"]), (100, &json!(100)));
    let last = reader.get("/topics/{topic}/sets?from=100", "home", "").await;
    assert_eq!((&last["sets"][0]["set"], &last["next"]), (&json!("set-100"), &Value::Null));
    let close = "POST /topics/{topic}/sets/{id}/close";
    reader.call(close, "home", "set-007", json!({ "payload": 1, "id": "then" })).await;
    let seen = reader.get("/topics/{topic}/sets/{id}", "home", "set-007").await;
    assert_eq!(seen["waits_for"], json!([["home", "first"], ["other", "m"]]));
    reader.get("/topics/{topic}/sets/{id}", "home", "none").await;
    reader.call(close, "home", "set-007", json!({ "payload": 1, "on_duplicate": "keep" })).await;
}

async fn what_is_changed(reader: &mut Reader, shop: &Provider) {
    shop.topic("moves").unwrap().add_json(json!(1)).id("a").after("1h").await.unwrap();
    let due = shop.inspect().job("moves", "a").await.unwrap().unwrap().at.unwrap().as_millis();
    let when = json!({ "when": "2h" });
    let moved = reader.call("POST /topics/{topic}/jobs/{id}/reschedule", "moves", "a", when.clone()).await;
    assert_eq!(moved, json!({ "changed": true, "former": due }));
    reader.call("POST /topics/{topic}/jobs/{id}/reschedule", "moves", "none", when).await;
    reader.call("POST /topics/{topic}/jobs/{id}/reschedule", "moves", "a", json!({ "when": "never" })).await;
    reader.call("POST /topics/{topic}/jobs/{id}/run-now", "moves", "a", json!({})).await;
    reader.call("POST /topics/{topic}/jobs/{id}/run-now", "moves", "none", json!({})).await;
    let requeued = reader.call("POST /topics/{topic}/jobs/{id}/requeue", "charge-card", "dies", json!({})).await;
    assert_eq!(requeued, json!({ "changed": true, "found": "dead" }));
    let resume = "POST /topics/{topic}/groups/{id}/resume";
    let pause = json!({ "reason": "the bank is down", "lasting": "2h" });
    reader.call("POST /topics/{topic}/groups/{id}/pause", "fraud-review", "customer-7", pause).await;
    let groups = reader.get("/topics/{topic}/groups", "fraud-review", "").await;
    assert_eq!(groups["groups"][0]["pause"]["reason"], json!("the bank is down"));
    reader.why("fraud-review", "waits-for-it", &["group_paused"]).await;
    let page = reader.program.get("/topic?topic=fraud-review").await;
    assert!(page.body.contains("paused") && page.body.contains("the bank is down"), "{}", page.body);
    for (changed, id) in [(true, "customer-7"), (true, "customer-7"), (false, "customer-8")] {
        let resumed = reader.call(resume, "fraud-review", id, json!({})).await;
        assert_eq!(resumed, json!({ "changed": changed }));
    }
    reader.call("POST /topics/{topic}/jobs/{id}/ack", "fraud-review", "parked", json!({})).await;
    reader.call("DELETE /topics/{topic}/jobs/{id}", "charge-card", "again", Value::Null).await;
    reader.why("charge-card", "again", &["gone"]).await;
    reader.call("DELETE /topics/{topic}/jobs/{id}", "export-report", "r1", Value::Null).await;
    reader.why("export-report", "r1", &["running"]).await;
    reader.call("DELETE /topics/{topic}/jobs/{id}", "moves", "a", Value::Null).await;
    let step = json!({ "action": "delete", "state": "delayed" });
    let stepped = reader.call("POST /topics/{topic}/bulk", "many", "", step).await;
    assert_eq!(stepped["changed"], 100);
    let step = json!({ "action": "delete", "state": "delayed", "cursor": stepped["next"] });
    let last = reader.call("POST /topics/{topic}/bulk", "many", "", step).await;
    assert_eq!((&last["changed"], &last["next"]), (&json!(50), &Value::Null));
    assert_eq!(shop.topic("many").unwrap().counts().await.unwrap().delayed, 0);
    reader.call("POST /topics/{topic}/bulk", "many", "", json!({ "action": "eat", "state": "dead" })).await;
    reader.call("POST /topics/{topic}/resume", "waits", "", json!({})).await;
    reader.call("POST /topics/{topic}/undrain", "waits", "", json!({})).await;
    reader.call("POST /topics/{topic}/pause", "waits", "", json!({ "reason": "" })).await;
    reader.call("POST /topics/{topic}/pause", "waits", "", json!({ "why": "x" })).await;
    reader.call("POST /topics/{topic}/schedules/{id}/resume", "ticks", "every-hour-00", json!({})).await;
    reader.call("POST /topics/{topic}/schedules/{id}/resume", "ticks", "none", json!({})).await;
    reader.call("DELETE /topics/{topic}/schedules/{id}", "ticks", "every-hour-00", Value::Null).await;
}
