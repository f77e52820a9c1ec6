//! First contact with stores that misbehave or are not there yet, listeners that no attribute would accept, and the log of a start.

mod reachable;

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::future::{pending, ready};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::context::{ContextFactory, Error, Problem, StartError};
use crate::environment::TokioClock;
use crate::job::{AppName, DelayJob, JobDefaults, NodeId, ProducerId, TopicKey};
use crate::listener::{Channel, Decided, Declared, DelayListener, Dependency, Injector, Job, JobError, Missing};
use crate::provider::Provider;
use crate::store::memory::MemoryStore;
use crate::store::{Interest, Link, LinkOptions, Producer, Query, QueryReply, Signals, Store, StoreError};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Well,
    Denied,
    Down,
    Silent,
    Newer,
    NoDirectory,
}

/// The memory store, with other answers to the first questions.
#[derive(Debug)]
struct Moody(Mutex<Mood>, MemoryStore, AtomicUsize);

impl Moody {
    fn new(mood: Mood) -> Arc<Self> {
        Arc::new(Self(Mutex::new(mood), MemoryStore::new(Arc::new(TokioClock::new())), AtomicUsize::new(0)))
    }

    fn mood(&self) -> Mood {
        *self.0.lock().unwrap()
    }

    fn is_now(&self, mood: Mood) {
        *self.0.lock().unwrap() = mood;
    }

    /// How often it was asked whether it is there, or for a topic.
    fn asked(&self) -> usize {
        self.2.load(Relaxed)
    }

    fn down() -> StoreError {
        StoreError::NotSent { operation: "ping", reason: "connection refused".into() }
    }
}

impl Store for Moody {
    fn url(&self) -> String {
        "moody:".into()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        if matches!(query, Query::Contact {} | Query::Open { .. }) {
            self.2.fetch_add(1, Relaxed);
        }
        match (query, self.mood()) {
            (Query::Contact {} | Query::Open { .. }, Mood::Down) => Box::pin(ready(Err(Self::down()))),
            (Query::Contact {}, Mood::Denied) => {
                let reason = "WRONGPASS (fix user and password in the URL)".into();
                Box::pin(ready(Err(StoreError::Denied { operation: "ping", reason })))
            }
            (Query::Contact {}, Mood::Silent) | (Query::TopicsBehind { .. }, Mood::NoDirectory) => Box::pin(pending()),
            (Query::Open { topic }, Mood::Newer) => {
                Box::pin(ready(Err(StoreError::Version { topic: topic.clone(), found: 2, ours: 1 })))
            }
            (query, _) => self.1.ask(query),
        }
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        self.1.link_with(topic, node, options)
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        self.1.producer(topic, producer)
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.1.signals(topic, interest)
    }
}

/// A listener without the attribute, and so without its checks.
macro_rules! by_hand {
    ($payload:ident, $listener:ident, $topic:expr, $line:literal, $settings:expr) => {
        #[derive(Debug, Serialize, Deserialize)]
        struct $payload;

        impl DelayJob for $payload {
            const TOPIC: &'static str = $topic;
            const DEFAULTS: JobDefaults = JobDefaults::NONE;
        }

        #[derive(Debug)]
        struct $listener;

        impl Declared for $listener {
            const NAME: &'static str = stringify!($listener);
            const DECLARED_AT: &'static str = concat!("src/hand.rs:", $line);
            const TOPIC: Option<&'static str> = None;
            const SETTINGS: &'static [(&'static str, &'static str)] = $settings;

            fn dependencies() -> Vec<Dependency> {
                Vec::new()
            }

            fn inject(_injector: &Injector) -> Result<Self, Missing> {
                Ok(Self)
            }
        }

        impl DelayListener for $listener {
            type Job = $payload;

            async fn on_due(&self, _job: Job<$payload>, channel: Channel) -> Result<Decided, JobError> {
                Ok(channel.ack())
            }
        }
    };
}

by_hand!(GoodJob, Good, "good", 7, &[("concurrency", "8")]);
by_hand!(SpacedJob, Spaced, "with space", 11, &[]);
by_hand!(WrongJob, Wrong, "wrong", 9, &[("retry", "5x"), ("concurrency", "0")]);

/// A name of 128 bytes.
macro_rules! longest {
    () => {
        concat!(longest!(@32), longest!(@32), longest!(@32), longest!(@32))
    };
    (@32) => {
        "a-name-that-has-exactly-32-bytes"
    };
}

by_hand!(LongestJob, Longest, longest!(), 13, &[]);
by_hand!(TooLongJob, TooLong, concat!(longest!(), "s"), 15, &[]);

fn shop(store: Arc<Moody>) -> ContextFactory {
    let none = BTreeMap::<String, String>::new();
    ContextFactory::new("shop").store(store).variables(none).without_inventory()
}

async fn start_error(factory: ContextFactory) -> StartError {
    match factory.start().await {
        Err(Error::Start(error)) => error,
        other => panic!("the start should fail: {other:?}"),
    }
}

#[tokio::test]
async fn names_and_texts_that_were_written_by_hand_are_checked() {
    let error = start_error(shop(Moody::new(Mood::Well)).listener::<Wrong>().listener::<Spaced>()).await;
    let expected = "cannot start, 3 problems:
  1. `Spaced` (src/hand.rs:11): the topic `with space` contains ' '; write A-Z a-z 0-9 . _ : -
  2. `concurrency` of topic `wrong` is 0 (listener at src/hand.rs:9), but it must be between 1 and 100000: write \
`concurrency = 1` or more
  3. `retry` of topic `wrong` (listener at src/hand.rs:9): `5x` is not a retry policy: write `none`, \
`immediate x 3`, `30s x 5`, `1m, 5m, 10m` or `exponential 10s x 5`";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn names_of_128_bytes_start_and_longer_ones_are_refused() {
    let none = BTreeMap::<String, String>::new();
    let app = |name: &str| ContextFactory::new(name).store("memory:").variables(none.clone()).without_inventory();
    let context = app(longest!()).listener::<Longest>().start().await.unwrap();
    assert_eq!(context.topics().map(|topic| topic.as_str().len()).collect::<Vec<_>>(), [128]);
    let error =
        start_error(app(concat!(longest!(), "s")).listener::<Longest>().listener::<TooLong>()).await.to_string();
    assert!(error.starts_with("cannot start, 2 problems:"), "{error}");
    assert_eq!(error.matches("is 129 bytes long; the limit is 128").count(), 2, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_given_up_after_the_time_of_a_call() {
    let before = tokio::time::Instant::now();
    let error = start_error(shop(Moody::new(Mood::Silent)).listener::<Good>().call_deadline("3s")).await;
    assert_eq!(before.elapsed(), Duration::from_secs(3));
    assert!(error.to_string().ends_with("the store moody: cannot be reached: no answer within 3s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_is_not_read_in_time_delays_a_start_by_a_second_and_keeps_nothing_from_starting() {
    let before = tokio::time::Instant::now();
    let _context = shop(Moody::new(Mood::NoDirectory)).listener::<Good>().start().await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(1));
    let before = tokio::time::Instant::now();
    let _context = shop(Moody::new(Mood::NoDirectory)).without_listeners().start().await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO, "a program that only adds needs no warning");
}

#[tokio::test]
async fn a_topic_of_another_protocol_is_not_started() {
    let error = start_error(shop(Moody::new(Mood::Newer)).listener::<Good>()).await;
    assert!(matches!(error.problems(), [Problem::StoreTopic { .. }]), "{error}");
    assert!(
        error.to_string().contains("shop:good uses protocol version 2, but this version of dq speaks version 1"),
        "{error}"
    );
}

/// Collects the log lines of one thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = ["dq::context::", "dq::config::"].iter().any(|module| metadata.target().starts_with(module));
        *metadata.level() <= Level::INFO && ours
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn the_start_log_has_settings_and_jobs_that_no_listener_runs() {
    let store = Moody::new(Mood::Well);
    let environment = crate::environment::Environment::of_this_runtime().unwrap();
    let app = AppName::new("shop").unwrap();
    let jobs = Provider::root(app, store.clone(), environment, crate::config::NodeSettings::default());
    for topic in ["good", "elsewhere"] {
        jobs.topic(topic).unwrap().add_json("7").after("1h").await.unwrap();
    }
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let _context = shop(store).listener::<Good>().lease("20s").start().await.unwrap();
    let lines = lines.0.lock().unwrap();
    let [unserved, starting, listening] = &lines[..] else { panic!("{lines:?}") };
    assert!(unserved.starts_with("WARN") && unserved.contains("topic=elsewhere waiting=1"), "{unserved}");
    assert!(starting.starts_with("INFO") && starting.contains("store=\"moody:\""), "{starting}");
    assert!(starting.contains("settings=lease = 20s (builder at "), "{starting}");
    let concurrency = "topic=good listener=\"Good\" declared_at=\"src/hand.rs:7\" settings=concurrency = 8 (listener at \
                       src/hand.rs:7)";
    assert!(listening.starts_with("INFO") && listening.ends_with(concurrency), "{listening}");
}

#[tokio::test(start_paused = true)]
async fn what_the_environment_and_the_file_have_for_others_is_named_in_two_lines_and_keeps_no_node_from_starting() {
    let path = std::env::temp_dir().join(format!("dq-{}-unused.toml", std::process::id()));
    std::fs::write(&path, "[topic.goood]\nretry = \"none\"\n[topic.mail]\nretry = \"none\"\n").unwrap();
    let variables = [
        ("DQ_REDIS_PORT", "tcp://secret:6379"),
        ("DQ_LAESE", "9s"),
        ("DQ_TOPIC_MAIL_RETRY", "none"),
        ("DQ_SHUTDOWN_GRACE", "1s"),
    ];
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let factory = shop(Moody::new(Mood::Well)).listener::<Good>().config_file(&path).variables(variables);
    let started = factory.start().await;
    std::fs::remove_file(&path).unwrap();
    assert!(started.is_ok(), "{started:?}");
    let lines = lines.0.lock().unwrap();
    let [variables, topics, starting, ..] = &lines[..] else { panic!("{lines:?}") };
    assert!(variables.starts_with("WARN"), "{variables}");
    assert!(variables.contains("variables=\"`DQ_LAESE` (did you mean `DQ_LEASE`?), `DQ_REDIS_PORT`\""), "{variables}");
    assert!(topics.starts_with("INFO"), "{topics}");
    let file = path.display();
    let expected = format!("`goood` ({file}:1; did you mean `good`?), `mail` ({file}:3), `DQ_TOPIC_MAIL_RETRY`");
    assert!(topics.contains(&expected), "{topics}");
    assert!(starting.contains("shutdown_grace = 1s (DQ_SHUTDOWN_GRACE)"), "{starting}");
}

#[tokio::test(start_paused = true)]
async fn a_topic_without_a_listener_that_the_builder_names_is_a_problem() {
    let error = start_error(shop(Moody::new(Mood::Well)).listener::<Good>().topic("goood", |topic| topic)).await;
    assert!(error.to_string().ends_with("topic `goood` has settings but no listener: did you mean `good`?"), "{error}");
}

/// Each setting alone, with a value at which the defaults of others do not fit.
#[tokio::test(start_paused = true)]
async fn a_single_setting_that_the_defaults_do_not_fit_to_starts_and_is_listed_with_what_follows_it() {
    for (key, text, follows) in [
        ("lease", "2s", "heartbeat_interval = 666ms (follows `lease`)"),
        ("heartbeat_interval", "1m", "lease = 3m (follows `heartbeat_interval`)"),
        ("call_timeout", "20s", "lease = 25s (follows `heartbeat_interval` and `call_timeout`)"),
        ("call_deadline", "1s", "call_timeout = 1s (follows `call_deadline`)"),
    ] {
        let variables = [(format!("DQ_{}", key.to_uppercase()), text)];
        let context = shop(Moody::new(Mood::Well)).listener::<Good>().variables(variables).start().await.unwrap();
        let listing = context.settings().to_string();
        assert!(listing.contains(follows), "{listing}");
    }
}
