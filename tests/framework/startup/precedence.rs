//! Where settings come from, and what is wrong with them there; each effective value names its source.

use dq::config::{EffectiveSettings, Source};
use dq::context::ContextFactory;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

use super::{ConfigFile, NONE, refused};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "plain")]
struct Plain;

#[delay_listener(register = false)]
async fn plain(_job: Job<Plain>) -> Result<(), JobError> {
    Ok(())
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "mail:send.v1")]
struct Colon;

#[delay_listener(register = false)]
async fn colon(_job: Job<Colon>) -> Result<(), JobError> {
    Ok(())
}

fn shop() -> ContextFactory {
    let shop = ContextFactory::new("shop").store("memory:").without_inventory().variables(NONE);
    shop.listener::<plain>().listener::<colon>()
}

fn value<'a>(listing: &'a EffectiveSettings, key: &str) -> (&'a str, &'a Source) {
    let listed = listing.get(key).unwrap();
    (&listed.value, &listed.source)
}

#[tokio::test]
async fn settings_of_the_node_have_the_same_levels_and_a_variable_any_topic() {
    let file = ConfigFile::new("node", "lease = \"31s\"\nshutdown_grace = \"1s\"\n");
    let built = shop().lease("30s").heartbeat_interval("9s").max_payload(1024).config_file(file.path());
    let variables = [("DQ_LEASE", "32s"), ("DQ_TOPIC_MAIL_SEND_V1_RETRY", "none")];
    let context = built.variables(variables).start().await.unwrap();
    let settings = context.settings();
    assert_eq!(value(settings, "lease"), ("32s", &Source::Variable("DQ_LEASE".into())));
    assert!(matches!(value(settings, "shutdown_grace"), ("1s", Source::File(_))));
    assert!(matches!(value(settings, "heartbeat_interval"), ("9s", Source::Builder(_))));
    assert_eq!(value(settings, "call_timeout"), ("2s", &Source::Default));
    assert_eq!(value(&context.topic_settings("mail:send.v1").unwrap(), "retry").0, "none");
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
    assert!(error.contains("there is no setting `delay` of topic `plain`: it belongs to the payload"), "{error}");
}
