//! Fakes of the merchants' servers.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How the server of a merchant behaves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behaviour {
    Answers,
    /// Answers with an error this many times.
    FailsTimes(u32),
    /// Does not answer at all this many times.
    HangsTimes(u32),
    IsDown,
}

struct Server {
    behaviour: Behaviour,
    calls: Vec<Instant>,
}

/// All servers.
pub(crate) struct Gateway(Mutex<BTreeMap<&'static str, Server>>);

/// The server did not take the payment.
#[derive(Debug)]
pub(crate) struct Refused {
    payment: u64,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "payment {}: 503 Service Unavailable", self.payment)
    }
}

impl std::error::Error for Refused {}

impl Gateway {
    pub(crate) fn new(servers: impl IntoIterator<Item = (&'static str, Behaviour)>) -> Self {
        let server = |(merchant, behaviour)| (merchant, Server { behaviour, calls: Vec::new() });
        Self(Mutex::new(servers.into_iter().map(server).collect()))
    }

    /// Calls the server of a merchant.
    pub(crate) async fn notify(&self, merchant: &str, payment: u64) -> Result<(), Refused> {
        match self.call(merchant) {
            Behaviour::Answers => Ok(()),
            Behaviour::HangsTimes(_) => pending().await,
            Behaviour::FailsTimes(_) | Behaviour::IsDown => Err(Refused { payment }),
        }
    }

    /// Records a call and returns how the server behaves this time.
    fn call(&self, merchant: &str) -> Behaviour {
        let mut servers = self.servers();
        let Some(server) = servers.get_mut(merchant) else { return Behaviour::IsDown };
        let now = server.behaviour;
        server.calls.push(Instant::now());
        server.behaviour = match now {
            Behaviour::FailsTimes(0 | 1) | Behaviour::HangsTimes(0 | 1) => Behaviour::Answers,
            Behaviour::FailsTimes(times) => Behaviour::FailsTimes(times - 1),
            Behaviour::HangsTimes(times) => Behaviour::HangsTimes(times - 1),
            Behaviour::Answers | Behaviour::IsDown => now,
        };
        now
    }

    pub(crate) fn fix(&self, merchant: &str) {
        if let Some(server) = self.servers().get_mut(merchant) {
            server.behaviour = Behaviour::Answers;
        }
    }

    /// Returns the times between the calls of a merchant's server.
    pub(crate) fn pauses(&self, merchant: &str) -> Vec<Duration> {
        let servers = self.servers();
        let calls = servers.get(merchant).map(|server| server.calls.as_slice()).unwrap_or_default();
        calls.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<&'static str, Server>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
