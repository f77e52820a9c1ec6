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

/// What a program would read over HTTP.
struct Page(String);

impl Page {
    fn read(recorder: &PrometheusHandle) -> Self {
        recorder.run_upkeep();
        Self(recorder.render())
    }

    /// The value of a series: its name, and its labels in braces.
    fn value(&self, series: &str) -> f64 {
        let line = self.0.lines().find(|line| line.starts_with(&format!("{series} ")));
        let line = line.unwrap_or_else(|| panic!("{series} is missing in\n{}", self.0));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// The value of a series of the topic `measured` with these further labels.
    fn of(&self, name: &str, labels: &str) -> f64 {
        self.value(&format!("{name}{{topic=\"measured\"{labels}}}"))
    }

    fn jobs(&self, state: &str) -> f64 {
        self.of("dq_jobs", &format!(",state=\"{state}\""))
    }

    fn gated(&self, topic: &str, gate: &str) -> f64 {
        self.value(&format!("dq_jobs_blocked{{topic=\"{topic}\",gate=\"{gate}\"}}"))
    }

    /// Every metric of the table has its help, its type, and a series with its labels.
    fn has_every_metric(&self) {
        let text = &self.0;
        for metric in METRICS {
            let (help, kind) =
                (format!("# HELP {} ", metric.name), format!("# TYPE {} {}", metric.name, metric.kind.as_str()));
            assert!(text.contains(&help) && text.contains(&kind), "{} in\n{text}", metric.name);
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
}

/// The job 3 is due during a pause, which ends four seconds later.
async fn one_is_late(harness: &Harness, recorder: &PrometheusHandle) {
    let jobs = harness.provider();
    jobs.pause::<Measured>().reason("a test").await.unwrap();
    jobs.add(Measured(3)).await.unwrap();
    harness.advance(Duration::from_secs(5)).await;
    jobs.measure_depths(["measured"]).await.unwrap();
    assert_eq!(Page::read(recorder).gated("measured", "pause"), 1.0);
    jobs.resume::<Measured>().await.unwrap();
    harness.advance(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn every_metric_is_reported_with_its_labels() {
    let recorder = recorder();
    use_a_file_store();
    let harness = Harness::start(|factory| factory.listener::<measured>()).await;
    let jobs = harness.provider().clone();
    jobs.add_many((0..3).map(Measured)).await.unwrap().all().unwrap();
    assert!(jobs.add(Measured(0)).await.is_err(), "it exists, so it does not count as added");
    harness.advance(Duration::from_millis(1_500)).await;
    jobs.measure_depths(["measured"]).await.unwrap();
    let meanwhile = Page::read(&recorder);
    assert_eq!(meanwhile.of("dq_jobs_held", ""), 1.0, "job 2 takes three seconds");
    assert_eq!((meanwhile.jobs("running"), meanwhile.jobs("delayed")), (1.0, 1.0), "job 1 waits for its retry");
    harness.advance(Duration::from_secs(20)).await;
    one_is_late(&harness, &recorder).await;
    let raw = jobs.topic("measured-groups").unwrap();
    for _ in 0..3 {
        raw.add_json("{}").group("one").await.unwrap();
    }
    jobs.measure_depths(["measured", "measured-groups"]).await.unwrap();
    let page = Page::read(&recorder);
    let of = |name: &str, labels: &str| page.of(name, labels);
    assert_eq!(of("dq_jobs_added_total", ""), 4.0);
    assert_eq!(of("dq_jobs_claimed_total", ""), 5.0, "one of them twice");
    for (outcome, count) in [("ack", 3.0), ("retry", 1.0), ("dead", 1.0), ("rejoin", 0.0), ("park", 0.0)] {
        assert_eq!(of("dq_jobs_settled_total", &format!(",outcome=\"{outcome}\"")), count, "{outcome}");
    }
    assert_eq!(of("dq_jobs_failed_total", ",cause=\"error\""), 2.0);
    assert_eq!((page.jobs("dead"), page.jobs("delayed"), page.jobs("running")), (1.0, 0.0, 0.0));
    assert_eq!(
        (page.gated("measured-groups", "group"), page.gated("measured", "pause")),
        (2.0, 0.0),
        "the first of the group waits for no other one"
    );
    assert_eq!(of("dq_jobs_held", ""), 0.0);
    assert_eq!(of("dq_job_lateness_seconds_count", ""), 5.0);
    assert_eq!(of("dq_job_lateness_seconds_bucket", ",le=\"0.5\""), 4.0);
    let late = of("dq_job_lateness_seconds_sum", "");
    assert!((4.0..4.1).contains(&late), "{late}");
    assert_eq!(of("dq_job_duration_seconds_count", ""), 6.0, "five attempts and a final retry");
    assert_eq!(of("dq_job_duration_seconds_sum", ""), 3.0);
    assert_eq!(of("dq_job_duration_seconds_bucket", ",le=\"2\""), 5.0);
    assert_eq!(of("dq_add_duration_seconds_count", ""), 5.0, "also the one that exists");
    assert!(page.value("dq_store_call_duration_seconds_count{step=\"settle\"}") >= 3.0);
    page.has_every_metric();
}
