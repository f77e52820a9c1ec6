//! Reminds of meetings ten minutes before they begin and when they begin. Here a minute takes 30 ms, and the day begins after 2 s.

mod calendar;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

use calendar::Calendar;

/// The reminders of a meeting, in minutes before it begins.
const REMINDERS: [u32; 2] = [10, 0];

/// One reminder of a meeting. A meeting has several, so the id is made of both fields.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "meeting-reminder", id = "{meeting}:{minutes_before}")]
struct Remind {
    meeting: String,
    minutes_before: u32,
}

#[delay_listener(concurrency = 1, timeout = "5s")] // one at a time, so in the order of their times
async fn remind(job: Job<Remind>, calendar: &Arc<Calendar>) -> Result<(), JobError> {
    // The calendar decides: a reminder of a meeting that it does not have is out of date.
    let Some(minute) = calendar.remind(&job.meeting, job.minutes_before) else { return Ok(()) };
    match job.minutes_before {
        0 => println!("minute {minute}: {} begins", job.meeting),
        before => println!("minute {minute}: {} begins in {before} minutes", job.meeting),
    }
    Ok(())
}

/// Plans a meeting, or moves it: reminders that already wait get their new time.
async fn plan(jobs: &Provider, calendar: &Calendar, meeting: &str, begins: u32) -> Result<(), Box<dyn Error>> {
    for minutes_before in REMINDERS {
        let at = calendar.time(begins.saturating_sub(minutes_before));
        jobs.add(Remind { meeting: meeting.into(), minutes_before }).at(at).replace_existing().await?;
    }
    // Not before: an earlier run that was killed may have left reminders of another day.
    calendar.plan(meeting, begins);
    Ok(())
}

async fn cancel(jobs: &Provider, calendar: &Calendar, meeting: &str) -> Result<(), Box<dyn Error>> {
    calendar.cancel(meeting);
    for minutes_before in REMINDERS {
        jobs.delete::<Remind>(format!("{meeting}:{minutes_before}")).await?;
    }
    Ok(())
}

/// Reminds of meetings ten minutes before they begin and when they begin.
///
/// The variable DQ_STORE names the store of the jobs. Without it, the jobs are in the directory `./dq-data/meeting_reminder`.
#[derive(Parser)]
struct Arguments;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments = Arguments::parse();
    let calendar = Arc::new(Calendar::of_tomorrow());
    let dq = ContextFactory::new("calendar")
        .store("file:./dq-data/meeting_reminder") // `DQ_STORE` overrides this
        .provide(calendar.clone())
        .start()
        .await?;
    let jobs = dq.provider();

    plan(jobs, &calendar, "standup", 25).await?;
    plan(jobs, &calendar, "review", 38).await?;
    plan(jobs, &calendar, "retro", 40).await?;
    println!("the review moves from minute 38 to minute 50, the retro is cancelled");
    plan(jobs, &calendar, "review", 50).await?;
    cancel(jobs, &calendar, "retro").await?;

    calendar.all_reminded(2 * REMINDERS.len()).await;
    dq.shutdown(delay!("5s")).await;
    let early = calendar.early();
    println!("reminders that came too early: {early}");
    Ok(if early == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
