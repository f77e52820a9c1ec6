//! A coalescer on a user's runtime whose threads are all blocked. On the real clock.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use tokio::runtime::Builder;

use super::manual_store::StoreOperator;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::job::AppName;
use crate::provider::{CallError, FailureReason, Provider};

#[test]
fn a_caller_elsewhere_gets_its_deadline_while_all_threads_of_the_runtime_are_blocked() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let here = Builder::new_current_thread().build().unwrap();
    let (store, mut operator) = StoreOperator::new();
    let entered = runtime.enter();
    let environment = Environment::of_this_runtime().unwrap();
    assert_eq!(environment.shared(), Some(runtime.handle().id()));
    drop(entered);
    let millis = Duration::from_millis;
    let settings = NodeSettings { call_timeout: millis(200), call_deadline: millis(600), ..NodeSettings::default() };
    let provider = Provider::root(AppName::new("shop").unwrap(), Arc::clone(&store) as _, environment, settings);
    let topic = provider.topic("remind").unwrap();

    let first = runtime.spawn(topic.add_json("1").id("a"));
    here.block_on(operator.expect(1, "add a")).done();
    here.block_on(first).unwrap().unwrap();
    let (blocks, blocked) = channel();
    let (gate, opens) = channel::<()>();
    runtime.spawn(async move {
        blocks.send(()).unwrap();
        assert!(opens.recv().is_err(), "the gate opens when its sender is dropped");
    });
    blocked.recv().unwrap();
    let error = here.block_on(topic.add_json("1").id("b")).unwrap_err();
    assert!(matches!(error, CallError::Unknown { reason: FailureReason::NoAnswer { .. }, .. }), "{error}");
    let sent = here.block_on(operator.expect(2, "add b"));
    let repeated = here.block_on(operator.expect(2, "add b"));
    assert_ne!(sent.producer, repeated.producer, "time-outs pass, too");
    drop(gate);
}
