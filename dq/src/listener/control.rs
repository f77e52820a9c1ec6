//! What the task of a run, its topic and its handler share: whether and when the run began, and what ends it early.
//!
//! The runtime of the handlers may be busy or blocked for long. So a timeout counts from the first poll, and a run whose task
//! was not polled can still be taken back as if it had never been. One compare-exchange decides between the two,
//! so exactly one of them wins, and a run that ends by itself costs no message.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio_util::sync::CancellationToken;

use super::next::Drafts;
use crate::job::Progress;

const NOT_YET: u64 = 0;
const TAKEN_BACK: u64 = u64::MAX - 1;
const GIVEN_UP: u64 = u64::MAX;

/// Controls a run, or one job of a batch.
#[derive(Debug, Default)]
pub struct RunControl {
    /// When the run began, or one of the above.
    began: AtomicU64,
    /// Wakes the task that a run is given up in.
    task: AtomicWaker,
    cancelled: AtomicBool,
    /// What tells that it was cancelled. Few handlers wait for that, so it is made when one does.
    token: Mutex<Option<CancellationToken>>,
    /// What the handler has said last, until the topic takes it to the store.
    progress: Mutex<Option<Box<Progress>>>,
    /// What follows an `on_exhausted`; `None`: it is another handler, which says so with its decision.
    next: Mutex<Option<Option<Drafts>>>,
    /// The control of its batch: what cancels the batch cancels each of its jobs.
    batch: Option<Arc<Self>>,
}

impl RunControl {
    /// Controls one job of this batch.
    pub(crate) fn of_batch(batch: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self { batch: Some(Arc::clone(batch)), ..Self::default() })
    }

    /// The task is polled for the first time. `false`: the run was taken back, so its handler must not start.
    pub(crate) fn begin(&self, now: Duration) -> bool {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let at = nanos.min(TAKEN_BACK - 2) + 1; // the time may be zero
        self.began.compare_exchange(NOT_YET, at, AcqRel, Acquire).is_ok()
    }

    /// Keeps the run from beginning. `false`: it has begun.
    pub(crate) fn take_back(&self) -> bool {
        self.began.compare_exchange(NOT_YET, TAKEN_BACK, AcqRel, Acquire).is_ok()
    }

    /// Whether the run was taken back, and has not been given up since.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.began.load(Acquire) == TAKEN_BACK
    }

    /// The topic has given the run up, so it does not want to know how it ends. Its future is dropped at its next `await`.
    pub(crate) fn give_up(&self) {
        self.began.store(GIVEN_UP, Release);
        self.task.wake();
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.began.load(Acquire) == GIVEN_UP
    }

    /// When the run began, to the nanosecond; `None`: it has not, or it was taken back or given up.
    pub(crate) fn began_at(&self) -> Option<Duration> {
        match self.began.load(Acquire) {
            NOT_YET | TAKEN_BACK | GIVEN_UP => None,
            at => Some(Duration::from_nanos(at - 1)),
        }
    }

    /// Polls the run until it is given up; then returns `None`.
    pub(crate) async fn until_given_up<T>(&self, run: impl Future<Output = T>) -> Option<T> {
        let mut run = pin!(run);
        poll_fn(|cx| {
            if self.is_given_up() {
                return Poll::Ready(None);
            }
            if let Poll::Ready(ended) = run.as_mut().poll(cx) {
                return Poll::Ready(Some(ended));
            }
            self.task.register(cx.waker());
            if self.is_given_up() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    /// The handler says how far it has come. Returns whether the topic has taken what it said before.
    pub(crate) fn set_progress(&self, progress: Progress) -> bool {
        let mut last = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        last.replace(Box::new(progress)).is_none()
    }

    /// Takes what the handler has said last.
    pub(crate) fn take_progress(&self) -> Option<Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).take().map(|progress| *progress)
    }

    /// What was taken has not reached the store: it counts again, unless the handler has said more since.
    pub(crate) fn return_progress(&self, progress: Progress) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(Box::new(progress));
    }

    /// The run is an `on_exhausted`, which may say what follows.
    pub(crate) fn allow_next(&self) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(None);
    }

    /// Notes what follows. Returns whether the run may say that.
    pub(crate) fn set_next(&self, drafts: Drafts) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.as_mut().map(|next| *next = Some(drafts)).is_some()
    }

    /// Takes what follows.
    pub(crate) fn take_next(&self) -> Option<Drafts> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).take().flatten()
    }

    /// Asks the handler to stop.
    pub(crate) fn cancel(&self) {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        self.cancelled.store(true, Release);
        let token = token.clone();
        if let Some(token) = token {
            token.cancel();
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Acquire) || self.batch.as_ref().is_some_and(|batch| batch.is_cancelled())
    }

    /// Is cancelled with the run.
    pub(crate) fn token(&self) -> CancellationToken {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || self.batch.as_ref().map_or_else(CancellationToken::new, |batch| batch.token().child_token());
        let token = token.get_or_insert_with(new).clone();
        if self.cancelled.load(Acquire) {
            token.cancel();
        }
        token
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_run_either_begins_or_is_taken_back() {
        let began = RunControl::default();
        assert!(began.begin(Duration::from_secs(7)) && !began.take_back());
        assert_eq!(began.began_at(), Some(Duration::from_secs(7)));
        began.give_up();
        assert!(began.is_given_up() && began.began_at().is_none());
        let taken_back = RunControl::default();
        assert!(taken_back.take_back() && !taken_back.begin(Duration::from_secs(7)));
        assert!(taken_back.began_at().is_none() && !taken_back.is_given_up());
    }

    #[test]
    fn a_run_may_begin_at_the_start_and_at_the_end_of_the_clock() {
        let (first, last) = (RunControl::default(), RunControl::default());
        assert!(first.begin(Duration::ZERO) && last.begin(Duration::MAX));
        assert_eq!(first.began_at(), Some(Duration::ZERO));
        assert!(last.began_at().is_some() && !last.is_given_up());
    }

    #[test]
    fn of_a_task_and_a_topic_that_decide_at_once_exactly_one_wins() {
        for _ in 0..1_000 {
            let run = RunControl::default();
            let (taken_back, begins) = std::thread::scope(|scope| {
                let begins = scope.spawn(|| run.begin(Duration::from_secs(1)));
                (run.take_back(), begins.join().unwrap())
            });
            assert_ne!(begins, taken_back);
        }
    }

    #[tokio::test]
    async fn a_run_that_is_given_up_is_dropped_at_its_next_await() {
        let run = Arc::new(RunControl::default());
        let polled = run.clone();
        let task = tokio::spawn(async move { polled.until_given_up(std::future::pending::<()>()).await });
        tokio::task::yield_now().await;
        assert!(!task.is_finished());
        run.give_up();
        assert_eq!(task.await.unwrap(), None);
        assert_eq!(run.until_given_up(std::future::ready(())).now_or_never(), Some(None));
    }

    #[test]
    fn a_handler_learns_that_it_was_cancelled_whenever_it_asks() {
        let batch = Arc::new(RunControl::default());
        let [asked_before, other] = [(); 2].map(|()| RunControl::of_batch(&batch));
        let token = asked_before.token();
        asked_before.cancel();
        assert!(token.is_cancelled() && asked_before.is_cancelled() && asked_before.token().is_cancelled());
        assert!(!other.is_cancelled() && !other.token().is_cancelled() && !batch.is_cancelled());
        let late = RunControl::of_batch(&batch);
        batch.cancel();
        assert!([&batch, &other, &late].iter().all(|run| run.is_cancelled() && run.token().is_cancelled()));
    }
}
