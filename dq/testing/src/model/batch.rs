//! The parts of requests: new jobs, withdrawals and outcomes.

use std::time::Duration;

use super::reference::Job;
use super::step::{self, Adding, Settling, Withdrawing};
use super::world::{World, job, ms};
use dq::job::{Cause, Codec, Fence, Front, Record};
use dq::store::step::{Again, Change, Outcome};
use dq::store::{Due, NewJob, Withdrawal};
use dq::time::Timestamp;

impl World {
    /// Each says in its payload which one it is.
    pub(super) fn new_job(&self, by: u8, number: u64, n: usize, adding: &Adding) -> NewJob {
        let (due, delay) = match adding.due {
            step::Due::After(after) => (Due::After(ms(after)), ms(after)),
            step::Due::In(after) => (Due::At(self.at(after)), Duration::ZERO),
        };
        let front = Front { delay, retain: ms(adding.retain), ..Front::default() };
        let payload = format!("{by} {number} {n}");
        NewJob {
            id: job(adding.job),
            generated: false,
            due,
            expires_after: adding.expires_after.map(ms),
            record: Record::new(&front, Codec::Json, payload.as_bytes()),
            on_duplicate: adding.on_duplicate,
            deliver: adding.deliver,
        }
    }

    fn at(&self, after_ms: i64) -> Timestamp {
        Timestamp::from_millis((self.topic.micros / 1_000).saturating_add_signed(after_ms))
    }

    pub(super) fn withdrawal(&self, item: &Withdrawing) -> Withdrawal {
        let parked_by = self.topic.jobs.get(&job(item.job)).and_then(|job| job.front().parked_by);
        let right = self.token(item.job, step::Token::Right).fence;
        let fence = match item.fence {
            step::Fence::None => None,
            step::Fence::Right => parked_by.or(Some(right)),
            step::Fence::Old(back) => Some(self.token(item.job, step::Token::Old(back)).fence),
            step::Fence::Wrong => Some(Fence(right.0 + 1)),
        };
        Withdrawal { verb: item.verb, id: job(item.job), fence }
    }

    pub(super) fn outcome(&self, it: &Settling) -> Outcome {
        let change = match it.change {
            step::Change::Ack => Change::Ack,
            step::Change::RejoinAsAdded => Change::Rejoin(Again::AsAdded),
            step::Change::RejoinAfter(after) => Change::Rejoin(Again::After(ms(after))),
            step::Change::RejoinIn(after) => Change::Rejoin(Again::At(self.at(after))),
            step::Change::Retry(after) => Change::Retry(ms(after)),
            step::Change::Rollback => Change::Rollback,
            step::Change::Park => Change::Park,
            step::Change::Dead => Change::Dead,
            step::Change::Drop => Change::Drop,
        };
        let front = it.front.then(|| {
            let front = self.front(it.job);
            let attempts = front.attempts + 1;
            Front { attempts, cause: Some(Cause::Error), parked_by: Some(Fence(7)), error: Some("no".into()), ..front }
        });
        Outcome { id: job(it.job), token: self.token(it.job, it.token), change, front }
    }

    /// What `exhaust` writes; it claims another parking fence.
    pub(super) fn last_front(&self, id: u8) -> Front {
        let (cause, parked_by, error) = (Some(Cause::Timeout), Some(Fence(7)), Some("late".into()));
        Front { exhausted: true, cause, parked_by, error, ..self.front(id) }
    }

    fn front(&self, id: u8) -> Front {
        self.topic.jobs.get(&job(id)).map(Job::front).unwrap_or_default()
    }
}
