//! Makes connections. Each serves one purpose: a link or producer, the subscriptions, or the queries.
//!
//! Every timeout is explicit. RESP3 reports at once when a connection is gone; no blocking command is ever sent, except
//! the `WAIT` of a producer.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, PushInfo, RedisResult, Value};
use tokio::sync::mpsc::UnboundedSender;

use super::errors::{of_command, of_connecting};
use super::url::Address;
use crate::store::StoreError;
use crate::store::step::LONGEST_LEASE;

/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// How long an answer may take before the connection counts as broken: longer than any caller waits. The limit of a
/// caller is `call_timeout`, at most the longest lease; then the caller drops its connection.
const ANSWER_WITHIN: Duration = LONGEST_LEASE.saturating_add(Duration::from_secs(10));

/// The same for the subscriptions: their task serves many subscribers, so they must not wait long for a connection that
/// hangs.
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

    /// A new connection. What the server pushes goes to `pushes`.
    pub(super) async fn connect(
        &self,
        operation: &'static str,
        pushes: Option<UnboundedSender<PushInfo>>,
    ) -> Result<MultiplexedConnection, StoreError> {
        let answer_within = if pushes.is_some() { SUBSCRIBED_WITHIN } else { ANSWER_WITHIN };
        self.connect_with(operation, pushes, answer_within).await
    }

    /// A new connection for steps, which tells `pushes` when it is lost.
    pub(super) async fn connect_watched(
        &self,
        operation: &'static str,
        pushes: UnboundedSender<PushInfo>,
    ) -> Result<MultiplexedConnection, StoreError> {
        self.connect_with(operation, Some(pushes), ANSWER_WITHIN).await
    }

    async fn connect_with(
        &self,
        operation: &'static str,
        pushes: Option<UnboundedSender<PushInfo>>,
        answer_within: Duration,
    ) -> Result<MultiplexedConnection, StoreError> {
        let client = self.client(operation)?;
        let mut config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_WITHIN))
            .set_response_timeout(Some(answer_within));
        if let Some(pushes) = pushes {
            config = config.set_push_sender(pushes);
        }
        let connected = client.get_multiplexed_async_connection_with_config(&config).await;
        connected.map_err(|error| of_connecting(operation, self.address.is_tls(), error))
    }

    /// A new blocking connection.
    #[cfg(feature = "testing")]
    pub(super) fn blocking(&self, operation: &'static str) -> Result<redis::Connection, StoreError> {
        let connected = self.client(operation)?.get_connection_with_timeout(CONNECT_WITHIN);
        connected.map_err(|error| of_connecting(operation, self.address.is_tls(), error))
    }

    fn client(&self, operation: &'static str) -> Result<Client, StoreError> {
        #[cfg(feature = "tls")]
        install_crypto_provider();
        Client::open(self.address.info().clone()).map_err(|error| of_command(operation, error))
    }
}

/// Installs a crypto provider, unless the program has chosen one: without any, the client panics on `rediss://`.
#[cfg(feature = "tls")]
fn install_crypto_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread has just installed one.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

/// Sends a command. An error in the server's answer is an error.
pub(super) async fn send(connection: &mut MultiplexedConnection, cmd: &Cmd) -> RedisResult<Value> {
    match connection.send_packed_command(cmd).await? {
        Value::ServerError(error) => Err(error.into()),
        value => Ok(value),
    }
}
