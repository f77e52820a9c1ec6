//! `durability = wait(replicas, timeout)`: a `WAIT` behind each batch of a producer, in the same write.
//!
//! `WAIT` blocks the line that sends it, and producers have lines of their own. So it costs a batch the trip to the
//! replicas and back, and costs the steps of nodes nothing. It answers how many replicas have all writes of its connection
//! so far. That confirms a repeated batch as well, because its script writes too (`parts/calls.lua`).
//!
//! If too few replicas confirm in time, the step was executed and a failover may undo it: it counts neither as done nor
//! as refused.

use std::time::Duration;

use redis::{Cmd, RedisResult, Value};

use super::errors::{Failure, classify};
use super::millis;
use crate::store::{Durability, StoreError};

/// How many replicas must confirm a request, and how long they may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Confirm {
    replicas: u32,
    timeout: Duration,
}

impl Confirm {
    /// What this durability asks for: nothing, except under [`Durability::Wait`].
    pub(super) const fn of(durability: Durability) -> Option<Self> {
        match durability {
            Durability::Local | Durability::Sync | Durability::Interval(_) => None,
            Durability::Wait { replicas, timeout } => Some(Self { replicas, timeout }),
        }
    }

    /// The `WAIT` to send behind a step.
    pub(super) fn command(self) -> Cmd {
        let mut wait = redis::cmd("WAIT");
        // At least a millisecond: 0 means forever.
        wait.arg(self.replicas).arg(millis(self.timeout).max(1));
        wait
    }

    /// Checks the answer to the `WAIT` behind a step that was executed. So whatever the answer is, the step was done.
    pub(super) fn check(self, operation: &'static str, answer: RedisResult<Value>) -> Result<(), Failure> {
        let unconfirmed = |confirmed: u32| {
            let Self { replicas: wanted, timeout: waited } = self;
            Failure::Answered(StoreError::NotReplicated { operation, confirmed, wanted, waited })
        };
        match answer {
            Ok(Value::Int(confirmed)) => match u32::try_from(confirmed).unwrap_or_default() {
                confirmed if confirmed >= self.replicas => Ok(()),
                confirmed => Err(unconfirmed(confirmed)),
            },
            Ok(_) => Err(unconfirmed(0)),
            Err(error) => Err(match classify(operation, None, &error) {
                unknown @ (Failure::Broken(StoreError::Unavailable { .. })
                | Failure::Answered(StoreError::Other { .. })) => unknown,
                _ => unconfirmed(0),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(answer: RedisResult<Value>) -> Result<(), Failure> {
        let durability = Durability::Wait { replicas: 2, timeout: Duration::from_millis(500) };
        Confirm::of(durability).unwrap().check("add", answer)
    }

    fn server_says(code: &'static str) -> RedisResult<Value> {
        Err(redis::make_extension_error(code.into(), Some("no".into())))
    }

    #[test]
    fn enough_replicas_confirm_and_fewer_do_not() {
        assert!(checked(Ok(Value::Int(2))).is_ok() && checked(Ok(Value::Int(3))).is_ok());
        let Err(Failure::Answered(error)) = checked(Ok(Value::Int(1))) else { panic!("one is too few") };
        assert!(matches!(error, StoreError::NotReplicated { confirmed: 1, wanted: 2, .. }));
        assert!(error.is_outage() && !error.nothing_done());
        assert_eq!(
            error.to_string(),
            "the store has done add, but 1 of 2 replicas confirmed it within 500ms: a failover may undo it"
        );
    }

    #[test]
    fn no_answer_to_a_wait_means_that_nothing_was_done() {
        for answer in [Ok(Value::Nil), server_says("LOADING"), server_says("UNBLOCKED"), server_says("NOPERM")] {
            let Err(Failure::Answered(error) | Failure::Broken(error)) = checked(answer) else { panic!("unconfirmed") };
            assert!(!error.nothing_done(), "{error:?}");
        }
    }
}
