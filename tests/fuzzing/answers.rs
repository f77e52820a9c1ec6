//! Answers of Redis: a server whose answers are changed on their way to a node, until they are right again.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dq::context::ContextFactory;
use dq::job::AppName;
use dq::store::redis::RedisStore;
use dq_tests::redis::RedisServer;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::net::TcpStream;

use crate::draw::Draw;
use crate::node::{Handles, Runs};
use crate::resp::Answer;
use crate::target::Found;

/// How many nodes run at the same time, each with an app of its own.
const NODES: u64 = 16;
/// How many answers of a node are changed.
const CHANGED: u64 = 40;
const JOBS: u64 = 12;
/// Each job is over this long after the answers are right again.
const MINUTE: Duration = Duration::from_secs(60);

static SERVER: Mutex<Option<Arc<RedisServer>>> = Mutex::new(None);

/// The server of the targets on Redis, until [`stop`].
pub fn server() -> Arc<RedisServer> {
    let mut server = SERVER.lock().expect("the server starts");
    Arc::clone(server.get_or_insert_with(|| Arc::new(RedisServer::start())))
}

/// Stops the server, which nothing would stop at the end of the process.
pub fn stop() {
    drop(SERVER.lock().expect("the server has started").take());
}

/// Carries bytes to the server, and its answers back, of which it changes one in three while some are left.
async fn carry(near: DuplexStream, seed: u64, left: Arc<AtomicU64>) -> std::io::Result<()> {
    let (mut asks, mut hears) = split(near);
    let (mut answers, mut sends) = TcpStream::connect(("127.0.0.1", server().port())).await?.into_split();
    let up = async move { tokio::io::copy(&mut asks, &mut sends).await.map(drop) };
    let down = async move {
        let (draw, mut bytes, mut answered) = (Draw::new(seed), Vec::new(), 0_u64);
        while answers.read_buf(&mut bytes).await? > 0 {
            while let Some((mut answer, length)) = Answer::read(&bytes) {
                bytes.drain(..length);
                answered += 1;
                // The first answers are those of the login.
                let is_changed = answered > 3 && draw.one_in(3);
                if is_changed && left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
                    answer.change(&draw);
                }
                let mut out = Vec::new();
                answer.write(&mut out);
                hears.write_all(&out).await?;
            }
        }
        Ok(())
    };
    tokio::select! {
        biased;
        done = up => done,
        done = down => done,
    }
}

/// A store whose answers are changed.
fn store(seed: u64, left: &Arc<AtomicU64>) -> RedisStore {
    let (left, lines) = (Arc::clone(left), Arc::new(AtomicU64::new(seed)));
    let open = move || {
        let (near, far) = duplex(1 << 16);
        tokio::spawn(carry(far, lines.fetch_add(1 << 32, Relaxed), Arc::clone(&left)));
        std::future::ready(Ok::<_, std::io::Error>(near))
    };
    RedisStore::new(&server().url()).expect("it is a URL").with_streams(open)
}

/// A node whose answers are changed, and jobs that another program adds meanwhile. Returns what is left of them.
async fn node(app: String, seed: u64, found: &AtomicU64) -> Result<(), String> {
    let left = Arc::new(AtomicU64::new(0));
    let runs = Runs::default();
    let factory = || {
        let factory = ContextFactory::new(app.clone()).without_inventory();
        let factory = factory.variables([("DQ_LEASE", "1s"), ("DQ_POLL_INTERVAL", "500ms")]);
        factory.store(Arc::new(store(seed, &left))).provide(runs.clone()).listener::<Handles>()
    };
    let begin = Instant::now();
    let node = loop {
        match factory().start().await {
            // The machine may be busy for longer than a start waits for its server.
            Err(_) if begin.elapsed() < MINUTE => {}
            started => break started.map_err(|error| error.to_string())?,
        }
    };
    node.ready().await;
    let app = AppName::new(app).expect("it is a name");
    let provider = dq::Provider::connect(app.as_str(), server().url()).await.map_err(|error| error.to_string())?;
    let topic = provider.topic("t").expect("it is a topic");
    left.store(CHANGED, Relaxed);
    for number in 0..JOBS {
        let id = format!("innocent-{number}");
        topic.add_json(json!(number)).id(id.as_str()).after("10ms").await.map_err(|error| error.to_string())?;
    }
    let over = async {
        while left.load(Relaxed) > 0 {
            tokio::task::yield_now().await;
            let _ = node.provider().topic("t").expect("it is a topic").get("innocent-0").within("1s").await;
        }
        loop {
            let counts = topic.counts().await.map_err(|error| error.to_string())?;
            // A hostile answer may make a job of it that dq cannot read; then it is DEAD, and kept.
            if counts.delayed + counts.running + counts.unacked == 0 {
                return Ok(());
            }
        }
    };
    let done = tokio::time::timeout(2 * MINUTE, over).await;
    found.fetch_add(CHANGED - left.load(Relaxed), Relaxed);
    let counts = topic.counts().await;
    node.shutdown(Duration::ZERO).await;
    done.unwrap_or_else(|_| Err(format!("after two minutes there are {counts:?}")))
}

/// Nodes run beside each other, each under changed answers.
pub fn answers(draw: &Draw, found: &mut Found) {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let changed = AtomicU64::new(0);
    let seeds: Vec<u64> = (0..NODES).map(|_| draw.number()).collect();
    let run = RUNS.fetch_add(1, Relaxed);
    let nodes = seeds.into_iter().enumerate().map(|(n, seed)| node(format!("app-{run}-{n}"), seed, &changed));
    let ended = runtime.expect("a runtime starts").block_on(futures_util::future::join_all(nodes));
    ended.into_iter().filter_map(Result::err).for_each(|what| found.lost(what));
    (found.executions, found.accepted) =
        (found.executions + changed.load(Relaxed), found.accepted + changed.load(Relaxed));
}
