//! The permits of a whole node: how the topics share `node_concurrency`.
//!
//! Every topic keeps one permit, and gets the others by need. A free permit goes to the topic that has the fewest of those
//! that want more, so topics that want more than there are end up with equally many. No permit is taken from a handler that
//! runs. Each topic asks in its own task, and is told when a permit may be free for it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// The permits that the topics of a node share.
#[derive(Debug)]
pub(crate) struct NodePermits {
    pool: Mutex<Pool>,
    /// For each topic: a permit may be free.
    free: Vec<Notify>,
}

/// Permits beside the one that each topic keeps.
#[derive(Debug)]
struct Pool {
    free: usize,
    taken: Vec<usize>,
    /// The topics that want more than they have, by how many they have.
    wanting: BTreeSet<(usize, usize)>,
}

impl NodePermits {
    /// The shares of so many topics. Without a limit, each topic has what its own settings say.
    pub(super) fn shares(limit: Option<usize>, concurrency: impl ExactSizeIterator<Item = usize>) -> Vec<Share> {
        let topics = concurrency.len();
        let permits = limit.map(|limit| {
            let pool = Pool { free: limit.saturating_sub(topics), taken: vec![0; topics], wanting: BTreeSet::new() };
            Arc::new(Self { pool: Mutex::new(pool), free: (0..topics).map(|_| Notify::new()).collect() })
        });
        concurrency.enumerate().map(|(topic, most)| Share { permits: permits.clone(), topic, most }).collect()
    }

    /// Gives a topic up to `wanted` permits. Of those that it had it keeps what it uses, even against others.
    fn ask(&self, topic: usize, used: usize, wanted: usize) -> usize {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner); // its numbers are valid at any time
        let taken = pool.ask(topic, used.saturating_sub(1), wanted.saturating_sub(1));
        let next = pool.wanting.first().filter(|_| pool.free > 0).map(|(_, next)| *next);
        drop(pool);
        if let Some(next) = next {
            self.free[next].notify_one();
        }
        taken + 1
    }
}

impl Pool {
    fn ask(&mut self, topic: usize, used: usize, wanted: usize) -> usize {
        let before = self.taken[topic];
        self.wanting.remove(&(before, topic));
        let kept = before.min(used);
        self.free += before - kept;
        let fair = self.wanting.first().map_or(usize::MAX, |(least, _)| *least + 1);
        let taken = kept + wanted.min(fair).saturating_sub(kept).min(self.free);
        self.free -= taken - kept;
        self.taken[topic] = taken;
        if taken < wanted {
            self.wanting.insert((taken, topic));
        }
        taken
    }
}

/// The share of one topic.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    permits: Option<Arc<NodePermits>>,
    topic: usize,
    /// The limit of the topic itself.
    most: usize,
}

impl Share {
    /// Waits until a permit may be free for this topic, which wants more than it has. Cancel safe.
    pub(super) async fn freed(&self) {
        match &self.permits {
            Some(permits) => permits.free[self.topic].notified().await,
            None => std::future::pending().await,
        }
    }
}

/// The permits that a topic has at the moment. They go back when this is dropped.
#[derive(Debug)]
pub(crate) struct Permits {
    share: Share,
    granted: usize,
}

impl Permits {
    pub(super) fn new(share: Share) -> Self {
        let granted = if share.permits.is_some() { 1 } else { share.most };
        Self { share, granted }
    }

    /// How many handlers of the topic may run now. At least one.
    pub(super) const fn granted(&self) -> usize {
        self.granted
    }

    /// How many may run if the other topics of the node need none.
    pub(super) const fn most(&self) -> usize {
        self.share.most
    }

    /// Whether the topics of the node share their permits.
    pub(super) const fn is_shared(&self) -> bool {
        self.share.permits.is_some()
    }

    /// Asks for `wanted` permits, of which `used` are in use. What is not in use may go to another topic.
    pub(super) fn ask(&mut self, used: usize, wanted: usize) {
        if let Some(permits) = &self.share.permits {
            self.granted = permits.ask(self.share.topic, used, wanted.clamp(1, self.share.most));
        }
    }
}

impl Drop for Permits {
    fn drop(&mut self) {
        self.ask(0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(limit: usize, topics: usize) -> Vec<Permits> {
        NodePermits::shares(Some(limit), vec![100; topics].into_iter()).into_iter().map(Permits::new).collect()
    }

    fn granted(topics: &[Permits]) -> Vec<usize> {
        topics.iter().map(Permits::granted).collect()
    }

    #[test]
    fn without_a_limit_each_topic_has_its_own() {
        let shares = NodePermits::shares(None, [3, 5].into_iter());
        assert_eq!(shares.into_iter().map(|share| Permits::new(share).granted()).collect::<Vec<_>>(), [3, 5]);
    }

    #[test]
    fn every_topic_keeps_one_permit_and_there_are_never_more_than_the_limit() {
        let mut topics = permits(10, 3);
        topics[0].ask(0, 100);
        topics[1].ask(0, 100);
        assert_eq!(granted(&topics), [8, 1, 1]);
        let mut many = permits(2, 4);
        many.iter_mut().for_each(|topic| topic.ask(0, 100));
        assert_eq!(granted(&many), [1; 4]);
    }

    #[test]
    fn topics_that_want_more_than_there_are_end_up_with_equally_many() {
        let mut topics = permits(12, 3);
        topics[0].ask(0, 100);
        topics[1].ask(1, 100);
        topics[2].ask(1, 100);
        assert_eq!(granted(&topics), [10, 1, 1], "the first uses them all");
        for used in (0..10).rev() {
            topics[0].ask(used, 100); // one of its handlers ends
            for other in [1, 2] {
                let used = topics[other].granted();
                topics[other].ask(used, 100);
            }
            let in_use = topics[0].granted();
            if granted(&topics) == [4, 4, 4] {
                break;
            }
            assert!(in_use <= used.max(4), "{:?}", granted(&topics));
        }
        assert_eq!(granted(&topics), [4, 4, 4]);
    }

    #[test]
    fn what_a_topic_does_not_want_goes_to_the_others() {
        let mut topics = permits(12, 3);
        topics[0].ask(3, 3);
        topics[1].ask(1, 100);
        assert_eq!(granted(&topics), [3, 8, 1]);
        topics[2].ask(1, 5);
        topics[1].ask(8, 8);
        topics[0].ask(0, 0);
        topics[2].ask(1, 5);
        assert_eq!(granted(&topics), [1, 8, 3]);
        drop(topics.remove(1));
        topics[1].ask(3, 5);
        assert_eq!(granted(&topics), [1, 5], "a topic that ends gives back what it had");
    }

    #[tokio::test]
    async fn a_topic_that_wants_more_is_told_when_a_permit_is_free() {
        let mut topics = permits(4, 2);
        topics[0].ask(0, 100);
        topics[1].ask(1, 2);
        assert_eq!(granted(&topics), [3, 1]);
        topics[0].ask(2, 100);
        topics[1].share.freed().await;
        topics[1].ask(1, 2);
        assert_eq!(granted(&topics), [2, 2]);
    }
}
