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
    /// All profiles.
    pub const ALL: [Self; 17] = [
        Self::Calm,
        Self::Killers,
        Self::Net,
        Self::NoClock,
        Self::All,
        Self::Fall,
        Self::Clock,
        Self::Unresponsive,
        Self::Crowd,
        Self::Claim,
        Self::Broadcasts,
        Self::Signals,
        Self::Starved,
        Self::Refused,
        Self::Large,
        Self::File,
        Self::Panics,
    ];

    /// The name of the profile, as `tests/simulate --profile` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Killers => "killers",
            Self::Net => "net",
            Self::NoClock => "noclock",
            Self::All => "all",
            Self::Fall => "fall",
            Self::Clock => "clock",
            Self::Unresponsive => "unresponsive",
            Self::Crowd => "crowd",
            Self::Claim => "claim",
            Self::Broadcasts => "broadcasts",
            Self::Signals => "signals",
            Self::Starved => "starved",
            Self::Refused => "refused",
            Self::Large => "large",
            Self::File => "file",
            Self::Panics => "panics",
        }
    }

    /// The profile with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// How many of the other seeds have this profile, as shares. A seed of `Crowd` costs four times as much as any other.
    const fn share(self) -> u64 {
        match self {
            Self::Calm | Self::Killers => 8,
            Self::Fall | Self::Broadcasts => 10,
            Self::Net => 12,
            Self::NoClock | Self::All => 17,
            Self::Clock | Self::Claim | Self::Signals | Self::Starved => 6,
            Self::Unresponsive | Self::Refused => 4,
            Self::Crowd | Self::Large => 2,
            Self::File | Self::Panics => 0,
        }
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
        let mut left = cluster.below(Self::ALL.iter().map(|profile| profile.share()).sum());
        for profile in Self::ALL {
            if left < profile.share() {
                return profile;
            }
            left -= profile.share();
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
