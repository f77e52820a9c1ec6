//! Without a channel `Ok` is the ack, with one the function decides, an error is an error; and the final retry is called.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dq::job::Cause;
use dq::prelude::*;
use dq::testing::{channel, job};
use serde::{Deserialize, Serialize};

static GIVEN_UP: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "count")]
struct Count(u64);

#[delay_listener(register = false, on_exhausted = "give_up")]
async fn count(job: Job<Count>, total: &Arc<AtomicU64>) -> Result<(), String> {
    match job.0 {
        0 => Err("nothing".to_owned()),
        more => {
            total.fetch_add(more, Ordering::Relaxed);
            Ok(())
        }
    }
}

#[delay_listener(register = false)]
async fn decide(job: Job<Count>, step: u64, channel: Channel) -> Result<Decided, JobError> {
    Ok(if job.0 == step { channel.park() } else { channel.rejoin() })
}

async fn give_up(job: Job<Count>, _cause: &Failure) {
    GIVEN_UP.fetch_add(job.0, Ordering::Relaxed);
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let total = Arc::new(AtomicU64::new(0));
    let counting = count { total: total.clone() };
    let decided = counting.on_due(job(Count(7)), channel()).await.unwrap();
    assert_eq!((decided.decision(), total.load(Ordering::Relaxed)), (&Decision::Ack, 7));
    assert_eq!(counting.on_due(job(Count(0)), channel()).await.unwrap_err().to_string(), "nothing");
    counting.on_exhausted(job(Count(5)), &Failure::new(Cause::Error, "nothing")).await;
    assert_eq!(GIVEN_UP.load(Ordering::Relaxed), 5);

    let deciding = decide { step: 7 };
    for (number, decision) in [(7, Decision::Park), (8, Decision::Rejoin)] {
        assert_eq!(deciding.on_due(job(Count(number)), channel()).await.unwrap().decision(), &decision);
    }
    assert_eq!(format!("{deciding:?}"), "decide");
}
