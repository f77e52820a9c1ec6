//! Selecting the listeners that a node runs.

use std::time::Duration;

use dq::context::{Context, ContextFactory, Problem};
use dq::job::{AppName, TopicName};
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::{NONE, refused};

macro_rules! topic {
    ($payload:ident, $topic:literal, $listener:ident) => {
        #[derive(Debug, Serialize, Deserialize, DelayJob)]
        #[job(topic = $topic)]
        struct $payload;

        #[delay_listener(register = false)]
        async fn $listener(_job: Job<$payload>) -> Result<(), JobError> {
            Ok(())
        }
    };
}

topic!(One, "one", one);
topic!(Two, "two", two);
topic!(Three, "three", three);

#[derive(Debug, Deserialize)]
struct News;

#[broadcast_listener(channels = ["news"], register = false)]
struct Newspaper {}

impl BroadcastListener for Newspaper {
    type Message = News;
    async fn on_message(&self, _news: Broadcast<News>) -> Result<(), JobError> {
        Ok(())
    }
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "found")]
struct Found;

#[delay_listener]
async fn found(_job: Job<Found>) -> Result<(), JobError> {
    Ok(())
}

#[tokio::test]
async fn an_annotated_listener_runs_without_being_named() {
    let received = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default(); // of a listener of another module
    let shop = ContextFactory::new("shop").store("memory:").variables(NONE).provide(received);
    assert_eq!(topics(&shop.listener::<one>().only(["found", "one"]).start().await.unwrap()), ["found", "one"]);
}

fn shop() -> ContextFactory {
    let shop = ContextFactory::new("shop").store("memory:").without_inventory().variables(NONE);
    shop.listener::<three>().listener::<two>().listener::<one>().listener::<two>()
}

fn topics(context: &Context) -> Vec<&str> {
    context.topics().map(TopicName::as_str).collect()
}

#[tokio::test]
async fn all_listeners_run_once_unless_some_are_selected() {
    assert_eq!(topics(&shop().start().await.unwrap()), ["one", "three", "two"]);
    assert_eq!(topics(&shop().only(["one", "two"]).start().await.unwrap()), ["one", "two"]);
    assert_eq!(topics(&shop().except(["one"]).start().await.unwrap()), ["three", "two"]);
    assert_eq!(topics(&shop().only(["one", "two"]).except(["one"]).start().await.unwrap()), ["two"]);
    assert_eq!(topics(&shop().without_listeners().start().await.unwrap()), [""; 0]);
}

#[tokio::test]
async fn a_topic_that_is_left_out_may_have_settings() {
    let shop = shop().except(["two"]).topic("two", |topic| topic.concurrency(8));
    assert_eq!(topics(&shop.start().await.unwrap()), ["one", "three"]);
}

#[tokio::test]
async fn an_unknown_topic_in_a_selection_is_a_problem() {
    let error = refused(shop().only(["one", "tow"]).except(["news"])).await;
    let text = error.to_string();
    assert!(text.contains("`.except(..)` at"), "{text}");
    assert!(text.contains("names topic `news`, which has no listener\n"), "{text}");
    assert!(text.ends_with("names topic `tow`, which has no listener: did you mean `two`?"), "{text}");
}

#[tokio::test]
async fn a_selection_that_leaves_nothing_is_a_problem() {
    let error = refused(shop().except(["one", "two", "three"])).await;
    assert!(matches!(error.problems(), [Problem::NoneLeft { registered: 3 }]), "{error}");
}

#[tokio::test]
async fn a_broadcast_channel_can_be_expected_and_stays_when_topics_are_selected() {
    let shop = shop().broadcast_listener::<Newspaper>().except(["one", "two", "three"]).expect_topics(["news", "one"]);
    assert_eq!(topics(&shop.start().await.unwrap()), [""; 0]);
}

#[tokio::test]
async fn two_factories_that_name_one_store_are_two_nodes_of_it() {
    let (a, b) = (shop().store("memory:two-nodes"), shop().store("memory:two-nodes"));
    let (a, b) = (a.start().await.unwrap(), b.start().await.unwrap());
    a.provider().add(One).id("1").after("1h").await.unwrap();
    assert!(b.provider().get::<One>("1").await.unwrap().is_some());
    a.shutdown(Duration::ZERO).await;
    b.ready().await;
    assert!(b.health().ready, "it is another node");
    let other = shop().store("memory:another").start().await.unwrap();
    assert!(other.provider().get::<One>("1").await.unwrap().is_none());
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "hello")]
struct Hello;

#[delay_listener(register = false)]
async fn hello(
    _job: Job<Hello>,
    provider: Provider,
    app: AppName,
    events: UnboundedSender<String>,
) -> Result<(), JobError> {
    events.send(format!("{app}, {}", provider.app()))?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_listener_gets_what_is_provided_and_what_dq_provides_itself() {
    let (sender, mut events) = unbounded_channel::<String>();
    let shop = ContextFactory::new("shop").store("memory:").variables(NONE).without_inventory();
    let context = shop.listener::<hello>().provide(sender).start().await.unwrap();
    context.provider().add(Hello).await.unwrap();
    assert_eq!(events.recv().await.as_deref(), Some("shop, shop"));
}
