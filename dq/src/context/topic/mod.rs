//! One topic on this node: the only owner of what the node holds of it, and the only user of its link to the store.
//!
//! A topic is one task ([`event_loop`]): it waits for answers, ends of runs, signals, the stop order and the next deadline, takes the
//! event in, and performs what follows. What follows is decided by a [`machine`] without I/O, whose state has four owners. Each keeps
//! its fields to itself:
//!
//! | owner | what it owns | its subsystems |
//! |---|---|---|
//! | [`claims`] | smart sleep, prefetch, permits, pause | transfer, sweep |
//! | [`runs`] | handlers and their deadlines | listener, batch, isolation, starvation, rollback |
//! | [`outcomes`] | held jobs | ack, retry, ticks |
//! | [`lease`] | the lease, and what is known of those of others | renew, reconcile, reclaim, audit |
//!
//! An owner does not know the others. It gets what it needs as values, and returns what it wants of another as an
//! [`effect`](moment); requests go the same way. Only the jobs ([`held`]) are lent: their counters and queues are behind
//! methods.
//!
//! | beside the owners | |
//! |---|---|
//! | [`flight`], [`wire`] | the requests in flight, and the link that carries them |
//! | [`run`] | what runs on the user's runtime |
//! | [`window`] | how much a request asks for |
//! | [`stats`] | what `health()` and the metrics show |
//!
//! Outside of this folder only [`Parts`], [`Topic`], [`StopOrder`] and [`stats`] are visible: the supervisor makes a topic from its
//! parts and runs it, and `health()` reads its counters.
//!
//! Invariant: a job in [`held`] is every job not yet confirmed gone, unanswered outcomes included. Whatever fails, the topic
//! goes on from what it holds: a failed link is replaced and reconciled, a lost lease cancels handlers, and an outcome is sent
//! until the store has judged it.

mod claims;
mod early;
mod event_loop;
mod flight;
mod held;
mod lease;
mod machine;
mod meter;
mod moment;
mod outcomes;
mod parts;
mod punctuality;
mod run;
mod runs;
mod shutdown;
mod stage;
pub(super) mod stats;
mod window;
mod wire;

pub(super) use event_loop::Topic;
pub(super) use parts::Parts;
pub(super) use shutdown::StopOrder;
pub(super) use window::WaitingBytes;
