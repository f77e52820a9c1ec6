//! A paused run resumes while a later one runs: unless it compares fences, it overwrites what the later one wrote.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::prelude::*;
use dq_testing::{Faults, Simulation, simulate};
use serde::{Deserialize, Serialize};
use tokio::time::sleep as handler_takes;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "report", delay = "1s")]
struct Report {
    #[job(id)]
    number: u64,
}

/// The fences of what was written, in order.
#[derive(Debug, Default)]
struct Page(Mutex<Vec<u64>>);

impl Page {
    fn write(&self, fence: u64, looks: bool) {
        let mut written = self.0.lock().unwrap();
        if !looks || written.last().is_none_or(|last| *last <= fence) {
            written.push(fence);
        }
    }

    fn check(&self) -> Result<(), String> {
        let written = self.0.lock().unwrap();
        if written.is_sorted() && !written.is_empty() { Ok(()) } else { Err(format!("written: {written:?}")) }
    }
}

#[delay_listener(register = false)]
struct Writes {
    page: Arc<Page>,
    looks: bool,
}

impl DelayListener for Writes {
    type Job = Report;

    async fn on_due(&self, job: Job<Report>, channel: Channel) -> Result<Decided, JobError> {
        handler_takes(Duration::from_millis(100)).await;
        self.page.write(job.fence().0, self.looks);
        Ok(channel.ack())
    }
}

fn reports(looks: bool) -> Simulation<Arc<Page>> {
    simulate(|| Arc::new(Page::default()))
        .node(move |factory, page| factory.provide(page).provide(looks).listener::<Writes>())
        .work(|jobs, _| async move { while jobs.add(Report { number: 1 }).keep_existing().await.is_err() {} })
        .check(|page, _| page.check())
        .faults(Faults::none().pauses(true))
        .seeds(0..300)
}

#[test]
fn a_paused_run_that_overwrites_a_later_one_is_found_and_the_fence_fixes_it() {
    let finding = reports(false).try_run().unwrap_err();
    assert!(finding.account.contains("IS PAUSED") && finding.what.starts_with("written: ["), "{finding}");
    assert_eq!(finding.differs, None, "{finding}");
    reports(true).run();
}
