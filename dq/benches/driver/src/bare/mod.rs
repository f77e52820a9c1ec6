//! The bare client: scripts that move jobs and do nothing else, no rule of the protocol, no framework.

mod punctual;
mod rates;

use std::sync::Arc;

use redis::Cmd;
use redis::aio::MultiplexedConnection;

pub use punctual::{Watched, announced, paced, trickle, watch};
pub use rates::{Shape, add_bulk, add_each, best, drain, fill, lives};

use crate::PAYLOAD;
use crate::server::ask;

const ADD: &str = "local h, z, n = {}, {}, 0
for i = 1, #ARGV, 3 do
  n = n + 1
  z[2 * n - 1], z[2 * n], h[2 * n - 1], h[2 * n] = ARGV[i], ARGV[i + 1], ARGV[i + 1], ARGV[i + 2]
end
redis.call('HSET', KEYS[1], unpack(h)) redis.call('ZADD', KEYS[2], unpack(z)) return 1";

const CLAIM: &str = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
local ids = redis.call('ZRANGE', KEYS[2], '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1])
if #ids == 0 then return {{}, {}} end
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, #ids - 1)
local v = redis.call('HMGET', KEYS[1], unpack(ids)) redis.call('SADD', KEYS[3], unpack(ids)) return {ids, v}";

/// As `CLAIM`, and tells the due time of the head that is left, and the server's time.
const CLAIM_AND_HEAD: &str = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
local ids, v = redis.call('ZRANGE', KEYS[2], '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1]), {}
if #ids > 0 then
  redis.call('ZREMRANGEBYRANK', KEYS[2], 0, #ids - 1)
  v = redis.call('HMGET', KEYS[1], unpack(ids)) redis.call('SADD', KEYS[3], unpack(ids))
end
return {ids, v, redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] or '', t[1], t[2]}";

const ACK: &str = "redis.call('SREM', KEYS[3], unpack(ARGV)) redis.call('HDEL', KEYS[1], unpack(ARGV)) return 1";

/// The scripts on a server, and the keys that they work on.
#[derive(Debug, Clone)]
pub struct Scripts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    hashes: [String; 4],
    keys: [String; 3],
    payload: String,
}

impl Scripts {
    /// Loads them; `name` is the name of the queue.
    pub async fn load(connection: &mut MultiplexedConnection, name: &str) -> Self {
        Self::with_payload(connection, name, PAYLOAD.into()).await
    }

    /// Loads them, for jobs with this payload.
    pub async fn with_payload(connection: &mut MultiplexedConnection, name: &str, payload: String) -> Self {
        let mut hashes = [const { String::new() }; 4];
        for (hash, text) in hashes.iter_mut().zip([ADD, CLAIM, ACK, CLAIM_AND_HEAD]) {
            *hash = ask(connection, redis::cmd("SCRIPT").arg("LOAD").arg(text)).await;
        }
        let keys = ["jobs", "delayed", "running"].map(|key| format!("{{{name}}}:{key}"));
        Self(Arc::new(Inner { hashes, keys, payload }))
    }

    fn call(&self, script: usize) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.0.hashes[script]).arg(3).arg(&self.0.keys);
        cmd
    }

    /// Adds jobs, each with its id and due time in ms.
    pub async fn add(&self, connection: &mut MultiplexedConnection, jobs: impl Iterator<Item = (String, u64)>) {
        ask::<()>(connection, &self.adding(jobs)).await;
    }

    /// Adds one job, and announces it on the channel `name`.
    pub async fn announce(&self, connection: &mut MultiplexedConnection, name: &str, id: String, due: u64) {
        let mut both = redis::pipe();
        both.add_command(self.adding(std::iter::once((id, due)))).cmd("PUBLISH").arg(name).arg("due");
        both.exec_async(connection).await.unwrap();
    }

    fn adding(&self, jobs: impl Iterator<Item = (String, u64)>) -> Cmd {
        let mut cmd = self.call(0);
        for (id, due) in jobs {
            cmd.arg(due).arg(id).arg(&self.0.payload);
        }
        cmd
    }

    /// Claims due jobs, at most `batch`, and returns their ids.
    pub async fn claim(&self, connection: &mut MultiplexedConnection, batch: usize) -> Vec<String> {
        let (ids, payloads): (Vec<String>, Vec<String>) = ask(connection, self.call(1).arg(batch)).await;
        assert_eq!(ids.len(), payloads.len());
        ids
    }

    /// Acks jobs.
    pub async fn ack(&self, connection: &mut MultiplexedConnection, ids: &[String]) {
        if !ids.is_empty() {
            ask::<()>(connection, self.call(2).arg(ids)).await;
        }
    }
}

/// The id of a job: 16 characters, fewer than dq generates.
fn id(number: usize) -> String {
    format!("{number:016x}")
}
