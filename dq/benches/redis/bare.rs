//! The bare client: three scripts that move jobs and do nothing else, no rule of the protocol, no framework.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use dq::job::JobId;
use redis::Cmd;
use redis::aio::MultiplexedConnection;
use tokio::sync::mpsc;

use crate::round::{Meter, Round, payload};
use crate::server::{Server, ask};

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

const ACK: &str = "redis.call('SREM', KEYS[3], unpack(ARGV)) redis.call('HDEL', KEYS[1], unpack(ARGV)) return 1";

#[derive(Clone)]
struct Scripts(Arc<[String; 3]>);

impl Scripts {
    async fn load(connection: &mut MultiplexedConnection) -> Self {
        let mut hashes = [const { String::new() }; 3];
        for (hash, text) in hashes.iter_mut().zip([ADD, CLAIM, ACK]) {
            *hash = ask(connection, redis::cmd("SCRIPT").arg("LOAD").arg(text)).await;
        }
        Self(Arc::new(hashes))
    }

    fn call(&self, script: usize) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.0[script]).arg(3).arg("{bare}:jobs").arg("{bare}:delayed").arg("{bare}:running");
        cmd
    }

    async fn add(&self, connection: &mut MultiplexedConnection, from: usize, count: usize) {
        let mut cmd = self.call(0);
        for n in from..from + count {
            cmd.arg("1000").arg(JobId::generated(n as u64, 7).as_str()).arg(payload());
        }
        ask::<()>(connection, &cmd).await;
    }

    async fn claim(&self, connection: &mut MultiplexedConnection, batch: usize) -> Vec<String> {
        let (ids, payloads): (Vec<String>, Vec<String>) = ask(connection, self.call(1).arg(batch)).await;
        assert_eq!(ids.len(), payloads.len());
        ids
    }

    async fn ack(&self, connection: &mut MultiplexedConnection, ids: &[String]) {
        if !ids.is_empty() {
            ask::<()>(connection, self.call(2).arg(ids)).await;
        }
    }
}

/// Each batch goes out as soon as one of `in_flight` was answered; what was added is claimed, and acked with the next claim.
pub(crate) async fn lives(server: &Server, jobs: usize, batch: usize, in_flight: usize) -> Round {
    server.empty().await;
    let (adding, mut claiming) = (server.connect().await, server.connect().await);
    let mut acking = claiming.clone();
    let scripts = Scripts::load(&mut acking).await;
    let meter = Meter::start(server, jobs).await;
    let next = Arc::new(AtomicUsize::new(0));
    let (added, mut waiting) = mpsc::unbounded_channel();
    for _ in 0..in_flight {
        let (next, added, scripts, mut adding) = (next.clone(), added.clone(), scripts.clone(), adding.clone());
        tokio::spawn(async move {
            loop {
                let from = next.fetch_add(batch, Relaxed);
                if from >= jobs {
                    break;
                }
                scripts.add(&mut adding, from, batch.min(jobs - from)).await;
                added.send(()).unwrap();
            }
        });
    }
    drop(added);
    let mut held = Vec::new();
    while waiting.recv().await.is_some() {
        ((), held) = tokio::join!(scripts.ack(&mut acking, &held), scripts.claim(&mut claiming, batch));
    }
    scripts.ack(&mut acking, &held).await;
    meter.end(server).await
}

/// All jobs are there before it starts.
pub(crate) async fn drain(server: &Server, jobs: usize, batch: usize) -> Round {
    server.empty().await;
    let mut claiming = server.connect().await;
    let mut acking = claiming.clone();
    let scripts = Scripts::load(&mut claiming).await;
    for from in (0..jobs).step_by(1_000) {
        scripts.add(&mut claiming, from, 1_000.min(jobs - from)).await;
    }
    let meter = Meter::start(server, jobs).await;
    let mut held = scripts.claim(&mut claiming, batch).await;
    while !held.is_empty() {
        ((), held) = tokio::join!(scripts.ack(&mut acking, &held), scripts.claim(&mut claiming, batch));
    }
    meter.end(server).await
}
