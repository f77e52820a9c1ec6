//! How far a connection has come, and so which of its requests can have left the program (rule 18: *not done* is not
//! *unknown*).
//!
//! Before the connection exists nothing has left, and after its end nothing leaves any more. A request of either time is
//! answered with an error that says that it was not sent, and why.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::StoreError;

/// The progress of one connection.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Connecting,
    Connected,
    /// The caller would not wait for the connection any longer.
    TakenBack,
    /// The connection was lost, or could not be made.
    Ended(StoreError),
}

/// Why a connection is missing that took longer than its caller waits. A firewall that drops packets is the usual cause.
const TOO_SLOW: &str = "no connection was made in time (are host and port in the URL right, is it the TLS port if and only if \
                        the URL begins with rediss://, and does a firewall let this program through?)";

impl Progress {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the connection exists. Returns `false` if the requests were taken back: none of them may be sent.
    pub(super) fn connected(&self) -> bool {
        let mut state = self.state();
        if matches!(*state, State::TakenBack) {
            return false;
        }
        *state = State::Connected;
        true
    }

    /// Takes back every request, if none can have left. Returns whether it did.
    pub(super) fn take_back(&self) -> bool {
        let mut state = self.state();
        if matches!(*state, State::Connecting) {
            *state = State::TakenBack;
        }
        matches!(*state, State::TakenBack)
    }

    pub(super) fn is_taken_back(&self) -> bool {
        matches!(*self.state(), State::TakenBack)
    }

    /// Notes why there is no connection any more.
    pub(super) fn end(&self, error: &StoreError) {
        let mut state = self.state();
        if !matches!(*state, State::TakenBack) {
            *state = State::Ended(unsent(error, "connect"));
        }
    }

    /// The error of a request that did not reach the connection.
    pub(super) fn unsent(&self, operation: &'static str) -> StoreError {
        let reason = match &*self.state() {
            State::Ended(error) => return unsent(error, operation),
            State::TakenBack => TOO_SLOW,
            State::Connecting | State::Connected => "the connection was closed",
        };
        StoreError::NotSent { operation, reason: reason.into() }
    }
}

/// The error of a request that was not sent because of `error`.
fn unsent(error: &StoreError, operation: &'static str) -> StoreError {
    match error {
        StoreError::Denied { reason, .. } => StoreError::Denied { operation, reason: reason.clone() },
        StoreError::Unsupported { reason, .. } => StoreError::Unsupported { operation, reason: reason.clone() },
        StoreError::NotSent { reason, .. }
        | StoreError::Refused { reason, .. }
        | StoreError::Unavailable { reason, .. } => StoreError::NotSent { operation, reason: reason.clone() },
        other => StoreError::NotSent { operation, reason: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_connection_can_have_sent_is_taken_back() {
        let connected = Progress::default();
        assert!(connected.connected() && !connected.take_back() && !connected.is_taken_back());
        let connecting = Progress::default();
        assert!(connecting.take_back() && connecting.is_taken_back());
        assert!(!connecting.connected(), "a connection that comes too late sends nothing");
        assert!(connecting.unsent("add").nothing_done() && connecting.unsent("add").is_outage());
    }

    #[test]
    fn a_request_after_the_end_was_not_sent_and_says_why() {
        let progress = Progress::default();
        progress.end(&StoreError::Unavailable { operation: "settle", reason: "reset".into() });
        assert_eq!(progress.unsent("add").to_string(), "the store cannot be reached, so add was not sent: reset");
        progress.end(&StoreError::Denied { operation: "connect", reason: "WRONGPASS".into() });
        assert!(matches!(progress.unsent("add"), StoreError::Denied { operation: "add", .. }));
        assert!(!progress.take_back());
    }
}
