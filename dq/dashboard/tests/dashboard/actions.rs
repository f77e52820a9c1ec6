//! Actions on many jobs and on schedules, and taking a change back, in a browser.

use std::time::{Duration, SystemTime};

use dq::job::State;

use super::browser::said;
use super::chromium::Chromium;
use super::stage::Stage;

/// After a reschedule: the page offers the former time, which comes back.
pub(crate) async fn take_it_back(stage: &Stage, browser: &Chromium, id: &str) {
    let due = || async { stage.provider.inspect().job("meeting-reminder", id).await.unwrap().unwrap().at.unwrap() };
    let moved = due().await;
    browser.click(".notice a").await;
    accessible(browser).await;
    browser.click("button.primary").await;
    said(browser, "The job has another due time.").await;
    assert!(due().await < moved, "it had been moved to a later time");
}

/// Requeues, reschedules and runs all jobs that a filter lets through; each in steps of 100 that the script goes on with.
pub(crate) async fn change_many_jobs(stage: &Stage, browser: &Chromium) {
    let topic = stage.provider.topic("legacy-import").unwrap();
    many(stage, browser, "legacy-import", "delayed", "Reschedule all…", "90m").await;
    let page = stage.provider.inspect().jobs("legacy-import", State::Delayed, &Default::default(), None).await.unwrap();
    let before = SystemTime::now() + Duration::from_secs(5_000);
    let is_later = page.jobs.iter().all(|job| job.at.unwrap() > before.into());
    assert!(!page.jobs.is_empty() && is_later, "they were due in half an hour or earlier");
    many(stage, browser, "legacy-import", "delayed", "Run all now…", "").await;
    let counts = topic.counts().await.unwrap();
    assert_eq!((counts.ready, counts.delayed), (1_042, 1_042), "nobody listens, so they stay");
    let parked = stage.provider.topic("fraud-review").unwrap();
    parked.pause().reason("so that no node takes them").await.unwrap();
    many(stage, browser, "fraud-review", "unacked", "Requeue all…", "").await;
    let counts = parked.counts().await.unwrap();
    assert_eq!((counts.unacked, counts.delayed), (0, 11));
}

async fn many(stage: &Stage, browser: &Chromium, topic: &str, state: &str, button: &str, due: &str) {
    browser.client.goto(&stage.page(&format!("/jobs?topic={topic}&state={state}"))).await.unwrap();
    browser.follow(button).await;
    accessible(browser).await;
    if !due.is_empty() {
        browser.fill("input[name=due]", due).await;
    }
    browser.click("button.danger").await;
    browser.until("return document.querySelector('h1').textContent === 'All done'").await;
    accessible(browser).await;
}

/// Pauses, resumes by the undo, and removes the schedule.
pub(crate) async fn change_a_schedule(stage: &Stage, browser: &Chromium) {
    browser.client.goto(&stage.page("/schedules?topic=nightly-report")).await.unwrap();
    browser.follow("Pause…").await;
    browser.fill("input[name=reason]", "not today").await;
    browser.click("button.primary").await;
    said(browser, "The schedule is paused.").await;
    accessible(browser).await;
    assert_eq!(browser.text("td .badge").await, "paused");
    assert_eq!(browser.text("td b").await, "ann (dashboard)");
    browser.follow("Undo: Resume the schedule…").await;
    browser.click("button.primary").await;
    said(browser, "The schedule is resumed.").await;
    let schedules = || async {
        let topic = stage.provider.topic("nightly-report").unwrap();
        topic.schedules().next_page().await.unwrap().unwrap_or_default()
    };
    assert!(schedules().await[0].details.as_ref().unwrap().pause.is_none());
    browser.follow("Remove…").await;
    accessible(browser).await;
    browser.click("button.danger").await;
    said(browser, "The schedule was removed.").await;
    accessible(browser).await;
    assert!(schedules().await.is_empty());
}

async fn accessible(browser: &Chromium) {
    let faults = browser.faults().await;
    assert!(faults.is_empty(), "{faults:#?}");
}
