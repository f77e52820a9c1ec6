//! Environment > config file > builder > listener > payload > default; each effective value names its source.

use dq::config::{Listing, Source};
use dq::context::{Context, ContextFactory};
use dq::prelude::*;
use serde::{Deserialize, Serialize};

use super::{ConfigFile, NONE, refused};

macro_rules! topic {
    ($payload:ident, $topic:literal, #[$job:meta], $listener:ident, #[$declared:meta]) => {
        #[derive(Debug, Serialize, Deserialize, DelayJob)]
        #[$job]
        struct $payload;

        #[$declared]
        async fn $listener(_job: Job<$payload>) -> Result<(), JobError> {
            Ok(())
        }
    };
}

topic!(Plain, "plain", #[job(topic = "plain")], plain, #[delay_listener(register = false)]);
topic!(PayloadSet, "payload", #[job(topic = "payload", retry = "1s")], payload_set, #[delay_listener(register = false)]);
topic!(ListenerSet, "listener", #[job(topic = "listener", retry = "1s")], listener_set, #[delay_listener(register = false, retry = "2s")]);
topic!(Colon, "mail:send.v1", #[job(topic = "mail:send.v1")], colon, #[delay_listener(register = false)]);

fn shop() -> ContextFactory {
    let shop = ContextFactory::new("shop").store("memory:").without_inventory().variables(NONE);
    shop.listener::<plain>().listener::<payload_set>().listener::<listener_set>().listener::<colon>()
}

fn value<'a>(listing: &'a Listing, key: &str) -> (&'a str, &'a Source) {
    let listed = listing.get(key).unwrap();
    (&listed.value, &listed.source)
}

fn retry(context: &Context, topic: &str) -> (String, Source) {
    let settings = context.topic_settings(topic).unwrap();
    let (text, source) = value(&settings, "retry");
    (text.to_owned(), source.clone())
}

#[tokio::test]
async fn each_level_overrides_the_one_below() {
    let context = shop().start().await.unwrap();
    let default = "exponential 10s x 5, factor 3, max 1h, jitter 10%";
    assert_eq!(retry(&context, "plain"), (default.to_owned(), Source::Default));
    assert!(matches!(retry(&context, "payload"), (set, Source::Payload(_)) if set == "1s"));
    assert!(matches!(retry(&context, "listener"), (set, Source::Listener(_)) if set == "2s"));

    let built = || shop().topic("listener", |topic| topic.retry("3s")).topic("payload", |topic| topic.retry("3s"));
    let context = built().start().await.unwrap();
    assert!(matches!(retry(&context, "listener"), (set, Source::Builder(_)) if set == "3s"));

    let file = ConfigFile::new("levels", "[topic.listener]\nretry = \"4s\"\n");
    let context = built().config_file(file.path()).start().await.unwrap();
    assert!(matches!(retry(&context, "listener"), (set, Source::File(at)) if set == "4s" && at.line == 2));
    assert!(matches!(retry(&context, "payload"), (set, Source::Builder(_)) if set == "3s"));

    let variables = [("DQ_TOPIC_LISTENER_RETRY", "5s"), ("DQ_TOPIC_MAIL_SEND_V1_RETRY", "none")];
    let context = built().config_file(file.path()).variables(variables).start().await.unwrap();
    assert_eq!(retry(&context, "listener"), ("5s".to_owned(), Source::Variable("DQ_TOPIC_LISTENER_RETRY".into())));
    assert_eq!(retry(&context, "mail:send.v1").0, "none");
}

#[tokio::test]
async fn settings_of_the_node_have_the_same_levels() {
    let file = ConfigFile::new("node", "lease = \"31s\"\ngrace = \"1s\"\n");
    let built = shop().lease("30s").renewal("9s").payload_limit(1024).config_file(file.path());
    let context = built.variables([("DQ_LEASE", "32s")]).start().await.unwrap();
    let settings = context.settings();
    assert_eq!(value(settings, "lease"), ("32s", &Source::Variable("DQ_LEASE".into())));
    assert!(matches!(value(settings, "grace"), ("1s", Source::File(_))));
    assert!(matches!(value(settings, "renewal"), ("9s", Source::Builder(_))));
    assert_eq!(value(settings, "call_timeout"), ("2s", &Source::Default));
}

#[tokio::test]
async fn a_store_in_the_environment_overrides_a_url_but_not_a_store_value() {
    let taken = refused(shop().variables([("DQ_STORE", "nowhere:")])).await;
    assert!(taken.to_string().contains("the store `nowhere:` (DQ_STORE): there is no scheme `nowhere`"), "{taken}");
    let away = refused(shop().variables([("DQ_STORE", "redis://127.0.0.1:1")])).await.to_string();
    assert!(away.contains("the store redis://127.0.0.1:1 (DQ_STORE) cannot be reached: Connection refused"), "{away}");
    let started = shop().variables([("DQ_STORE", "memory:jobs")]).start().await.unwrap();
    assert!(started.settings().to_string().starts_with("store = memory:jobs (DQ_STORE), lease = "));
    let clock = std::sync::Arc::new(dq::environment::TokioClock::new());
    let store = std::sync::Arc::new(dq::store::memory::MemoryStore::new(clock));
    let started = shop().store(store).variables([("DQ_STORE", "nowhere:")]).start().await;
    assert!(started.is_ok(), "{started:?}");
}

#[tokio::test]
async fn problems_in_a_config_file_name_their_line() {
    let text = "lease = 30\n[topic.plain]\ntimeout = \"none\"\nconcurency = 1\n";
    let file = ConfigFile::new("lines", text);
    let error = refused(shop().config_file(file.path())).await.to_string();
    let path = file.path();
    let expected = format!(
        "cannot start, 2 problems:
  1. `lease` ({path}:1): `30` is not a duration: write a number and a unit, such as \"500ms\", \"30s\", \"15m\", \"1h 30m\" or \
\"2d\"
  2. {path}:4: there is no setting `concurency` of topic `plain`: did you mean `concurrency`?"
    );
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_node_that_only_provides_leaves_the_topics_of_a_shared_file_alone() {
    let file = ConfigFile::new("shared", "[topic.of-another-program]\nretry = \"none\"\n");
    let provider = ContextFactory::new("shop").store("memory:").without_listeners().config_file(file.path());
    let started = provider.variables([("DQ_TOPIC_OF_ANOTHER_PROGRAM_RETRY", "none")]).start().await;
    assert!(started.is_ok(), "{started:?}");
}

#[tokio::test]
async fn a_delay_is_no_setting_of_a_topic() {
    let file = ConfigFile::new("delay", "[topic.plain]\ndelay = \"1m\"\n");
    let error = refused(shop().config_file(file.path())).await.to_string();
    assert!(error.contains("there is no setting `delay` of topic `plain`: a payload says it"), "{error}");
}
