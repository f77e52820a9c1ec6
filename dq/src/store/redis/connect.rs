//! Makes connections. Each serves one purpose: a shared line, the subscriptions, or the queries.
//!
//! The client library speaks over a stream of dq's own (`stream`), which tells when bytes last came. RESP3 reports at
//! once when a connection is gone; no blocking command is ever sent, except the `WAIT` of a producer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, select_ok};
use futures_util::stream::FuturesUnordered;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Cmd, FromRedisValue, Pipeline, RedisConnectionInfo, RedisError, RedisResult, Role, Value,
};
use tokio::net::{TcpStream, lookup_host};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::cluster::{Node, ServerPlace};
use super::errors::of_connecting;
use super::sentinel::{Host, Sentinels, Votes, next_in_time};
use super::source::{Source, Stream};
use super::stream::{LastByte, timed};
use super::url::Address;
use crate::environment::{Boottime, Clock};
use crate::store::StoreError;
use crate::store::step::MAX_LEASE;

/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// How long to wait for the answers of sentinels while no master has enough of them.
const SENTINELS_WITHIN: Duration = Duration::from_millis(800);

/// How long an answer may take before the connection counts as broken: longer than any caller waits. The limit of a
/// caller is `call_timeout`, at most the longest lease; then the caller gives its connection up.
pub(super) const ANSWER_WITHIN: Duration = MAX_LEASE.saturating_add(Duration::from_secs(10));

/// How often a line looks whether it is still used and still works. A line closes after one to two of these without a
/// request, and a subscription asks the server whether it works after one without a message: the cost counts among the commands of an idle
/// node.
const CHECK_PERIOD: Duration = Duration::from_secs(30);

/// A connection, which any number of tasks may use.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) client: MultiplexedConnection,
    /// Of a cluster: the server.
    node: Option<Node>,
}

/// What reads and writes for a connection. It ends with the connection, which closes when it is dropped.
pub(super) type Driver = BoxFuture<'static, ()>;

/// A connection whose driver has a task of its own. It closes when its last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct DrivenConnection {
    pub(super) connection: Connection,
    /// Cancelled once the connection is gone.
    pub(super) ended: CancellationToken,
    _closes: Arc<DropGuard>,
}

/// Makes connections to one server.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    pub(super) address: Address,
    pub(super) source: Source,
    /// Of a cluster: the server to connect to; otherwise it is that of the URL.
    pub(super) node: Option<Node>,
    pub(super) check_period: Duration,
}

impl Connector {
    pub(super) fn new(address: Address) -> Self {
        Self { address, source: Source::default(), node: None, check_period: CHECK_PERIOD }
    }

    /// The server may be the wrong one.
    pub(super) fn doubt(&self) {
        if let Some(node) = &self.node {
            node.cluster.doubt(None);
        }
    }

    /// A new connection, which tells `last_byte` when bytes come. `config` says how long an answer may take.
    pub(super) async fn connect(
        &self,
        operation: &'static str,
        config: AsyncConnectionConfig,
        last_byte: LastByte,
    ) -> Result<(Connection, Driver), StoreError> {
        let too_late = Boottime.sleep_until(Boottime.now() + CONNECT_WITHIN);
        let connected = tokio::select! {
            biased;
            connected = self.open(config, last_byte) => connected,
            () = too_late => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        };
        connected.map_err(|error| {
            self.doubt();
            of_connecting(operation, self.address.is_tls, &error)
        })
    }

    /// The same, with a task of its own.
    pub(super) async fn connect_driven(
        &self,
        operation: &'static str,
        config: AsyncConnectionConfig,
    ) -> Result<DrivenConnection, StoreError> {
        let (connection, driver) = self.connect(operation, config, LastByte::default()).await?;
        let (ended, closed) = (CancellationToken::new(), CancellationToken::new());
        let (guard, closes) = (ended.clone().drop_guard(), Arc::new(closed.clone().drop_guard()));
        super::spawn(async move {
            closed.run_until_cancelled(driver).await;
            drop(guard);
        });
        Ok(DrivenConnection { connection, ended, _closes: closes })
    }

    async fn open(&self, config: AsyncConnectionConfig, last_byte: LastByte) -> RedisResult<(Connection, Driver)> {
        let settings = self.settings().await?;
        let (mut node, mut named) = (self.node.clone(), None);
        let stream = match self.source.stream().await? {
            Some(_) if node.is_some() => return Err(io::Error::other(STREAMS_OF_A_CLUSTER).into()),
            Some(stream) => Box::new(timed(stream, last_byte)),
            None => {
                let (host, port) = match (&mut node, &self.address.sentinels) {
                    (Some(node), _) => {
                        let host = node.host().await?;
                        node.place = ServerPlace::At(host.clone());
                        host
                    }
                    (None, Some(sentinels)) => named.insert(self.master(sentinels).await?).clone(),
                    (None, None) => self.address.host.clone(),
                };
                self.stream_to_host(&host, port, &last_byte).await?
            }
        };
        let (client, driver) = MultiplexedConnection::new_with_config(&settings, stream, config).await?;
        let lost = node.clone();
        let mut driver = Box::pin(driver.map(|()| {
            if let Some(node) = lost {
                node.cluster.doubt(None);
            }
        }));
        let mut connection = Connection { client, node };
        if let Some(sentinels) = &self.address.sentinels {
            driven(check_master(&mut connection), &mut driver).await?;
            named.into_iter().for_each(|master| sentinels.used(master));
        }
        Ok((connection, driver))
    }

    /// Who connects, and to which database.
    pub(super) async fn settings(&self) -> RedisResult<RedisConnectionInfo> {
        let mut settings = self.address.settings.clone();
        if let Some(login) = self.source.login().await? {
            settings = settings.set_password(login.password);
            settings = settings.set_username(login.user.unwrap_or_else(|| "default".into()));
        }
        Ok(settings)
    }

    /// The master that the sentinels name now.
    async fn master(&self, sentinels: &Sentinels) -> io::Result<Host> {
        let question = sentinels.question();
        let ask = |host| {
            let answer = self.ask(&sentinels.settings, host, &question);
            async move { (host, answer.await) }
        };
        let mut asked: FuturesUnordered<_> = sentinels.hosts.iter().map(ask).collect();
        let mut too_late = Boottime.sleep_until(Boottime.now() + SENTINELS_WITHIN);
        let mut votes = Votes::new(sentinels);
        while let Some((sentinel, answer)) = next_in_time(&mut asked, &mut too_late).await {
            if let Some(master) = votes.count(sentinel, answer) {
                return Ok(master);
            }
        }
        votes.confirmed()
    }

    /// Asks a server one question over a connection of its own.
    pub(super) async fn ask<T: FromRedisValue>(
        &self,
        settings: &RedisConnectionInfo,
        (host, port): &Host,
        question: &Cmd,
    ) -> RedisResult<T> {
        let stream = self.stream_to_host(host, *port, &LastByte::default()).await?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let (mut client, driver) = MultiplexedConnection::new_with_config(settings, stream, config).await?;
        driven(question.query_async(&mut client), driver).await
    }

    /// A stream to a host. A name may have several addresses, and one that does not answer must not hold up the
    /// others.
    pub(super) async fn stream_to_host(
        &self,
        host: &str,
        port: u16,
        last_byte: &LastByte,
    ) -> io::Result<Box<dyn Stream>> {
        let found = lookup_host((host.trim_matches(['[', ']']), port)).await?.collect::<Vec<_>>();
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
        }
        let streams = found.into_iter().map(|at| Box::pin(self.stream(host, at, last_byte.clone())));
        Ok(select_ok(streams).await?.0)
    }

    #[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "only a certificate is for a host"))]
    async fn stream(&self, host: &str, at: std::net::SocketAddr, last_byte: LastByte) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(at).await?;
        stream.set_nodelay(true)?;
        let stream = timed(stream, last_byte);
        #[cfg(feature = "tls")]
        if let Some(certificates) = &self.address.certificates {
            return Ok(Box::new(certificates.begin(host, stream).await?));
        }
        Ok(Box::new(stream))
    }
}

/// Waits for an answer over a connection whose driver has no task.
async fn driven<T>(answer: impl Future<Output = RedisResult<T>>, driver: impl Future<Output = ()>) -> RedisResult<T> {
    tokio::select! {
        biased;
        answer = answer => answer,
        () = driver => Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
    }
}

/// Checks that the server is a master, as it says itself: during a failover sentinels may still name the old one.
async fn check_master(connection: &mut Connection) -> RedisResult<()> {
    match redis::from_redis_value(send(connection, &redis::cmd("ROLE")).await?) {
        Ok(Role::Primary { .. }) => Ok(()),
        _ => {
            Err(io::Error::other("the server that the sentinels name is not a master: is a failover on its way?")
                .into())
        }
    }
}

const STREAMS_OF_A_CLUSTER: &str = "the function that opens streams does not learn for which server of a cluster: write the \
                                    servers into the URL instead";

/// Sends a command. An error in the server's answer is an error.
pub(super) async fn send(connection: &mut Connection, cmd: &Cmd) -> RedisResult<Value> {
    let answer = connection.client.send_packed_command(cmd).await?;
    answer_of(connection, answer)
}

/// Sends commands in one write. Each has an answer of its own; the error is one of the connection.
pub(super) async fn send_all(connection: &mut Connection, commands: &Pipeline) -> RedisResult<Vec<RedisResult<Value>>> {
    let answers = connection.client.send_packed_commands(commands, 0, commands.len()).await?;
    Ok(answers.into_iter().map(|answer| answer_of(connection, answer)).collect())
}

fn answer_of(connection: &Connection, value: Value) -> RedisResult<Value> {
    match value {
        Value::ServerError(error) => {
            let error = RedisError::from(error);
            Err(match &connection.node {
                Some(node) => node.noted(error),
                None => error,
            })
        }
        value => Ok(value),
    }
}
