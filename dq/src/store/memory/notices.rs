//! Signals that a step wants sent. The step does not send: whoever ran it does, once the step is whole.

use std::mem;

use crate::job::{JobId, NodeId};
use crate::store::{BroadcastMessage, CommandKind, Signal};

/// To whom a signal goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum To {
    /// A node.
    Node(NodeId),
    /// Every node.
    Nodes,
    /// Who hears the broadcast channel of the topic.
    Channel,
}

/// A signal and to whom it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// To whom.
    pub(crate) to: To,
    /// What.
    pub(crate) signal: Signal,
}

/// The signals of the step that is under way; empty between steps. A batch says *due* once, not once a job.
#[derive(Debug, Clone, Default)]
pub(super) struct Notices {
    due: Option<To>,
    broadcast_due: Option<To>,
    others: Vec<Notice>,
}

impl Notices {
    /// An earlier head, or jobs that somebody else should take.
    pub(super) fn due(&mut self, to: To) {
        merge(&mut self.due, to);
    }

    /// An earlier broadcast, or nobody who looks after them.
    pub(super) fn broadcast_due(&mut self, to: To) {
        merge(&mut self.broadcast_due, to);
    }

    pub(super) fn pending(&mut self, verb: CommandKind, id: JobId) {
        self.others.push(Notice { to: To::Nodes, signal: Signal::Command(verb, id) });
    }

    pub(super) fn publish(&mut self, publish: BroadcastMessage) {
        self.others.push(Notice { to: To::Channel, signal: Signal::Broadcast(publish) });
    }

    pub(super) fn take(&mut self) -> Vec<Notice> {
        let mut all = mem::take(&mut self.others);
        all.extend(self.due.take().map(|to| Notice { to, signal: Signal::Due }));
        all.extend(self.broadcast_due.take().map(|to| Notice { to, signal: Signal::BroadcastDue }));
        all
    }
}

/// Two different receivers within a step are everybody.
fn merge(known: &mut Option<To>, to: To) {
    let same = known.as_ref().is_none_or(|known| *known == to);
    *known = Some(if same { to } else { To::Nodes });
}
