//! One error at startup reports every problem.

use std::sync::Arc;

use dq::context::{ContextFactory, Problem};
use dq::prelude::*;
use dq_testing::conformance::StoreFixture;
use serde::{Deserialize, Serialize};

use super::{ConfigFile, NONE, refused};

trait Notify: Send + Sync {}

#[derive(Debug, Clone)]
struct Mailer;
impl Notify for Mailer {}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder;

#[delay_listener(register = false)] // [close]
async fn close(_job: Job<CloseOrder>, _notify: Arc<dyn Notify>) -> Result<(), JobError> {
    Ok(())
}

#[delay_listener(register = false)] // [close_again]
async fn close_again(_job: Job<CloseOrder>) -> Result<(), JobError> {
    Ok(())
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "remind")]
struct Remind;

#[delay_listener(register = false)] // [remind]
async fn remind(_job: Job<Remind>, _mailer: Arc<dyn Notify>, _limit: u32) -> Result<(), JobError> {
    Ok(())
}

/// Returns the position of the line that ends in `// [marker]`, as errors print it.
fn at(marker: &str) -> String {
    let ending = format!("// [{marker}]");
    let line = include_str!("errors.rs").lines().position(|line| line.ends_with(&ending)).unwrap();
    format!("{}:{}", file!(), line + 1)
}

#[tokio::test]
async fn one_start_error_reports_every_problem() {
    let file = ConfigFile::new("eight", "lease = \"10m\"\nshutdown_grase = \"5s\"\n");
    let shop = ContextFactory::new("my shop"); // [app]
    let shop = shop.without_inventory().listener::<close_again>().listener::<close>().listener::<remind>();
    let shop = shop.expect_topics(["remind", "order-timeouts", "in-another-crate"]); // [expect]
    let shop = shop.provide(7_u8); // [first]
    let shop = shop.provide(8_u8); // [second]
    let shop = shop.store("reddis://me:secret@host"); // [store]
    let error = refused(shop.config_file(file.path()).variables([("DQ_SHUTDOWN_GRACE", "5x")])).await;
    let (app, expect, store, first, second) = (at("app"), at("expect"), at("store"), at("first"), at("second"));
    let (close, close_again, remind, file) = (at("close"), at("close_again"), at("remind"), file.path());
    let expected = format!(
        "cannot start, 11 problems:
  1. the app name `my shop` contains ' '; write A-Z a-z 0-9 . _ - ({app})
  2. topic `order-timeout` has 2 listeners; keep one of: `close` ({close}), `close_again` ({close_again})
  3. topic `in-another-crate` is expected ({expect}) and has no listener: if it is in another crate, mention that as `use \
that_crate as _;`
  4. topic `order-timeouts` is expected ({expect}) and has no listener: did you mean `order-timeout`?
  5. `shutdown_grace` (DQ_SHUTDOWN_GRACE): `5x` is not a duration: write a number and a unit, such as \"500ms\", \"30s\", \"15m\", \"1h 30m\" or \"2d\"
  6. `lease` is 10m ({file}:1), but it must be between 100ms and 5m: write `lease = \"5m\"` or less
  7. {file}:2: there is no setting `shutdown_grase`: did you mean `shutdown_grace`?
  8. `u8` is provided twice, at {first} and at {second}: wrap one in a newtype of yours
  9. `Arc<dyn Notify>` was not provided: call `.provide(..)` with a value of exactly that type; needed by
       `close` ({close}) as `notify`
       `remind` ({remind}) as `mailer`
 10. `u32` was not provided: call `.provide(..)` with a value of exactly that type; needed by
       `remind` ({remind}) as `limit`
 11. the store `reddis://***@host` (builder at {store}): there is no scheme `reddis` (did you mean `redis:`?); there is \
`file:DIRECTORY` (on disk, for one process), `memory:` (private to its factory), `memory:NAME` (shared by name in this process), \
`redis://HOST` (many nodes on one server), `redis+sentinel://HOST,HOST/SERVICE` and `redis+cluster://HOST,HOST`; with TLS they begin \
with `rediss`
  provided are
       `u8` ({first})"
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(format!("{error:?}"), expected, "`main` prints `Debug`");
    assert_eq!(format!("{:?}", dq::Error::from(error)), expected);
}

#[tokio::test]
async fn an_error_about_a_missing_dependency_lists_what_is_provided() {
    let shop = ContextFactory::new("shop").store("memory:").variables(NONE).without_inventory().listener::<close>();
    let error = refused(shop.provide(Arc::new(Mailer)).provide(at("close"))).await;
    let text = error.to_string();
    assert!(matches!(error.problems(), [Problem::NotProvided { written: "Arc<dyn Notify>", .. }]), "{text}");
    assert!(text.contains("Mailer>` ("), "{text}");
    let shop = ContextFactory::new("shop").store("memory:").variables(NONE).without_inventory().listener::<close>();
    assert!(refused(shop).await.to_string().ends_with("\n  nothing is provided"));
}

mod grpc {
    #[derive(Debug, Clone)]
    pub(super) struct Channel;
}

#[delay_listener(register = false)] // [call]
async fn call(_job: Job<Remind>, _bank: grpc::Channel) -> Result<(), JobError> {
    Ok(())
}

/// Only the compiler knows whether a `Channel` is that of dq, which nobody provides.
#[tokio::test]
async fn a_missing_dependency_that_is_called_channel_is_named_like_any_other() {
    let shop = ContextFactory::new("shop").store("memory:").variables(NONE).without_inventory().listener::<call>();
    let error = refused(shop).await.to_string();
    let needed = format!(
        "`grpc::Channel` was not provided: call `.provide(..)` with a value of exactly that type; needed by\n       `call` ({}) as `bank`",
        at("call")
    );
    assert!(error.contains(&needed), "{error}");
}

#[tokio::test]
async fn providing_a_type_that_dq_provides_is_an_error() {
    let app = dq::job::AppName::new("shop").unwrap();
    let shop = ContextFactory::new("shop").store("memory:").variables(NONE).without_listeners();
    let shop = shop.provide(app); // [own]
    let error = refused(shop).await.to_string();
    let expected = format!("`dq::job::ident::AppName` is provided at {}, but dq provides it itself", at("own"));
    assert!(error.contains(&expected), "{error}");
}

#[tokio::test]
async fn a_node_without_store_and_listeners_does_not_start() {
    let error = refused(ContextFactory::new("shop").without_inventory().variables(NONE)).await;
    assert!(matches!(error.problems(), [Problem::NoListener, Problem::NoStore]), "{error}");
    assert!(error.to_string().contains("no store is chosen: call `.store(\"file:"), "{error}");
}

#[tokio::test]
async fn builder_settings_written_as_text_are_checked_at_start() {
    let shop =
        ContextFactory::new("shop").store("memory:").variables(NONE).without_inventory().listener::<close_again>();
    let shop = shop.shutdown_grace("5x"); // [shutdown_grace]
    let shop = shop.topic("order-timeout", |topic| topic.timeout("soon").retry("5x")); // [topic]
    let error = refused(shop).await.to_string();
    let (grace, topic) = (at("shutdown_grace"), at("topic"));
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(lines.len(), 4, "{error}");
    assert!(lines[1].contains(&format!("`shutdown_grace` (builder at {grace}): `5x` is not a duration")), "{error}");
    let policy = format!("`retry` of topic `order-timeout` (builder at {topic}): `5x` is not a retry policy");
    assert!(lines[2].contains(&policy), "{error}");
    let limit = format!("`timeout` of topic `order-timeout` (builder at {topic}): `soon` is not a duration");
    assert!(lines[3].contains(&limit), "{error}");
}

#[tokio::test]
async fn only_a_store_with_replicas_can_wait_for_them() {
    let shop = || ContextFactory::new("shop").without_listeners();
    let wait = [("DQ_DURABILITY", "wait(1, 500ms)")];
    let error = refused(shop().store("memory:").variables(wait)).await.to_string();
    assert_eq!(
        error,
        "cannot start, 1 problem:\n  1. `durability` is wait(1, 500ms) (DQ_DURABILITY), but it must be \"local\" on `memory:`, \
         which has no replicas: write `durability = \"local\"`, or take a `redis:` store"
    );
    let interval = [("DQ_DURABILITY", "interval:50ms")];
    let error = refused(shop().store("memory:").variables(interval)).await.to_string();
    assert!(error.contains("it must be \"local\" on `memory:`, which syncs no files of its own"), "{error}");
    let sync = [("DQ_DURABILITY", "sync")];
    for (url, fix) in [
        ("memory:", "or take a `file:` store"),
        ("redis://127.0.0.1:1/", "the server sync each write with `appendfsync always`"),
    ] {
        let error = refused(shop().store(url).variables(sync)).await.to_string();
        assert!(error.contains("`durability` is sync (DQ_DURABILITY), but it must be \"local\" on `"), "{error}");
        assert!(error.contains(fix), "{error}");
    }
    let made = dq_tests::Fixture::memory().store();
    let error = refused(shop().store(made).variables(wait)).await.to_string();
    assert!(error.contains("beside a store that was made by hand: write it where that store is made"), "{error}");
    let error =
        refused(shop().store("redis://127.0.0.1:1/").variables([("DQ_DURABILITY", "wait(1)")])).await.to_string();
    assert!(error.contains("`durability` (DQ_DURABILITY): `wait(1)` is not \"local\", \"sync\""), "{error}");
}

#[tokio::test]
async fn a_memory_limit_is_for_a_store_in_files_that_dq_makes() {
    let shop = || ContextFactory::new("shop").without_listeners().variables([("DQ_MAX_MEMORY", "2097152")]);
    let error = refused(shop().store("memory:")).await.to_string();
    assert!(error.contains("`max_memory` is 2097152 (DQ_MAX_MEMORY), but it must be unset on `memory:`"), "{error}");
    let error = refused(shop().store(dq_tests::Fixture::memory().store())).await.to_string();
    assert!(error.contains("beside a store that was made by hand: write it where that store is made"), "{error}");
}

#[tokio::test]
async fn an_error_about_an_unsupported_store_names_the_supported_ones() {
    let database = ContextFactory::new("shop").store("redis+cluster://host/2").variables(NONE).without_listeners();
    let error = refused(database).await.to_string();
    assert!(error.contains("a cluster has no databases: end it after the last host"), "{error}");
    let nameless = ContextFactory::new("shop").store("redis+sentinel://host").variables(NONE).without_listeners();
    let error = refused(nameless).await.to_string();
    assert!(error.contains("it names no service: write redis+sentinel://HOST,HOST,HOST/SERVICE"), "{error}");
}

#[tokio::test]
async fn a_provider_alone_needs_a_store_that_others_can_reach() {
    let error = dq::Provider::connect("shop", "memory:").await.unwrap_err().to_string();
    assert!(error.contains("the store `memory:` (builder at "), "{error}");
    assert!(error.contains("no node could run its jobs: name it as `memory:NAME`"), "{error}");
    let provider = dq::Provider::connect("shop", "memory:provided").await.unwrap();
    assert_eq!(provider.app().as_str(), "shop");
}

#[tokio::test(flavor = "current_thread")]
async fn a_harness_without_a_listener_says_that_the_test_names_them() {
    let start = tokio::spawn(dq::testing::Harness::start(|factory| factory));
    let panic = start.await.unwrap_err().into_panic();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(
        text.contains("write `|factory| factory.listener::<close>()`") && !text.contains("use that_crate"),
        "{text}"
    );
}
