//! A bound on what waits: `max_waiting`, and `group_max_waiting` of each group.

use dq::prelude::*;
use dq::provider::{CallError, Limit, LimitKind, Refusal};
use serde::{Deserialize, Serialize};

use crate::scripted_listener::Script;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "crawl", max_waiting = 2, delay = "1h")]
struct Crawl {
    #[job(id)]
    page: u32,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "sync", group = "customer-{customer}", group_max_waiting = 2, delay = "1h")]
struct Sync {
    customer: u32,
}

fn full(result: &Result<dq::provider::Added, CallError>) -> Option<(usize, usize)> {
    match result {
        Err(CallError::Refused { refusal: Refusal::TopicFull { waiting, limit }, .. }) => Some((*waiting, *limit)),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn adds_beyond_what_may_wait_are_refused_and_the_others_are_added() {
    let dq = Script::acks().start(|topic| topic).await;
    let jobs = dq.provider();
    let crawl = |pages: std::ops::Range<u32>| jobs.add_many(pages.map(|page| Crawl { page }));
    let added = crawl(0..4).await.unwrap();
    assert_eq!(added.iter().map(full).collect::<Vec<_>>(), [None, None, Some((2, 2)), Some((2, 2))]);
    let error = jobs.add(Crawl { page: 9 }).await.unwrap_err();
    assert!(error.may_be_repeated(), "{error}");
    assert_eq!(
        error.to_string(),
        "job `9` of topic `crawl` was not added: 2 jobs of its topic wait, and 2 may (`max_waiting`); add it again once some have run, or raise the limit"
    );
    jobs.add(Crawl { page: 1 }).keep_existing().await.unwrap().or_error_if_dead().unwrap();
    jobs.add(Crawl { page: 1 }).replace_existing().await.unwrap();
    jobs.set_limit::<Crawl>(Limit::MaxWaiting(3)).reason("there is room").await.unwrap();
    assert_eq!(crawl(2..5).await.unwrap().iter().map(full).collect::<Vec<_>>(), [None, Some((3, 3)), Some((3, 3))]);
    let topic = jobs.inspect().topic("crawl").await.unwrap();
    assert!(topic.at_capacity() && topic.delayed == 3);
    let why = jobs.inspect().why("crawl", 9).await.unwrap().to_string();
    assert!(why.ends_with("3 jobs of the topic wait, and 3 may, so adds of new jobs are refused"), "{why}");
    jobs.topic("crawl").unwrap().add_json("{}").await.unwrap_err();
    jobs.clear_limit::<Crawl>(LimitKind::MaxWaiting).await.unwrap();
    assert_eq!(full(&jobs.add(Crawl { page: 9 }).await), Some((3, 2)), "the code says it again");
    jobs.topic("crawl").unwrap().add_json("{}").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn adds_beyond_what_may_wait_of_a_group_are_refused_and_other_groups_have_room() {
    let dq = Script::acks().start(|topic| topic).await;
    let jobs = dq.provider();
    let added = jobs.add_many([1, 1, 1, 2].map(|customer| Sync { customer })).await.unwrap();
    assert_eq!(added.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, true]);
    let error = jobs.add(Sync { customer: 1 }).await.unwrap_err();
    assert!(error.may_be_repeated(), "{error}");
    let CallError::Refused { refusal: Refusal::GroupFull { group, waiting, limit }, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((group.as_str(), *waiting, *limit), ("customer-1", 2, 2));
    let text = error.to_string();
    assert!(
        text.ends_with("was not added: 2 jobs of its group customer-1 wait, and 2 may (`group_max_waiting`); add it again once some have run, or raise the limit"),
        "{text}"
    );
    jobs.set_limit::<Sync>(Limit::GroupMaxWaiting(3)).reason("there is room").await.unwrap();
    jobs.add(Sync { customer: 1 }).await.unwrap();
    assert!(jobs.add(Sync { customer: 1 }).await.is_err());
    jobs.clear_limit::<Sync>(LimitKind::GroupMaxWaiting).await.unwrap();
    assert!(jobs.add(Sync { customer: 1 }).await.is_err(), "the code says it again");
    jobs.add(Sync { customer: 1 }).group("customer-3").await.unwrap();
}
