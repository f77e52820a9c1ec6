//! Who hears the signals of a topic. A signal is a hint: one that does not fit is dropped (PROTOCOL.md rule 23).

use tokio::sync::mpsc;

use super::notices::{Notice, To};
use crate::store::{Interest, Signal, Signals};

/// The subscriptions of a topic that are alive.
#[derive(Debug, Default)]
pub(super) struct Subscribers(Vec<(Interest, mpsc::Sender<Signal>)>);

impl Subscribers {
    pub(super) fn subscribe(&mut self, interest: Interest) -> Signals {
        let (feed, signals) = Signals::channel();
        self.0.retain(|(_, feed)| !feed.is_closed());
        self.0.push((interest, feed));
        signals
    }

    pub(super) fn send(&mut self, notices: Vec<Notice>) {
        for Notice { to, signal } in notices {
            for (interest, feed) in &self.0 {
                if is_for(&to, interest) {
                    // Full or closed: the fallback of a node repairs what it did not hear.
                    drop(feed.try_send(signal.clone()));
                }
            }
        }
    }
}

fn is_for(to: &To, interest: &Interest) -> bool {
    match to {
        To::Node(node) => interest.node.as_ref() == Some(node),
        To::Nodes => interest.node.is_some(),
        To::Channel => interest.broadcasts,
    }
}
