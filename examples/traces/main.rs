//! Traces with OpenTelemetry: a request adds a job, and the run of the job, in a trace of its own, links back to the request.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use dq::prelude::*;
use opentelemetry::trace::{Status, TraceContextExt, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tracing::Instrument;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "close-order", delay = "50ms")]
struct CloseOrder {
    #[job(id)]
    order: u64,
}

/// The first attempt fails, so the job has two runs.
#[delay_listener(timeout = "5s", retry = "50ms")]
async fn close_order(job: Job<CloseOrder>, done: &Arc<Semaphore>) -> Result<(), JobError> {
    if job.attempt() == 0 {
        return Err("the shop is busy".into());
    }
    // A span of the handler's own is a child of the run.
    async { done.add_permits(1) }.instrument(tracing::info_span!("cancel_payment")).await;
    Ok(())
}

/// Every span of dq at INFO, and those of this program.
const FILTER: &str = "info";

/// Adds a job within a request, and shows how the runs of the job link to it.
#[derive(Parser)]
struct Arguments {}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments {} = Arguments::parse();
    // This collector keeps the spans in memory. For a real one, take the exporter of the crate `opentelemetry-otlp` instead:
    // `.with_batch_exporter(SpanExporter::builder().with_http().build()?)`.
    let collector = InMemorySpanExporter::default();
    let tracers = SdkTracerProvider::builder().with_simple_exporter(collector.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(tracers.tracer("shop")).with_filter(EnvFilter::new(FILTER));
    tracing_subscriber::registry().with(layer).init();

    let done = Arc::new(Semaphore::new(0));
    let dq = ContextFactory::new("shop").store("memory:").provide(done.clone()).start().await?;
    let request = tracing::info_span!("POST /orders");
    let trace = request.context().span().span_context().trace_id();
    dq.provider().add(CloseOrder { order: 4711 }).instrument(request).await?;
    done.acquire().await?.forget();
    dq.shutdown(delay!("5s")).await;
    tracers.force_flush()?;

    let spans = collector.get_finished_spans()?;
    let request = find(&spans, "POST /orders").first().copied().ok_or("the request was not exported")?;
    println!("POST /orders");
    for run in find(&spans, "dq.run") {
        let links_back = run.links.iter().any(|link| link.span_context.span_id() == request.span_context.span_id());
        let own = if run.span_context.trace_id() == trace { "THE SAME trace" } else { "a trace of its own" };
        let ended = if matches!(run.status, Status::Error { .. }) { "failed" } else { "succeeded" };
        println!("  dq.run, in {own}, links back: {links_back}, it {ended}");
        for child in spans.iter().filter(|span| span.parent_span_id == run.span_context.span_id()) {
            println!("    {}", child.name);
        }
    }
    let linked = find(&spans, "dq.run").iter().all(|run| run.links.len() == 1);
    Ok(if linked { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn find<'a>(spans: &'a [SpanData], name: &str) -> Vec<&'a SpanData> {
    spans.iter().filter(|span| span.name == name).collect()
}
