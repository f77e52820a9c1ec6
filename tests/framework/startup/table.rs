//! The table of precedence in docs/guide/configuration.md, source by source, by what a job then does.

use dq::config::Source;
use dq::job::JobState;
use dq::prelude::*;
use dq::testing::Harness;
use serde::{Deserialize, Serialize};

use super::ConfigFile;
use crate::scripted_listener::{MINUTE, SECOND};

macro_rules! failing {
    ($payload:ident, #[$job:meta], $listener:ident, #[$declared:meta]) => {
        #[derive(Debug, Serialize, Deserialize, DelayJob)]
        #[$job]
        struct $payload;

        #[$declared]
        async fn $listener(_job: Job<$payload>) -> Result<(), JobError> {
            Err("no".into())
        }
    };
}
failing!(Plain, #[job(topic = "plain")], plain, #[delay_listener(register = false)]);
failing!(OfPayload, #[job(topic = "of-payload", retry = "6m")], of_payload, #[delay_listener(register = false)]);
failing!(Both, #[job(topic = "both", retry = "6m")], both, #[delay_listener(register = false, retry = "5m")]);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "later", delay = "3m")]
struct Later;

#[delay_listener(register = false)]
async fn later(_job: Job<Later>) -> Result<(), JobError> {
    Ok(())
}

/// The sources as the guide lists them, the strongest first.
const SOURCES: [&str; 7] = ["add", "variable", "file", "builder", "listener", "payload", "default"];

/// How long a failed job waits for its retry, where only the sources from this one down say something. The one of number n says
/// n minutes.
async fn waits(from: usize) -> std::time::Duration {
    let topic = ["both", "of-payload", "plain"][from.saturating_sub(5)];
    let file = ConfigFile::new("table", &format!("[topic.{topic}]\nretry = \"3m\"\n"));
    let dq = Harness::start(|mut factory| {
        factory = factory.listener::<plain>().listener::<of_payload>().listener::<both>();
        if from <= 4 {
            factory = factory.topic(topic, |topic| topic.retry("4m"));
        }
        if from <= 3 {
            factory = factory.config_file(file.path());
        }
        if from <= 2 {
            factory = factory.variables([(format!("DQ_TOPIC_{}_RETRY", topic.to_uppercase()), "2m")]);
        }
        factory
    })
    .await;
    let health = dq.health();
    let settings = &health.topics.iter().find(|health| health.topic == topic).unwrap().settings;
    let variable = format!("retry = 2m (DQ_TOPIC_{}_RETRY)", topic.to_uppercase());
    let listed = match from {
        1 | 2 => &*variable,
        3 => "retry = 3m (/",
        4 => "retry = 4m (builder at ",
        5 => "retry = 5m (listener at ",
        6 => "retry = 6m (payload of the listener at ",
        _ => "retry = exponential 10s x 5, factor 3, max 1h, jitter 10%, ",
    };
    assert!(settings.contains(listed), "from {}: {settings}", SOURCES[from - 1]);
    let topic = dq.provider().topic(topic).unwrap();
    let add = topic.add_json("null").id("a");
    let added = topic.counts().await.unwrap().clock;
    if from == 1 { add.retry("1m").await } else { add.await }.unwrap();
    dq.settle().await;
    match topic.get("a").await.unwrap().unwrap().place {
        JobState::Delayed { due } => due.since(added),
        place => panic!("the job failed once and waits: {place:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn each_source_of_the_table_outweighs_all_below_it() {
    for (source, number) in SOURCES.into_iter().zip(1..) {
        let waited = waits(number as usize).await;
        if source == "default" {
            assert!(9 * SECOND <= waited && waited <= 11 * SECOND, "{waited:?}");
        } else {
            assert_eq!(waited, number * MINUTE, "{source}");
        }
    }
}

#[test]
fn the_guide_lists_the_sources_in_this_order() {
    let guide = include_str!("../../../docs/guide/configuration.md");
    let listed = guide.split("## Precedence").nth(1).unwrap().split("\n\n").nth(2).unwrap();
    let lines: Vec<_> = listed.lines().collect();
    assert_eq!(lines.len(), SOURCES.len(), "{listed}");
    for ((source, number), line) in SOURCES.into_iter().zip(1..).zip(lines) {
        assert!(
            line.starts_with(&format!("{number}. ")) && line.contains(source),
            "{number} is {source}, and not: {line}"
        );
    }
}

/// How long a job waits that is added now.
async fn delay_of(add: dq::provider::Call<dq::provider::Add>, jobs: &Provider) -> std::time::Duration {
    let topic = jobs.topic("later").unwrap();
    let now = topic.counts().await.unwrap().clock;
    let id = add.await.unwrap().id;
    match topic.get(&id).await.unwrap().unwrap().place {
        JobState::Delayed { due } => due.since(now),
        place => panic!("the job waits: {place:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_delay_of_a_job_comes_from_the_add_then_the_store_then_the_payload() {
    let dq = Harness::start(|factory| factory.listener::<later>()).await;
    let other = dq.another(2, |factory| factory.listener::<later>()).await;
    let jobs = dq.provider();
    assert_eq!(delay_of(jobs.add(Later), jobs).await, 3 * MINUTE, "the payload");
    let set = jobs.set_default_delay::<Later>("2m").by("anna").await.unwrap().now.unwrap();
    for jobs in [jobs, other.provider()] {
        assert_eq!(delay_of(jobs.add(Later), jobs).await, 2 * MINUTE, "the store, at once and for all nodes");
        assert_eq!(delay_of(jobs.add(Later).after("1m"), jobs).await, MINUTE, "the add");
    }
    dq.advance(MINUTE).await;
    for node in [&dq, &other] {
        let settings = node.topic_settings("later").unwrap();
        let listed = settings.get("delay").expect("it is listed");
        assert_eq!((&*listed.value, &listed.source), ("2m", &Source::Store { by: "anna".into(), since: set.since }));
        assert!(settings.to_string().ends_with(&format!(", delay = 2m (set by anna at {})", set.since)), "{settings}");
    }
    jobs.clear_default_delay::<Later>().await.unwrap();
    assert_eq!(delay_of(jobs.add(Later), jobs).await, 3 * MINUTE, "the payload again");
    dq.advance(MINUTE).await;
    assert_eq!(dq.topic_settings("later").unwrap().get("delay"), None);
}
