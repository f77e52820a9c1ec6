//! Profiles: which faults a run has.

use super::cluster::ClusterState;

/// One of so many seeds runs on a `file:` store.
const ONE_ON_FILE: u64 = 16;

/// Which faults a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Only clean stops. Lateness and the number of requests are bounded.
    Calm,
    /// Jobs that kill their nodes, and nothing else.
    Killers,
    /// A bad network.
    Net,
    /// Every fault except clock jumps and fall-backs.
    NoClock,
    /// Every fault.
    All,
    /// The store falls back to an earlier state.
    Fall,
    /// Clocks jump.
    Clock,
    /// One node is unresponsive for two minutes, or its requests do not arrive for as long.
    Unresponsive,
    /// Many short jobs, so that nodes hold some unstarted; nodes become unresponsive and are paused.
    Crowd,
    /// Every fault, with a listener whose jobs are acked before they run.
    Claim,
    /// Broadcasts among the jobs, with every fault; in a third of the seeds only with clean stops, as in `Calm`.
    Broadcasts,
    /// Subscriptions are refused for a while, and nodes die; nothing else.
    Signals,
    /// Handlers are not polled for a while, because their runtime is busy.
    Starved,
    /// The store refuses connections for a while, and breaks those that exist.
    Refused,
    /// Large payloads on slow links, and nothing else.
    Large,
    /// A `file:` store, whose process crashes as a whole and loses what was not synced.
    File,
    /// The task of a topic panics, at any of its steps.
    Panics,
}

impl Profile {
    /// All profiles in their order, their names as `tests/simulate --profile` takes them, and how many of the other seeds have them, as
    /// shares. A seed of `Crowd` costs four times as much as any other.
    pub const ALL: [(Self, &'static str, u64); 17] = [
        (Self::Calm, "calm", 8),
        (Self::Killers, "killers", 8),
        (Self::Net, "net", 12),
        (Self::NoClock, "noclock", 17),
        (Self::All, "all", 17),
        (Self::Fall, "fall", 10),
        (Self::Clock, "clock", 6),
        (Self::Unresponsive, "unresponsive", 4),
        (Self::Crowd, "crowd", 2),
        (Self::Claim, "claim", 6),
        (Self::Broadcasts, "broadcasts", 10),
        (Self::Signals, "signals", 6),
        (Self::Starved, "starved", 6),
        (Self::Refused, "refused", 4),
        (Self::Large, "large", 2),
        (Self::File, "file", 0),
        (Self::Panics, "panics", 0),
    ];

    /// The name of the profile.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The profile with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.1 == name).map(|known| known.0)
    }

    /// Returns whether callers add many jobs at once.
    pub(super) const fn has_crowds(self) -> bool {
        matches!(self, Self::Crowd | Self::Large)
    }

    /// The profile that a seed picks, never `Panics`. `File` is drawn from a source of its own, so every other seed stays the run that it was
    /// before there was `File`.
    pub(super) fn pick(cluster: &ClusterState) -> Self {
        if cluster.random("file", 0).below(ONE_ON_FILE) == 0 {
            return Self::File;
        }
        let mut left = cluster.below(Self::ALL.iter().map(|(.., share)| share).sum());
        for (profile, _, share) in Self::ALL {
            if left < share {
                return profile;
            }
            left -= share;
        }
        unreachable!("the shares add up")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Kill,
    KillAtSend,
    Stop,
    Pause,
    PauseAtSend,
    Unresponsive,
    Out,
    Jump,
    Wall,
    Snap,
    Fall,
    Slow,
    Full,
    Caller,
    Subscribers,
    UnresponsiveLong,
    /// Replaces every second `Unresponsive`.
    Mute,
    MuteLong,
    /// Subscriptions are refused, and those that exist break.
    Unsubscribe,
    Starve,
    RefuseConnections,
    /// The disk of a `file:` store is full for a while.
    DiskFull,
    /// The task of a topic panics, after some steps.
    Panic,
}
