//! Connections, each for one purpose: a line of steps, the subscriptions, the looks.
//!
//! Every time-out is explicit. RESP3 says at once when a connection is gone; nothing that blocks is ever sent.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, PushInfo, RedisResult, Value};
use tokio::sync::mpsc::UnboundedSender;

use super::errors::{connecting, plain};
use super::url::Address;
use crate::store::StoreError;
use crate::store::step::LONGEST_LEASE;

/// How long a connection may take to be there.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// How long an answer may take before the connection counts as broken: longer than anybody waits. Who asks has a limit of
/// its own, `call_timeout`, which is no longer than the longest lease, and drops its way when that is over.
const ANSWER_WITHIN: Duration = LONGEST_LEASE.saturating_add(Duration::from_secs(10));

/// The same for the subscriptions, whose task serves many: they do not wait long behind one that hangs.
const SUBSCRIBED_WITHIN: Duration = Duration::from_secs(10);

/// Makes connections to one server.
#[derive(Debug)]
pub(super) struct Connector {
    address: Address,
}

impl Connector {
    pub(super) const fn new(address: Address) -> Self {
        Self { address }
    }

    /// The URL without secrets.
    pub(super) fn url(&self) -> String {
        self.address.masked()
    }

    /// A new connection; what the server pushes goes to `pushes`.
    pub(super) async fn connect(
        &self,
        operation: &'static str,
        pushes: Option<UnboundedSender<PushInfo>>,
    ) -> Result<MultiplexedConnection, StoreError> {
        let client = self.client(operation)?;
        let answer_within = if pushes.is_some() { SUBSCRIBED_WITHIN } else { ANSWER_WITHIN };
        let mut config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_WITHIN))
            .set_response_timeout(Some(answer_within));
        if let Some(pushes) = pushes {
            config = config.set_push_sender(pushes);
        }
        let connected = client.get_multiplexed_async_connection_with_config(&config).await;
        connected.map_err(|error| connecting(operation, self.address.is_tls(), error))
    }

    /// A new connection that blocks.
    #[cfg(feature = "testing")]
    pub(super) fn blocking(&self, operation: &'static str) -> Result<redis::Connection, StoreError> {
        let connected = self.client(operation)?.get_connection_with_timeout(CONNECT_WITHIN);
        connected.map_err(|error| connecting(operation, self.address.is_tls(), error))
    }

    fn client(&self, operation: &'static str) -> Result<Client, StoreError> {
        #[cfg(feature = "tls")]
        install_tls();
        Client::open(self.address.info().clone()).map_err(|error| plain(operation, error))
    }
}

/// The client panics on `rediss://` unless the process has a provider of cryptography; one that the program chose stays.
#[cfg(feature = "tls")]
fn install_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody else was faster: then there is one.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

/// Sends a command; an error the server answers with is an error.
pub(super) async fn send(connection: &mut MultiplexedConnection, cmd: &Cmd) -> RedisResult<Value> {
    match connection.send_packed_command(cmd).await? {
        Value::ServerError(error) => Err(error.into()),
        value => Ok(value),
    }
}
