//! The links from runs to the traces of their adds: the feature `otel`.

use dq::prelude::*;
use dq::testing::Harness;
use opentelemetry::trace::{Status, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing::Instrument;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::scripted_listener::{HOUR, MINUTE, Script, start, test_job};
use crate::spans::{Prices, Shown, together};

const REMOTE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The spans that this thread reports.
struct Collector {
    exporter: InMemorySpanExporter,
    _guard: DefaultGuard,
}

impl Collector {
    fn start() -> Self {
        let exporter = InMemorySpanExporter::default();
        let tracers = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let layer = tracing_opentelemetry::layer().with_tracer(tracers.tracer("test"));
        Self { exporter, _guard: tracing_subscriber::registry().with(layer).set_default() }
    }

    /// The spans that have ended, of this name.
    fn spans(&self, name: &str) -> Vec<SpanData> {
        self.exporter.get_finished_spans().unwrap().into_iter().filter(|span| span.name == name).collect()
    }

    fn only(&self, name: &str) -> SpanData {
        let mut found = self.spans(name);
        assert_eq!(found.len(), 1, "{name}: {found:#?}");
        found.remove(0)
    }
}

/// The spans to which a span links.
fn linked(span: &SpanData) -> Vec<String> {
    span.links.iter().map(|link| link.span_context.span_id().to_string()).collect()
}

fn id_of(span: &SpanData) -> String {
    span.span_context.span_id().to_string()
}

fn request() -> tracing::Span {
    tracing::info_span!("request")
}

#[tokio::test(start_paused = true)]
async fn every_run_links_to_the_add_and_a_failed_one_is_an_error() {
    let collector = Collector::start();
    let dq = Script::fails("a secret").start(|topic| topic.retry("1m")).await;
    dq.provider().add(test_job("a")).instrument(request()).await.unwrap();
    dq.advance(HOUR).await;
    let (add, runs) = (collector.only("request"), collector.spans("dq.run"));
    assert_eq!(runs.len(), 3, "two attempts and a final retry: {runs:#?}");
    for run in &runs {
        assert_eq!(linked(run), [id_of(&add)]);
        assert_ne!(run.span_context.trace_id(), add.span_context.trace_id());
    }
    assert_eq!(runs[0].status, Status::error("error"));
    assert!(runs.iter().all(|run| !format!("{:?}", run.status).contains("secret")));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_is_an_error() {
    let collector = Collector::start();
    let dq = Script::new(|_, _| std::future::pending()).start(|topic| topic.timeout("5s").retry("none")).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(MINUTE).await;
    let run = collector.spans("dq.run").remove(0);
    assert!(matches!(&run.status, Status::Error { description } if description.contains("took too long")), "{run:#?}");
    assert_eq!(linked(&run), [""; 0], "it was added outside of a trace");
}

#[tokio::test(start_paused = true)]
async fn a_traceparent_of_another_program_is_linked_and_stays() {
    let collector = Collector::start();
    let dq = Script::new(|job, channel| async move {
        assert_eq!(job.header("traceparent"), Some(REMOTE));
        Ok(channel.ack())
    });
    let dq = dq.start(|topic| topic).await;
    dq.provider().add(test_job("a")).header("traceparent", REMOTE).instrument(request()).await.unwrap();
    dq.settle().await;
    let run = collector.only("dq.run");
    assert_eq!((linked(&run), &run.status), (vec!["00f067aa0ba902b7".into()], &Status::Unset));
}

#[tokio::test(start_paused = true)]
async fn a_batch_links_to_each_of_its_adds_and_a_broadcast_to_its_own() {
    let collector = Collector::start();
    let dq: Harness = start(|factory| factory.batch_listener::<together>().broadcast_listener::<Shown>()).await;
    for id in ["a", "b"] {
        dq.provider().add(test_job(id)).after(delay!("1s")).instrument(tracing::info_span!("single")).await.unwrap();
    }
    let many = dq.provider().add_many(["c", "d"].map(test_job)).after(delay!("1s"));
    many.instrument(request()).await.unwrap().all().unwrap();
    dq.provider().add(Prices).instrument(tracing::info_span!("price")).await.unwrap();
    dq.advance(MINUTE).await;
    let mut wanted: Vec<_> = collector.spans("single").iter().map(id_of).collect();
    wanted.extend([id_of(&collector.only("request")), id_of(&collector.only("request"))]);
    wanted.sort();
    let mut links: Vec<_> = collector.spans("dq.run").iter().flat_map(linked).collect();
    links.sort();
    assert_eq!(links, wanted);
    assert_eq!(linked(&collector.only("dq.broadcast")), [id_of(&collector.only("price"))]);
}
