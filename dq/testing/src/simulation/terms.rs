//! The terms of a run: all that the seed decides at its start, and all that shrinking makes smaller.

use std::collections::BTreeSet;

use super::cluster::{ClusterState, SECOND};
use super::kills::Killing;

/// Which faults a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// None but clean stops: lateness and the number of store calls are bounded.
    Calm,
    /// Jobs that take their node with them, and nothing else.
    Killers,
    /// A bad network.
    Net,
    /// Everything but clocks and fall-backs.
    NoClock,
    /// Everything.
    All,
    /// The store falls back to an earlier state.
    Fall,
    /// Clocks jump.
    Clock,
    /// One node turns deaf for two minutes, or its requests do not arrive for as long.
    Unresponsive,
    /// Short jobs in crowds, so that nodes hold some unstarted; nodes turn deaf and are paused.
    Crowd,
    /// Everything, with a listener whose jobs are acked before they run.
    Claim,
    /// Broadcasts among the jobs: with everything, or in a third of the seeds as in `Calm`.
    Broadcasts,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 11] = [
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
    ];

    /// How it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Killers => "killers",
            Self::Net => "net",
            Self::NoClock => "noclock",
            Self::All => "all",
            Self::Fall => "fall",
            Self::Clock => "clock",
            Self::Unresponsive => "deaf",
            Self::Crowd => "crowd",
            Self::Claim => "claim",
            Self::Broadcasts => "broadcasts",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// Of how many seeds of a hundred; a crowd costs four times as much as any other.
    const fn share(self) -> u64 {
        match self {
            Self::Calm | Self::Killers => 8,
            Self::Fall | Self::Broadcasts => 10,
            Self::Net => 12,
            Self::NoClock | Self::All => 17,
            Self::Clock | Self::Claim => 6,
            Self::Unresponsive => 4,
            Self::Crowd => 2,
        }
    }

    /// The one that a seed picks.
    fn pick(cluster: &ClusterState) -> Self {
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
    /// In the place of every second `Unresponsive`.
    Mute,
    MuteLong,
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    pub(super) profile: Profile,
    pub(super) nodes: u64,
    pub(super) ids: u64,
    /// How long callers and faults go on, in µs.
    pub(super) busy: u64,
    /// The longest pause between two acts of callers, in µs.
    pub(super) pace: u64,
    /// Only these faults happen; else all that the seed picks.
    pub(super) only_faults: Option<BTreeSet<String>>,
    /// Only these acts of callers happen; else all.
    pub(super) only_acts: Option<BTreeSet<u64>>,
    pub(super) failing: f64,
    pub(super) concurrency: usize,
    pub(super) killers: bool,
    /// It is an experiment with crashes and nothing else.
    pub(super) kills: Option<Killing>,
    pub(super) chaos: bool,
    /// The timeout of handlers, in µs.
    pub(super) timeout: u64,
}

impl Terms {
    pub(super) fn of(cluster: &ClusterState, profile: Option<Profile>) -> Self {
        let profile = profile.unwrap_or_else(|| Profile::pick(cluster));
        let chaos = match profile {
            Profile::Calm | Profile::Killers | Profile::Crowd => false,
            Profile::Broadcasts => cluster.chance(0.67),
            _ => true,
        };
        let busy = match profile {
            Profile::Unresponsive => 150,
            Profile::Crowd => 20,
            _ => cluster.pick(&[40, 90, 150]),
        };
        let network = match profile {
            Profile::Net | Profile::NoClock | Profile::All | Profile::Fall | Profile::Claim => true,
            Profile::Broadcasts => chaos,
            _ => false,
        };
        Self {
            profile,
            nodes: cluster.pick(&[2, 3, 4]),
            ids: cluster.pick(&[2, 4, 8]),
            busy: busy * SECOND,
            pace: if profile == Profile::Crowd { 3000 } else { cluster.pick(&[400, 1400, 3000]) } * 1_000,
            only_faults: None,
            only_acts: None,
            failing: if network { cluster.pick(&[0.002, 0.01, 0.04]) } else { 0.0 },
            concurrency: match profile {
                Profile::Calm => cluster.pick(&[1, 2, 4]),
                Profile::Killers => 6,
                Profile::Crowd => 2,
                _ => cluster.pick(&[2, 3, 6]),
            },
            kills: None,
            killers: profile == Profile::Killers || chaos && cluster.chance(0.5),
            chaos,
            timeout: if profile == Profile::Crowd { 8 } else { cluster.pick(&[8, 40]) } * SECOND,
        }
    }

    /// Of a user's program, which brings its jobs and its faults.
    pub(super) fn of_program(cluster: &ClusterState, nodes: u64) -> Self {
        let terms = Self::of(cluster, Some(Profile::NoClock));
        Self { nodes, failing: 0.0, killers: false, chaos: false, ..terms }
    }

    /// Whether nothing goes wrong but that nodes are told to stop: what is to happen happens then, and in time.
    pub(super) const fn are_calm(&self) -> bool {
        match self.profile {
            Profile::Calm => true,
            Profile::Broadcasts => !self.chaos,
            _ => false,
        }
    }

    pub(super) fn faults(&self) -> &'static [Fault] {
        use Fault::{
            Caller, Fall, Full, Jump, Kill, KillAtSend, MuteLong, Out, Pause, PauseAtSend, Slow, Snap, Stop,
            Subscribers, Unresponsive, UnresponsiveLong, Wall,
        };
        match self.profile {
            Profile::Broadcasts if !self.chaos => &[Stop],
            Profile::Calm => &[Stop],
            Profile::Killers => &[],
            Profile::Net => &[Unresponsive, Stop, Slow, Full, Subscribers],
            Profile::NoClock => {
                &[Kill, KillAtSend, Stop, Pause, PauseAtSend, Unresponsive, Out, Slow, Full, Caller, Subscribers]
            }
            Profile::All | Profile::Claim | Profile::Broadcasts => &[
                Kill,
                KillAtSend,
                Stop,
                Pause,
                PauseAtSend,
                Unresponsive,
                Out,
                Jump,
                Wall,
                Fall,
                Snap,
                Snap,
                Slow,
                Full,
                Caller,
                Subscribers,
            ],
            Profile::Fall => &[Kill, Pause, PauseAtSend, Fall, Snap, Snap, Stop],
            Profile::Clock => &[Jump, Jump, Wall, Out, Pause],
            Profile::Unresponsive => &[UnresponsiveLong, MuteLong],
            Profile::Crowd => &[PauseAtSend, PauseAtSend, Pause, Unresponsive],
        }
    }
}
