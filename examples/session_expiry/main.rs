//! Ends idle sessions: the deadline moves as long as there are heartbeats.
//!
//! There are two ways to move it. A *session* remembers its last heartbeat. When its job is due too early, the job rejoins for
//! the rest of the time: one write per idle time, however many heartbeats there are. A *connection* extends its job with
//! every ping: one write per ping, and nothing to remember.

mod sessions;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use sessions::{Idle, Sessions};

/// How long a session lives without a heartbeat; in production half an hour.
const IDLE: Duration = delay!("2s");
const HEARTBEAT: Duration = delay!("60ms");

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "session-expiry", delay = "2s")]
struct EndSession {
    #[job(id)]
    user: String,
}

#[delay_listener(timeout = "5s")]
struct SessionExpiry {
    sessions: Arc<Sessions>,
}

impl DelayListener for SessionExpiry {
    type Job = EndSession;

    async fn on_due(&self, job: Job<EndSession>, channel: Channel) -> Result<Decided, JobError> {
        Ok(match self.sessions.end_if_idle(&job.user, IDLE) {
            Idle::Ended | Idle::Gone => channel.ack(),
            Idle::SeenAgo(ago) => channel.rejoin_after(IDLE - ago),
        })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "connection-expiry", delay = "2s")]
struct DropConnection {
    #[job(id)]
    device: String,
}

#[delay_listener(timeout = "5s")]
async fn drop_connection(job: Job<DropConnection>, connections: &Arc<Sessions>) -> Result<(), JobError> {
    connections.end(&job.device, IDLE);
    Ok(())
}

/// Ends idle sessions, whose deadline moves as long as there are heartbeats.
///
/// The variable DQ_STORE names the store of the jobs. Without it, the jobs are in the directory `./dq-data/session_expiry`.
#[derive(Parser)]
struct Arguments;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments = Arguments::parse();
    let sessions = Arc::new(Sessions::default());
    let dq = ContextFactory::new("chat")
        .store("file:./dq-data/session_expiry") // `DQ_STORE` overrides this
        .provide(sessions.clone())
        .start()
        .await?;
    let jobs = dq.provider();

    jobs.delete::<DropConnection>("camera").await?; // if an earlier run was killed; all other jobs are replaced
    for user in ["ana", "ben", "cleo"] {
        sessions.seen(user);
        jobs.add(EndSession { user: user.into() }).replace_existing().await?;
    }
    sessions.remove("cleo"); // logs out
    jobs.delete::<EndSession>("cleo").await?;
    println!("cleo    logged out, her job was deleted");
    for _ in 0..20 {
        sleep(HEARTBEAT).await;
        sessions.seen("ana");
        sessions.seen("camera");
        jobs.add_or_extend(DropConnection { device: "camera".into() }).at_most("8h").await?; // moves the deadline
    }
    sessions.all_ended().await;
    dq.shutdown(delay!("5s")).await;

    for (name, session) in sessions.report() {
        let end = if session.too_early { "ended TOO EARLY" } else { "ended after the last heartbeat" };
        println!("{name:<7} {:>2} heartbeats, {end}", session.heartbeats);
    }
    let runs = sessions.checks("ana");
    println!("ana's job ran {} than she had heartbeats", if runs < 10 { "less often" } else { "MORE OFTEN" });
    let ok = runs < 10 && sessions.report().iter().all(|(_, session)| !session.too_early);
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
