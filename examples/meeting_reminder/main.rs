//! Reminds of meetings ten minutes before they begin and when they begin. Here a minute takes 30 ms, and the day begins after a second.

mod calendar;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

use calendar::Calendar;

/// The reminders of a meeting, in minutes before it begins.
const REMINDERS: [u32; 2] = [10, 0];

/// One reminder of a meeting. A meeting has several, so the id is made of two fields.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "meeting-reminder", id = "{meeting}:{minutes_before}")]
struct Remind {
    meeting: String,
    minutes_before: u32,
    at: SystemTime,
}

#[delay_listener(concurrency = 1, timeout = "5s")] // one at a time, so in the order of their times
async fn remind(job: Job<Remind>, calendar: &Arc<Calendar>) -> Result<(), JobError> {
    // The calendar decides: a reminder for another time than the calendar's is out of date. An earlier run that was killed may have left
    // some.
    let Some(minute) = calendar.remind(&job.meeting, job.minutes_before, job.at) else { return Ok(()) };
    match job.minutes_before {
        0 => println!("minute {minute}: {} begins", job.meeting),
        before => println!("minute {minute}: {} begins in {before} minutes", job.meeting),
    }
    Ok(())
}

/// Plans a meeting, or moves it: reminders that already wait get their new time.
async fn plan(jobs: &Provider, calendar: &Calendar, meeting: &str, begins: u32) -> Result<(), Box<dyn Error>> {
    calendar.plan(meeting, begins);
    for minutes_before in REMINDERS {
        let at = calendar.time(begins.saturating_sub(minutes_before));
        jobs.add(Remind { meeting: meeting.into(), minutes_before, at }).at(at).replace_existing().await?;
    }
    Ok(())
}

async fn cancel(jobs: &Provider, calendar: &Calendar, meeting: &str) -> Result<(), Box<dyn Error>> {
    calendar.cancel(meeting);
    for minutes_before in REMINDERS {
        jobs.delete::<Remind>(format!("{meeting}:{minutes_before}")).await?;
    }
    Ok(())
}

/// Plans the meetings of tomorrow. No reminder runs before the whole day is planned; if that takes longer than the night, the plan is for the
/// day after.
async fn plan_tomorrow(jobs: &Provider, calendar: &Calendar) -> Result<(), Box<dyn Error>> {
    jobs.pause::<Remind>().reason("the day is being planned").await?;
    loop {
        calendar.begin_tomorrow();
        plan(jobs, calendar, "standup", 25).await?;
        plan(jobs, calendar, "review", 38).await?;
        plan(jobs, calendar, "retro", 40).await?;
        plan(jobs, calendar, "review", 50).await?;
        cancel(jobs, calendar, "retro").await?;
        if calendar.is_night() {
            break;
        }
    }
    println!("the review moves from minute 38 to minute 50, the retro is cancelled");
    jobs.resume::<Remind>().await?;
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
    let calendar = Arc::new(Calendar::default());
    let dq = ContextFactory::new("calendar")
        .store("file:./dq-data/meeting_reminder") // `DQ_STORE` overrides this
        .provide(calendar.clone())
        .start()
        .await?;
    plan_tomorrow(dq.provider(), &calendar).await?;

    calendar.all_reminded(2 * REMINDERS.len()).await;
    dq.shutdown(delay!("5s")).await;
    let early = calendar.early();
    println!("reminders that came too early: {early}");
    Ok(if early == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
