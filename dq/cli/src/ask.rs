//! Requests to a store: how long they may take, and when they are repeated.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dq::context::open_store;
use dq::job::{ProducerId, TopicKey};
use dq::store::{BatchAnswer, Pending, Producer, Store, StoreError};
use tokio::time::{Instant, sleep, timeout};

use crate::failure::Failure;
use crate::files::view;

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// The first and the longest pause between two tries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// For how long a request is repeated while the store does not answer.
#[derive(Debug, Clone, Copy)]
pub struct Repeating(pub Duration);

/// Makes the store behind a URL and checks that it answers. It asks once: a URL that is wrong must not take long to show.
///
/// # Errors
/// [`Failure`], also if the URL names a store in the memory of another program.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, Failure> {
    if url == "memory" || url.starts_with("memory:") {
        return Err(Failure::Refused(format!(
            "`{url}` is a store in the memory of the program that uses it, which no other program can reach: name a server or a \
             directory"
        )));
    }
    let store = open_store(url)?;
    let what = format!("cannot reach {}", store.url());
    store.prepare().await.map_err(|source| not_prepared(&store.url(), source))?;
    match timeout(ANSWER, store.contact()).await {
        Ok(Ok(_)) => Ok(store),
        Ok(Err(source)) => Err(Failure::Store { what, source }),
        Err(_) => Err(Failure::silent(&what, ANSWER)),
    }
}

/// As [`open`], but a directory that a running program holds is looked at.
///
/// # Errors
/// As [`open`].
pub async fn open_to_look(url: &str) -> Result<Arc<dyn Store>, Failure> {
    match open(url).await {
        Err(Failure::Held { holder, .. }) => {
            let view = view(url, &holder)?;
            view.contact().await.map_err(|source| not_prepared(&view.url(), source))?;
            Ok(Arc::new(view))
        }
        opened => opened,
    }
}

/// A store that does not open.
fn not_prepared(url: &str, source: StoreError) -> Failure {
    match source {
        StoreError::Held { path, holder } => Failure::Held { path, holder },
        // The reason names the directory.
        StoreError::Halted { reason, .. } => Failure::Refused(reason),
        source => Failure::Store { what: format!("cannot open {url}"), source },
    }
}

impl Repeating {
    /// Sends a request of a producer until it is answered.
    pub(crate) async fn send<T>(
        self,
        what: &str,
        store: &dyn Store,
        key: &TopicKey,
        producer: &ProducerId,
        request: impl Fn(&dyn Producer) -> Pending<BatchAnswer<T>>,
    ) -> Result<BatchAnswer<T>, Failure> {
        let send = |_| {
            // A connection that broke takes its producer along; the number is what counts.
            let producer = store.producer(key, producer);
            let answer = request(&*producer);
            async move {
                let answer = answer.await;
                drop(producer);
                answer
            }
        };
        self.ask(what, send).await
    }

    /// Sends a request until it is answered. Only outages are repeated; `send` gets the number of tries so far.
    pub(crate) async fn ask<T, F>(self, what: &str, mut send: impl FnMut(u32) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let (end, mut pause) = (Instant::now() + self.0, PAUSES.0);
        for tries in 0.. {
            let failed = match timeout(ANSWER, send(tries)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(source)) if source.is_outage() => Failure::Store { what: what.to_owned(), source },
                Ok(Err(source)) => return Err(Failure::Store { what: what.to_owned(), source }),
                Err(_) => Failure::silent(what, ANSWER),
            };
            if Instant::now() + pause > end {
                return Err(failed);
            }
            sleep(pause).await;
            pause = (2 * pause).min(PAUSES.1);
        }
        unreachable!("the tries have no end")
    }
}
