//! The signals of a topic: the ones that the current step wants sent, and the subscribers that receive them.
//!
//! A step only collects its signals; [`Cell`](super::cell::Cell) sends them once the step has succeeded or failed as a whole.
//! A signal is a hint: one that does not fit in a subscriber's buffer is dropped (rule 23).

use std::mem;

use crate::job::NodeId;
use crate::store::{Feed, Interest, Moves, Signal, Signals};
use crate::time::Timestamp;

/// Who receives a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recipient {
    /// One node.
    Node(NodeId),
    /// Every node.
    Nodes,
    /// Every subscriber of the topic's broadcast channel.
    Channel,
}

/// A signal and its recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) to: Recipient,
    pub(crate) signal: Signal,
}

/// The signals of the current step; empty between steps. A batch sends *due* once, not once per job.
#[derive(Debug, Clone, Default)]
pub(super) struct Notices {
    due: Option<(Recipient, Option<Timestamp>)>,
    broadcast_due: Option<Recipient>,
    others: Vec<Notice>,
}

impl Notices {
    /// Another node should take the jobs that are due, or become the watcher.
    pub(super) fn due(&mut self) {
        self.due = Some((Recipient::Nodes, None));
    }

    /// The watcher should know that the head is due at this earlier time.
    pub(super) fn due_at(&mut self, watcher: &NodeId, due: Timestamp) {
        let at = match &self.due {
            None => Some(due),
            Some((_, at)) => at.map(|at| at.min(due)),
        };
        let to = at.map_or(Recipient::Nodes, |_| Recipient::Node(watcher.clone()));
        self.due = Some((to, at));
    }

    /// The next broadcast is due earlier, or the topic has lost its publisher.
    pub(super) fn broadcast_due(&mut self, to: Recipient) {
        merge(&mut self.broadcast_due, to);
    }

    /// Any other signal: each of them is sent.
    pub(super) fn push(&mut self, to: Recipient, signal: Signal) {
        self.others.push(Notice { to, signal });
    }

    /// Removes and returns all signals.
    pub(super) fn take(&mut self) -> Vec<Notice> {
        let mut all = mem::take(&mut self.others);
        all.extend(self.due.take().map(|(to, at)| Notice { to, signal: Signal::Due(at) }));
        all.extend(self.broadcast_due.take().map(|to| Notice { to, signal: Signal::BroadcastDue }));
        all
    }
}

/// Two different recipients within one step become all nodes.
fn merge(known: &mut Option<Recipient>, to: Recipient) {
    let same = known.as_ref().is_none_or(|known| *known == to);
    *known = Some(if same { to } else { Recipient::Nodes });
}

/// The live subscriptions of a topic.
#[derive(Debug, Default)]
pub(super) struct Subscribers(Vec<(Interest, Feed)>);

impl Subscribers {
    /// Adds a subscription and drops those that were closed.
    pub(super) fn subscribe(&mut self, interest: Interest) -> Signals {
        let (feed, signals) = Signals::channel(&interest);
        self.0.retain(|(_, feed)| !feed.is_closed());
        self.0.push((interest, feed));
        signals
    }

    /// Whether a subscriber wants moves.
    pub(super) fn wants_moves(&self) -> bool {
        self.0.iter().any(|(interest, feed)| interest.moves && !feed.is_closed())
    }

    /// Tells the moves of a step to the subscribers that want them.
    pub(super) fn tell(&self, moves: &Moves) {
        for (_, feed) in self.0.iter().filter(|(interest, _)| interest.moves) {
            feed.send(Signal::Moves(moves.clone()));
        }
    }

    /// Sends every signal to the subscribers that asked for it. A signal to one node that reaches no subscriber goes to all
    /// nodes. Returns the signals to nodes that do not listen.
    pub(super) fn send(&mut self, notices: Vec<Notice>) -> Vec<(NodeId, Signal)> {
        let mut missed = Vec::new();
        for Notice { to, signal } in notices {
            if !self.send_to(&to, &signal)
                && let Recipient::Node(node) = to
            {
                let to_all = if matches!(signal, Signal::Due(_)) { Signal::Due(None) } else { signal.clone() };
                self.send_to(&Recipient::Nodes, &to_all);
                missed.push((node, signal));
            }
        }
        missed
    }

    /// Returns whether a subscriber was there.
    fn send_to(&self, to: &Recipient, signal: &Signal) -> bool {
        let mut reached = false;
        for (_, feed) in self.0.iter().filter(|(interest, feed)| is_for(to, interest) && !feed.is_closed()) {
            reached = true;
            // The buffer is full: the node's fallback repairs what it missed.
            feed.send(signal.clone());
        }
        reached
    }
}

fn is_for(to: &Recipient, interest: &Interest) -> bool {
    match to {
        Recipient::Node(node) => interest.node.as_ref() == Some(node),
        Recipient::Nodes => interest.node.is_some(),
        Recipient::Channel => interest.broadcasts,
    }
}
