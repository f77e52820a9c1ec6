//! The public API of the provider.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use dq::DelayJob;
use dq::config::NodeSettings;
use dq::environment::{Environment, Seeded, TokioClock};
use dq::job::{AppName, Cause, JobState, Metadata, NodeId, Sequence, State, TopicKey, TopicName};
use dq::provider::{AddedHow, CallError, FailureReason, Invalid, JobInfo, Provider, Refusal};
use dq::store::Link;
use dq::store::step::{Change, Claim, DEFAULT_BYTES, Outcome, Reconcile, Sequenced, Settle, Transfer};
use dq::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::backend::store_under;
use crate::scripted_listener::SECOND;

pub(super) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", delay = "30m", retry = "1m, 5m", expires_after = "2h", retain = "1h")]
struct CloseOrder {
    #[job(id)]
    order: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, DelayJob)]
#[job(topic = "remind")]
struct Remind {
    who: String,
}

fn remind(who: &str) -> Remind {
    Remind { who: who.into() }
}

/// Two providers and a node of one topic, on one store.
pub(super) struct Fixture {
    pub(super) provider: Provider,
    /// The provider of another process.
    elsewhere: Provider,
    node: Arc<dyn Link>,
    sequence: Cell<Sequence>,
}

async fn fixture() -> Fixture {
    Fixture::of("remind", NodeSettings::default()).await
}

impl Fixture {
    /// The node is one of this topic.
    pub(super) async fn of(topic: &str, settings: NodeSettings) -> Self {
        let store = store_under(Arc::new(TokioClock::at(START.as_millis() * 1000)));
        let key = TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new(topic).unwrap() };
        let node = store.link(&key, &NodeId::new("node"));
        let first = node.step(Reconcile { last_seen: Sequence(0), after: None, limit: 10 }).await.unwrap();
        let Sequenced::Done(first) = first else { panic!("the first page needs no sequence number") };
        let [provider, elsewhere] = [1, 2].map(|seed| {
            let environment = Environment::on_this_runtime(Arc::new(Seeded::new(seed)));
            Provider::root(key.app.clone(), Arc::clone(&store), environment, settings.clone())
        });
        Self { provider, elsewhere, node, sequence: Cell::new(first.lease_status.sequence) }
    }

    /// Claims what is due.
    pub(super) async fn claim(&self) -> Vec<Claim> {
        let request = Transfer::new(self.sequence.get(), 1_000, 60 * SECOND);
        let Sequenced::Done(taken) = self.node.step(request).await.unwrap() else {
            panic!("the sequence number is current")
        };
        self.sequence.set(taken.lease_status.sequence);
        taken.claims
    }

    async fn settle(&self, claims: &[Claim], change: Change, metadata: Option<Metadata>) {
        let outcome = |claim: &Claim| Outcome { metadata: metadata.clone(), ..claim.outcome(change.clone()) };
        let outcomes = claims.iter().map(outcome).collect();
        self.node
            .step(Settle { last_seen: self.sequence.get(), lease: 60 * SECOND, bytes: DEFAULT_BYTES, outcomes })
            .await
            .unwrap();
    }
}

/// How long after [`START`] a job is due that waits.
pub(super) fn due<P>(seen: &JobInfo<P>) -> Duration {
    match seen.place {
        JobState::Delayed { due } => due.since(START),
        ref other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_payload_defines_id_delay_retry_expiry_and_retention() {
    let fixture = fixture().await;
    let added = fixture.provider.add(CloseOrder { order: 7 }).await.unwrap();
    assert_eq!((added.id.as_str(), added.how), ("7", AddedHow::New));

    let seen = fixture.provider.get::<CloseOrder>(7).await.unwrap().unwrap();
    assert_eq!((due(&seen), seen.state()), (1800 * SECOND, State::Delayed));
    assert_eq!(seen.payload().unwrap(), CloseOrder { order: 7 });
    let details = seen.details.unwrap();
    assert_eq!((details.delay, details.retain), (1800 * SECOND, 3600 * SECOND));
    assert_eq!(
        details.retry, None,
        "the payload's policy is weaker than its listener's: the node that runs the job has it"
    );
    assert_eq!(details.expires_at, Some(START.after(9000 * SECOND)), "two hours after its first due time");
}

#[tokio::test(start_paused = true)]
async fn an_add_overrides_the_defaults_of_its_payload() {
    let fixture = fixture().await;
    let add = fixture.provider.add(CloseOrder { order: 7 }).id("other").after("15m").retry("none").retain("0s");
    let added = add.expires_after(SECOND).header("trace", "1").header("trace", "2").await.unwrap();
    assert_eq!(added.id.as_str(), "other");
    let seen = fixture.provider.get::<CloseOrder>("other").await.unwrap().unwrap();
    assert_eq!(due(&seen), 900 * SECOND);
    let details = seen.details.unwrap();
    assert_eq!((details.retry.as_deref(), details.retain), (Some("none"), Duration::ZERO));
    assert_eq!(details.expires_at, Some(START.after(901 * SECOND)));
    assert_eq!(details.headers, [("trace".to_owned(), "2".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn the_default_delay_of_a_topic_changes_for_later_adds_only() {
    let fixture = fixture().await;
    fixture.provider.add(CloseOrder { order: 1 }).await.unwrap();
    let set = fixture.elsewhere.set_default_delay::<CloseOrder>("5m").by("anna").await.unwrap();
    assert_eq!((set.before, set.now.map(|now| (now.delay, now.by))), (None, Some((300 * SECOND, "anna".to_owned()))));
    fixture.provider.add(CloseOrder { order: 2 }).await.unwrap();
    fixture.provider.add(CloseOrder { order: 3 }).after("1m").await.unwrap();
    let mut found = Vec::new();
    for order in 1..=3 {
        found.push(due(&fixture.provider.get::<CloseOrder>(order).await.unwrap().unwrap()).as_secs());
    }
    assert_eq!(found, [1800, 300, 60]);
    let error = fixture.provider.set_default_delay::<CloseOrder>("11y").await.unwrap_err();
    assert!(matches!(error, dq::provider::CallError::Invalid(Invalid::TooLong { field: "delay", .. })), "{error}");
    let before = fixture.provider.clear_default_delay::<CloseOrder>().await.unwrap().before.unwrap();
    assert_eq!(before.delay, 300 * SECOND, "the call that failed changed nothing");
}

#[tokio::test(start_paused = true)]
async fn an_existing_id_is_rejected_kept_or_replaced_as_the_caller_chooses() {
    let fixture = fixture().await;
    fixture.provider.add(remind("a")).id(1).after("1h").await.unwrap();
    match fixture.provider.add(remind("b")).id(1).await {
        Err(CallError::Refused { target, refusal: Refusal::Exists(State::Delayed) }) => {
            assert_eq!(target.id.unwrap().as_str(), "1");
        }
        other => panic!("{other:?}"),
    }
    let kept = fixture.provider.add(remind("b")).id(1).keep_existing().await.unwrap();
    assert_eq!(kept.how, AddedHow::Kept(State::Delayed));
    assert_eq!(fixture.provider.get::<Remind>(1).await.unwrap().unwrap().payload().unwrap(), remind("a"));
    let replaced = fixture.provider.add(remind("b")).id(1).replace_existing().await.unwrap();
    assert_eq!(replaced.how, AddedHow::Replaced(State::Delayed));
    assert_eq!(fixture.provider.get::<Remind>(1).await.unwrap().unwrap().payload().unwrap(), remind("b"));
}

#[tokio::test(start_paused = true)]
async fn a_delete_reports_what_it_found() {
    let fixture = fixture().await;
    fixture.provider.add(remind("a")).id(1).after("1h").await.unwrap();
    let gone = fixture.provider.delete::<Remind>(1).await.unwrap();
    assert_eq!((gone.found, gone.changed, gone.removed.is_some()), (Some(State::Delayed), true, true));
    let nothing = fixture.provider.delete::<Remind>(1).await.unwrap();
    assert_eq!((nothing.found, nothing.changed), (None, false));

    fixture.provider.add(remind("b")).id(2).await.unwrap();
    let claims = fixture.claim().await;
    let cancelled = fixture.provider.cancel::<Remind>(2).await.unwrap();
    assert_eq!((cancelled.found, cancelled.changed), (Some(State::Running), true));
    fixture.settle(&claims, Change::Retry(SECOND), None).await;
    assert!(
        fixture.provider.get::<Remind>(2).await.unwrap().is_none(),
        "the pending command ends the job with its run"
    );
}

#[tokio::test(start_paused = true)]
async fn dead_jobs_are_listed_with_their_cause_and_requeued_page_by_page() {
    let fixture = fixture().await;
    let jobs = (0..25).map(|number| remind(&number.to_string()));
    assert_eq!(fixture.provider.add_many(jobs).await.unwrap().len(), 25);
    let claims = fixture.claim().await;
    let metadata = Metadata { attempts: 6, cause: Some(Cause::Error), error: Some("no".into()), ..Metadata::default() };
    fixture.settle(&claims, Change::Dead, Some(metadata)).await;

    let mut dead = fixture.provider.dead::<Remind>().per_page(10);
    let mut sizes = Vec::new();
    while let Some(page) = dead.next_page().await.unwrap() {
        for seen in &page {
            let details = seen.details.as_ref().unwrap();
            assert_eq!((details.attempts, details.cause), (6, Some(Cause::Error)));
            assert_eq!(details.error.as_deref(), Some("no"));
            assert!(seen.payload().unwrap().who.parse::<u32>().unwrap() < 25);
        }
        sizes.push(page.len());
    }
    assert_eq!(sizes, [10, 10, 5]);

    let mut dead = fixture.provider.dead::<Remind>().per_page(10);
    let first = dead.requeue_next().await.unwrap().unwrap();
    assert_eq!((first.changed, first.untouched), (10, 0));
    let cursor = dead.cursor().unwrap().clone();
    let mut rest = fixture.provider.dead::<Remind>().per_page(10).starting_after(cursor);
    let mut changed = 0;
    while let Some(swept) = rest.requeue_next().await.unwrap() {
        changed += swept.changed;
    }
    assert_eq!(changed, 15);
    let counts = fixture.provider.counts::<Remind>().await.unwrap();
    assert_eq!((counts.dead, counts.delayed, counts.ready), (0, 25, 25));

    let mut waiting = fixture.provider.waiting::<Remind>().per_page(1_000);
    assert_eq!(waiting.delete_next().await.unwrap().unwrap().changed, 25);
    assert_eq!(waiting.delete_next().await.unwrap(), None);
    assert_eq!(fixture.provider.counts::<Remind>().await.unwrap().delayed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_a_result_for_each_job() {
    let fixture = fixture().await;
    let orders = [1, 2, 1, 3].map(|order| CloseOrder { order });
    fixture.provider.add(CloseOrder { order: 3 }).await.unwrap();
    let results = fixture.provider.add_many(orders).after("1m").await.unwrap();
    assert!(matches!(&results[0], Ok(added) if added.id.as_str() == "1"));
    assert!(matches!(&results[1], Ok(added) if added.id.as_str() == "2"));
    assert!(matches!(&results[2], Err(CallError::Invalid(Invalid::RepeatedInBatch { id })) if id.as_str() == "1"));
    assert!(
        matches!(&results[3], Err(CallError::Refused { target, refusal: Refusal::Exists(_) }) if target.id.as_ref().unwrap().as_str() == "3")
    );
    assert_eq!(fixture.provider.counts::<CloseOrder>().await.unwrap().delayed, 3);
    assert!(fixture.provider.add_many::<CloseOrder>([]).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_more_than_a_thousand_jobs_is_rejected_as_a_whole() {
    let fixture = fixture().await;
    let refused = fixture.provider.add_many((0..1_001).map(|order| CloseOrder { order })).await.unwrap_err();
    assert_eq!(refused.to_string(), "the batch has 1001 jobs; the limit is 1000");
    assert_eq!(fixture.provider.counts::<CloseOrder>().await.unwrap().delayed, 0);
    let all = fixture.provider.add_many((0..1_000).map(|order| CloseOrder { order })).await.unwrap();
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(fixture.provider.counts::<CloseOrder>().await.unwrap().delayed, 1_000);
}

#[tokio::test(start_paused = true)]
async fn invalid_adds_report_field_limit_and_size_and_add_nothing() {
    let mut settings = NodeSettings::default();
    settings.max_payload = 100;
    let fixture = Fixture::of("remind", settings).await;
    let provider = &fixture.provider;
    let text = |result: Result<_, CallError>| result.map(|_: dq::provider::Added| ()).unwrap_err().to_string();
    let long = "x".repeat(100);
    let cases = [
        (
            text(provider.add(remind(&long)).await),
            "the payload of topic `remind` has 110 bytes; the limit is 100 (`max_payload`)",
        ),
        (
            text(provider.add(remind("")).header("h", "x".repeat(8 * 1024)).await),
            "the size of the headers in bytes, with 4 for each header, is 8197; the limit is 8192",
        ),
        (text(provider.add(remind("")).id("x".repeat(257)).await), "is 257 bytes long; the limit is 256"),
        (text(provider.add(remind("")).after("2x").await), "`after`: `2x` is not a duration"),
        (text(provider.add(remind("")).expires_after("2x").await), "`expires_after`: `2x` is not a duration"),
        (text(provider.add(remind("")).after(Duration::MAX).await), "the limit is ten years"),
        (text(provider.add(remind("")).at(Timestamp::from_millis(u64::MAX)).await), "`at` is "),
        (text(provider.add(remind("")).retain("4000d").await), "`retain` is 4000d; the limit is ten years"),
        (text(provider.add(remind("")).retry("sometimes").await), "`retry`: `sometimes` is not a retry policy"),
    ];
    for (text, expected) in cases {
        assert!(text.contains(expected), "{text}");
    }
    let bad = provider.delete::<Remind>("").await;
    assert!(matches!(bad, Err(CallError::Invalid(Invalid::InvalidName(_)))));
    assert!(provider.topic("what?").unwrap_err().to_string().contains("'?'"));
    assert!(
        provider
            .topic("remind")
            .unwrap()
            .add_json("{")
            .await
            .is_err_and(|e| matches!(e, CallError::Invalid(Invalid::BadPayload { .. })))
    );
    assert_eq!(provider.counts::<Remind>().await.unwrap().delayed, 0);
}

#[tokio::test(start_paused = true)]
async fn the_untyped_form_does_the_same_without_a_type() {
    let fixture = fixture().await;
    let topic = fixture.provider.topic("remind").unwrap();
    topic.add_json(json!({ "who": "a" })).id(1).after("1m").await.unwrap();
    topic.add_json(r#"{ "who":  "b" }"#).id(2).after("2m").await.unwrap();
    assert_eq!(fixture.provider.get::<Remind>(1).await.unwrap().unwrap().payload().unwrap(), remind("a"));
    let second: JobInfo<Value> = topic.get(2).await.unwrap().unwrap();
    assert_eq!(second.raw_payload().unwrap().1, br#"{ "who":  "b" }"#, "the text is kept unchanged");
    assert_eq!(second.payload().unwrap(), json!({ "who": "b" }));
    let waiting = topic.waiting().next_page().await.unwrap().unwrap();
    assert_eq!(waiting.iter().map(|seen| seen.id.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    assert!(topic.delete(1).await.unwrap().changed);
    assert_eq!(topic.counts().await.unwrap().delayed, 1);
    let many = topic.add_many_json([json!(1), json!([])]).after("1h").await.unwrap();
    assert!(many.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn generated_ids_sort_in_the_order_of_the_adds() {
    let fixture = fixture().await;
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(fixture.provider.add(remind("a")).after("1h").await.unwrap().id);
    }
    assert!(ids.is_sorted());
}

#[tokio::test(start_paused = true)]
async fn a_closed_provider_refuses_adds_and_still_answers_queries() {
    let fixture = fixture().await;
    let clone = fixture.provider.clone();
    let in_flight = tokio::spawn(clone.add(remind("a")).id(1).after("1h"));
    tokio::task::yield_now().await;
    fixture.provider.close().await;
    assert!(in_flight.await.unwrap().is_ok(), "adds in flight are flushed");
    assert!(matches!(clone.add(remind("b")).await, Err(CallError::NotDone { reason: FailureReason::Stopped, .. })));
    assert!(matches!(
        clone.add(CloseOrder { order: 1 }).await,
        Err(CallError::NotDone { reason: FailureReason::Stopped, .. })
    ));
    assert!(matches!(clone.delete::<Remind>(1).await, Err(CallError::NotDone { reason: FailureReason::Stopped, .. })));
    assert!(clone.get::<Remind>(1).await.unwrap().is_some());
}
