//! Job sets, and what an export does with them.

use std::time::Duration;

use dq::job::{JobId, ProducerId};
use dq::store::{OnDead, SetChange, SetVerb, Store};
use dq_cli::export;
use dq_cli::failure::Failure;
use dq_cli::progress::Progress;

use crate::follow_ups::job;
use crate::round_trip::{choice, exported, imported, key, memory};

async fn change(store: &dyn Store, number: u64, what: SetVerb) {
    let set = JobId::new("s").unwrap();
    store.producer(&key(), &ProducerId::new("p")).job_set(number, SetChange { set, what }).await.unwrap();
}

#[tokio::test]
async fn an_export_refuses_an_app_with_a_set_that_has_not_ended() {
    let (old, new) = (memory(), memory());
    change(&*old, 1, SetVerb::Add(OnDead::Count, Vec::new())).await;
    let mut out = Vec::new();
    let repeating = dq_cli::Repeating(Duration::from_secs(5));
    let refused = export::export(&*old, &key().app, &choice(&[]), repeating, &mut out, &Progress::hidden()).await;
    let Err(failure @ Failure::JobSet { .. }) = refused else { panic!("{refused:?}") };
    assert!(failure.to_string().contains("`dq sets orders s` names the jobs that it waits for"), "{failure}");
    assert!(out.is_empty(), "nothing is written");

    change(&*old, 2, SetVerb::Close(Box::new(job("then")))).await;
    let report = imported(&*new, &exported(&*old, &[]).await, "q").await;
    assert_eq!(report.follow_ups, 1, "the last job is on its way");
    assert!(new.get(&key(), &[JobId::new("then").unwrap()]).await.unwrap()[0].is_some());
}
