//! The dashboard in a real browser, over a store with 100,000 jobs and a running node.

use std::path::Path;
use std::time::SystemTime;

use dq::job::State;
use fantoccini::Locator;
use fantoccini::elements::Element;
use serde_json::json;

use super::actions;
use super::chromium::Chromium;
use super::scenes;
use super::stage::Stage;
use super::visitor::TOKEN;

const WAITING: usize = 100_000;

const PAGES: [&str; 21] = [
    "",
    "?scale=hours&sort=late",
    "?scale=days&sort=dead",
    "/topic?topic=close-order",
    "/topic?topic=newsletter",
    "/topic?topic=export-report",
    "/jobs?topic=charge-card&state=dead&error=503",
    "/jobs?topic=export-report&state=running",
    "/dead",
    "/unacked",
    "/nodes",
    "/doctor",
    "/schedules?topic=nightly-report",
    "/schedules",
    "/settings",
    "/topic?topic=newsletter-sent",
    "/sets?topic=newsletter-sent",
    "/set?topic=newsletter-sent&name=november",
    "/confirm?action=delete&topic=charge-card&state=dead",
    "/confirm?action=reschedule&topic=newsletter&state=delayed",
    "/confirm?action=pause_schedule&topic=nightly-report&id=every-hour",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_use_it_in_a_browser() {
    let stage = Stage::with_jobs(WAITING).await;
    let browser = Chromium::start().await;
    browser.looks("light", 1_280, 900).await;
    log_in(&stage, &browser).await;
    if let Ok(folder) = std::env::var("DQ_SCREENSHOTS") {
        take_pictures(&stage, &browser, Path::new(&folder)).await;
        return;
    }
    look_at_every_page(&stage, &browser).await;
    see_it_live(&stage, &browser).await;
    do_every_action(&stage, &browser).await;
    actions::change_many_jobs(&stage, &browser).await;
    actions::change_a_schedule(&stage, &browser).await;
    use_the_keyboard(&stage, &browser).await;
    assert_eq!(browser.console().await, [""; 0], "the console says nothing");
    scenes::meet_a_foreign_page(&stage, &browser).await;
    scenes::lend_the_cookie_to_another_port(&stage, &browser).await;
    scenes::come_by_another_name(&stage, &browser).await;
    scenes::lose_the_session(&stage, &browser).await;
}

async fn log_in(stage: &Stage, browser: &Chromium) {
    browser.client.goto(&stage.page("")).await.unwrap();
    assert!(browser.client.current_url().await.unwrap().path().ends_with("/login"));
    browser.fill("input[name=token]", TOKEN).await;
    browser.click("button.primary").await;
    browser.until("return document.querySelector('h1').textContent === 'What falls due'").await;
    let cookie = browser.run("return document.cookie").await;
    assert_eq!(cookie, "", "no script sees the cookie");
}

/// Nothing but our scripts, nothing from elsewhere, no hostile text that ran, and no fault of accessibility.
async fn look_at_every_page(stage: &Stage, browser: &Chromium) {
    let hostile = format!("/job?topic=charge-card&id={}", encoded(super::stage::HOSTILE));
    for page in PAGES.into_iter().chain([hostile.as_str()]) {
        for (scheme, width) in [("light", 1_280), ("dark", 1_280), ("light", 360)] {
            browser.looks(scheme, width, 900).await;
            browser.client.goto(&stage.page(page)).await.unwrap();
            let scripts =
                browser.run("return [...document.scripts].map((script) => new URL(script.src).pathname)").await;
            assert_eq!(scripts, json!(["/admin/dq/assets/dq.js"]), "{page}");
            let foreign = "return performance.getEntriesByType('resource').filter((entry) => !entry.name.startsWith(location.origin)).length";
            assert_eq!(browser.run(foreign).await, 0, "{page}");
            assert_eq!(browser.run("return window.broken === undefined").await, true, "{page}");
            let wide =
                browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth").await;
            assert_eq!(wide, 0, "{page} fits into {width}");
            let faults = browser.faults().await;
            assert!(faults.is_empty(), "{page} {scheme} {width}: {faults:#?}");
            assert_eq!(browser.console().await, [""; 0], "{page}");
        }
    }
    browser.looks("light", 1_280, 900).await;
}

async fn see_it_live(stage: &Stage, browser: &Chromium) {
    browser.client.goto(&stage.page("/topic?topic=legacy-import")).await.unwrap();
    browser.until("return document.getElementById('live').textContent === 'live'").await;
    let jobs: Vec<_> = (0..1_000).map(|n| json!({ "n": n })).collect();
    stage.provider.topic("legacy-import").unwrap().add_many_json(jobs).after("30m").await.unwrap().all().unwrap();
    browser.until("return document.querySelector('.tile b').textContent === '1,042'").await;
}

async fn do_every_action(stage: &Stage, browser: &Chromium) {
    let topic = |name: &str| stage.provider.topic(name).unwrap();
    browser.client.goto(&stage.page("/topic?topic=legacy-import")).await.unwrap();
    browser.follow("Pause…").await;
    browser.fill("input[name=reason]", super::stage::HOSTILE).await;
    browser.click("button.primary").await;
    said(browser, "The topic is paused.").await;
    assert!(topic("legacy-import").state().await.unwrap().pause.is_some());
    browser.follow("Undo: Resume the topic…").await;
    browser.click("button.primary").await;
    said(browser, "The topic is resumed.").await;
    assert!(topic("legacy-import").state().await.unwrap().pause.is_none());
    browser.follow("Drain…").await;
    browser.fill("input[name=reason]", "we move it").await;
    browser.click("button.primary").await;
    said(browser, "The topic drains.").await;
    browser.follow("Undo: End the drain…").await;
    browser.click("button.primary").await;
    said(browser, "The drain has ended.").await;
    // One job of each state.
    let first = |name: &'static str, state: State| async move {
        let page = stage.provider.inspect().jobs(name, state, &Default::default(), None).await.unwrap();
        page.jobs[0].id.to_string()
    };
    let waits = first("meeting-reminder", State::Delayed).await;
    browser.client.goto(&stage.page(&format!("/job?topic=meeting-reminder&id={waits}"))).await.unwrap();
    browser.follow("Reschedule…").await;
    browser.fill("input[name=due]", "3h").await;
    browser.click("button.primary").await;
    said(browser, "The job has another due time.").await;
    actions::take_it_back(stage, browser, &waits).await;
    browser.follow("Run now…").await;
    browser.click("button.primary").await;
    said(browser, "The job is due now.").await;
    let job = stage.provider.inspect().job("meeting-reminder", waits.as_str()).await.unwrap().unwrap();
    assert!(job.at.unwrap() <= SystemTime::now().into());
    browser.follow("Delete…").await;
    browser.click("button.danger").await;
    said(browser, "The job was deleted.").await;
    assert_eq!(browser.text("h2").await, "There is no such job");
    let parked = first("fraud-review", State::Unacked).await;
    browser.client.goto(&stage.page(&format!("/job?topic=fraud-review&id={parked}"))).await.unwrap();
    browser.follow("Ack…").await;
    browser.click("button.danger").await;
    said(browser, "The job was acked.").await;
    assert_eq!(topic("fraud-review").counts().await.unwrap().unacked, 11);
    let dead = first("charge-card", State::Dead).await;
    browser.client.goto(&stage.page(&format!("/job?topic=charge-card&id={}", encoded(&dead)))).await.unwrap();
    browser.follow("Requeue…").await;
    browser.click("button.primary").await;
    said(browser, "The job was requeued.").await;
    // All of them, in steps of 100 that the script goes on with.
    browser.client.goto(&stage.page("/jobs?topic=charge-card&state=dead&error=bank")).await.unwrap();
    browser.follow("Delete all…").await;
    browser.click("button.danger").await;
    browser.until("return document.querySelector('h1').textContent === 'All done'").await;
    assert!(topic("charge-card").counts().await.unwrap().dead <= 2);
}

/// Waits for the page that says what was done.
pub(crate) async fn said(browser: &Chromium, text: &str) {
    browser
        .until(&format!("return (document.querySelector('.notice.good')?.textContent ?? '').startsWith('{text}')"))
        .await;
}

/// The first tab stop leads to the content, every stop can be seen, and Enter follows a link.
async fn use_the_keyboard(stage: &Stage, browser: &Chromium) {
    browser.client.goto(&stage.page("/nodes")).await.unwrap();
    let press = |key: &'static str| async move {
        let active: Element = browser.client.active_element().await.unwrap();
        active.send_keys(key).await.unwrap();
    };
    press("\u{e004}").await;
    assert_eq!(browser.run("return document.activeElement.className").await, "skip");
    for _ in 0..8 {
        press("\u{e004}").await;
        let outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle").await;
        assert_eq!(outline, "solid", "{}", browser.run("return document.activeElement.outerHTML").await);
    }
    let overview = browser.client.find(Locator::LinkText("Dead")).await.unwrap();
    overview.send_keys("\u{e007}").await.unwrap();
    browser.until("return document.querySelector('h1').textContent === 'Dead jobs'").await;
}

async fn take_pictures(stage: &Stage, browser: &Chromium, folder: &Path) {
    let job = "/jobs?topic=charge-card&state=dead";
    let failed = stage.provider.inspect().jobs("charge-card", State::Dead, &Default::default(), None).await.unwrap();
    let failed = failed.jobs.iter().map(|job| job.id.to_string()).find(|id| id.len() < 20).unwrap();
    let failed = format!("/job?topic=charge-card&id={failed}");
    // A picture of a shop on a bad day shows what is late.
    browser.until("return document.querySelector('td.late') !== null").await;
    for (name, page, scheme, width, height) in [
        ("overview", "", "light", 1_280, 1_010),
        ("overview-dark", "", "dark", 1_280, 1_010),
        ("overview-narrow", "", "light", 360, 1_100),
        ("topic", "/topic?topic=close-order", "light", 1_280, 900),
        ("jobs", job, "light", 1_280, 900),
        ("job", failed.as_str(), "dark", 1_280, 900),
        ("bulk", "/confirm?action=requeue&topic=charge-card&state=dead&error=503", "light", 1_280, 600),
    ] {
        browser.looks(scheme, width, height).await;
        browser.client.goto(&stage.page(page)).await.unwrap();
        browser
            .until("const live = document.getElementById('live'); return !live || live.textContent === 'live'")
            .await;
        let png = browser.client.screenshot().await.unwrap();
        std::fs::write(folder.join(format!("dashboard-{name}.png")), png).unwrap();
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
