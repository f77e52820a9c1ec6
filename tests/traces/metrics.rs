//! What dq reports to the facade `metrics`.

use std::time::Duration;

use dq::prelude::*;
use dq::telemetry::{METRICS, MetricKind};
use dq::testing::Harness;
use dq_tests::file::Folder;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde::{Deserialize, Serialize};

use crate::scripted_listener::handler_takes;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "measured", delay = "1s")]
struct Measured(#[job(id)] u32);

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "in-files", delay = "1h")]
struct InFiles;

/// The job 1 fails until it is DEAD; the job 2 takes three seconds.
#[delay_listener(register = false, retry = "1s", timeout = "5s")]
async fn measured(job: Job<Measured>) -> Result<(), JobError> {
    match job.0 {
        1 => return Err("no".into()),
        2 => handler_takes(Duration::from_secs(3)).await,
        _ => {}
    }
    Ok(())
}

/// The recorder of the process. Other tests may run beside this one, so what is asserted has the topic as its label.
fn recorder() -> PrometheusHandle {
    PrometheusBuilder::new().set_buckets(&[0.5, 2.0, 10.0]).unwrap().install_recorder().unwrap()
}

/// Only a `file:` store reports what its jobs take in memory. Its thread follows no paused clock.
fn use_a_file_store() {
    let uses = async {
        let folder = Folder::unmade();
        let factory = ContextFactory::new("shop").store(folder.url()).without_inventory().without_listeners();
        let dq = factory.variables([("", ""); 0]).start().await.unwrap();
        dq.provider().add(InFiles).await.unwrap();
        dq.shutdown(Duration::ZERO).await;
    };
    std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(uses)).join().unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_metric_is_reported_with_its_labels() {
    let page = recorder();
    use_a_file_store();
    let harness = Harness::start(|factory| factory.listener::<measured>()).await;
    let jobs = harness.provider().clone();
    jobs.add_many((0..3).map(Measured)).await.unwrap().all().unwrap();
    assert!(jobs.add(Measured(0)).await.is_err(), "it exists, so it does not count as added");
    harness.advance(Duration::from_secs(20)).await;
    let raw = jobs.topic("measured-groups").unwrap();
    for _ in 0..3 {
        raw.add_json("{}").group("one").await.unwrap();
    }
    jobs.measure_depths(["measured", "measured-groups"]).await.unwrap();
    page.run_upkeep();
    let text = page.render();
    let value = |series: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{series} ")));
        line.unwrap_or_else(|| panic!("{series} is missing in\n{text}"))
            .rsplit(' ')
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    let of = |name: &str, labels: &str| value(&format!("{name}{{topic=\"measured\"{labels}}}"));
    assert_eq!(of("dq_jobs_added_total", ""), 3.0);
    assert_eq!(of("dq_jobs_claimed_total", ""), 4.0, "one of them twice");
    for (outcome, count) in [("ack", 2.0), ("retry", 1.0), ("dead", 1.0), ("rejoin", 0.0), ("park", 0.0)] {
        assert_eq!(of("dq_jobs_settled_total", &format!(",outcome=\"{outcome}\"")), count, "{outcome}");
    }
    assert_eq!(of("dq_jobs_failed_total", ",cause=\"error\""), 2.0);
    assert_eq!(of("dq_jobs", ",state=\"dead\""), 1.0);
    assert_eq!(of("dq_jobs", ",state=\"delayed\""), 0.0);
    let gated = |gate: &str| value(&format!("dq_jobs_gated{{topic=\"measured-groups\",gate=\"{gate}\"}}"));
    assert_eq!((gated("group"), gated("pause")), (2.0, 0.0), "the first of the group waits for no other one");
    assert_eq!(of("dq_jobs_held", ""), 0.0);
    assert_eq!(of("dq_job_lateness_seconds_count", ""), 4.0);
    assert_eq!(of("dq_job_run_seconds_count", ""), 5.0, "four attempts and a final retry");
    assert_eq!(of("dq_job_run_seconds_sum", ""), 3.0);
    assert_eq!(of("dq_job_run_seconds_bucket", ",le=\"2\""), 4.0);
    assert!(of("dq_job_lateness_seconds_sum", "") < 1.0);
    assert_eq!(of("dq_add_seconds_count", ""), 4.0, "also the one that exists");
    assert!(value("dq_store_call_seconds_count{step=\"settle\"}") >= 3.0);
    assert_eq!(value("dq_store_outage"), 0.0);
    for metric in METRICS {
        let kind = format!("# TYPE {} {}\n# HELP", metric.name, metric.kind.word());
        let help = format!("# HELP {} ", metric.name);
        assert!(text.contains(&help) && text.contains(kind.split('\n').next().unwrap()), "{} in\n{text}", metric.name);
        let series = if metric.kind == MetricKind::Histogram { "_count" } else { "" };
        let prefix = format!("{}{series}", metric.name);
        let line = text
            .lines()
            .find(|line| line.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with(['{', ' '])))
            .unwrap();
        for label in metric.labels {
            assert!(line.contains(&format!("{label}=\"")), "{line}");
        }
    }
}
