//! The settings of a run: everything that the seed decides at its start, and that shrinking makes smaller.

use std::collections::BTreeSet;
use std::time::Duration;

use super::cluster::ClusterState;
use super::profile::{Fault, Profile};
use super::units::{MS, SECOND};
use dq::config::NodeSettings;

/// The names of the broadcast listeners of each node.
pub(super) const LISTENERS: [&str; 2] = ["left", "right"];

/// The settings of a run.
#[derive(Debug, Clone)]
pub(super) struct RunSettings {
    pub(super) profile: Profile,
    pub(super) nodes: u64,
    /// The number of topics, to each of which every node listens and every caller adds.
    pub(super) topics: u64,
    pub(super) ids: u64,
    /// How long callers act and faults happen, in µs.
    pub(super) busy: u64,
    /// The longest pause between two acts of callers, in µs.
    pub(super) pace: u64,
    /// Only these faults happen; otherwise all that the seed picks.
    pub(super) only_faults: Option<BTreeSet<String>>,
    /// Only these acts of callers happen; otherwise all.
    pub(super) only_acts: Option<BTreeSet<u64>>,
    /// How many bytes of answers a link carries in a second; 0: any number.
    pub(super) bandwidth: u64,
    pub(super) failing: f64,
    pub(super) concurrency: usize,
    pub(super) killers: bool,
    pub(super) chaos: bool,
    /// The timeout of handlers, in µs.
    pub(super) timeout: u64,
    /// How long before they are due nodes claim jobs, in µs.
    pub(super) lookahead: u64,
    /// Half of the runs have follow-ups.
    pub(super) follow_ups: bool,
    /// Callers make job sets.
    pub(super) sets: bool,
    /// How many jobs of a group run at a time; 0: no job has a group.
    pub(super) groups: usize,
    /// How many more run while nothing else is due.
    pub(super) group_burst: usize,
    /// The settings of the nodes.
    pub(super) node: NodeSettings,
}

/// The settings of the nodes. With the default lease, which is as long as the fallback, no node need be told of a new lease; with a short
/// one and callers that act seldom a takeover shows whether one was.
fn node_settings(has_short_lease: bool) -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.shutdown_grace = Duration::from_secs(3);
    if has_short_lease {
        settings.lease = Duration::from_secs(3);
        settings.heartbeat_interval = Duration::from_secs(1);
    }
    settings
}

impl RunSettings {
    pub(super) fn of(cluster: &ClusterState, profile: Option<Profile>) -> Self {
        let profile = profile.unwrap_or_else(|| Profile::pick(cluster));
        let chaos = match profile {
            Profile::Calm
            | Profile::Killers
            | Profile::Crowd
            | Profile::Signals
            | Profile::Starved
            | Profile::Refused
            | Profile::Large => false,
            Profile::Broadcasts => cluster.chance(0.67),
            _ => true,
        };
        let busy = match profile {
            Profile::Unresponsive => 150,
            Profile::Crowd | Profile::Large => 20,
            _ => cluster.pick(&[40, 90, 150]),
        };
        let network = match profile {
            Profile::Net | Profile::NoClock | Profile::All | Profile::Fall | Profile::Claim => true,
            Profile::Broadcasts => chaos,
            _ => false,
        };
        // Callers that act seldom show less of the other faults.
        let short_leases = match profile {
            Profile::Signals => 0.5,
            Profile::All | Profile::NoClock => 0.2,
            _ => 0.0,
        };
        let has_short_lease = cluster.random("lease", 0).chance(short_leases);
        let has_outboxes = chaos && !matches!(profile, Profile::File | Profile::Claim);
        let follow_ups = has_outboxes && cluster.random("follow-ups", 0).below(8) == 0;
        Self {
            profile,
            node: node_settings(has_short_lease),
            nodes: cluster.pick(&[2, 3, 4]),
            ids: cluster.pick(&[2, 4, 8]),
            busy: busy * SECOND,
            pace: if profile.has_crowds() { 3000 } else { cluster.pick(&[400, 1400, 3000]) }
                * 1_000
                * if has_short_lease { 10 } else { 1 },
            only_faults: None,
            only_acts: None,
            failing: if network { cluster.pick(&[0.002, 0.01, 0.04]) } else { 0.0 },
            concurrency: match profile {
                Profile::Calm | Profile::Signals => cluster.pick(&[1, 2, 4]),
                Profile::Killers => 6,
                Profile::Crowd => 2,
                Profile::Large => 64,
                _ => cluster.pick(&[2, 3, 6]),
            },
            bandwidth: match profile {
                Profile::Large => cluster.random("bandwidth", 0).pick(&[60_000, 200_000]),
                _ => 0,
            },
            killers: profile == Profile::Killers || chaos && cluster.chance(0.5),
            chaos,
            timeout: if matches!(profile, Profile::Crowd | Profile::Starved) { 8 } else { cluster.pick(&[8, 40]) }
                * SECOND,
            topics: cluster.random("topics", 0).pick(&[2, 3]),
            follow_ups,
            sets: (has_outboxes || profile == Profile::Calm) && !follow_ups && cluster.random("sets", 0).below(6) == 0,
            groups: if profile == Profile::Claim { 0 } else { cluster.random("groups", 0).pick(&[0, 0, 1, 2]) },
            group_burst: cluster.random("group-burst", 0).pick(&[0, 1, 3]),
            lookahead: cluster.random("lookahead", 0).pick(&[0, 0, 5, 50]) * MS,
        }
    }

    /// The settings for a user's program, which brings its own jobs and faults.
    pub(super) fn of_program(cluster: &ClusterState, nodes: u64) -> Self {
        let (settings, node) = (Self::of(cluster, Some(Profile::NoClock)), node_settings(false));
        Self {
            nodes,
            topics: 1,
            groups: 0,
            group_burst: 0,
            follow_ups: false,
            sets: false,
            failing: 0.0,
            killers: false,
            chaos: false,
            node,
            ..settings
        }
    }

    /// Returns whether the lease is much shorter than the fallback, and callers act seldom.
    pub(super) fn has_short_lease(&self) -> bool {
        self.node.lease < self.node.poll_interval
    }

    /// Returns whether clean stops are the only faults, so that everything happens, and in time.
    pub(super) const fn are_calm(&self) -> bool {
        match self.profile {
            Profile::Calm => true,
            Profile::Broadcasts => !self.chaos,
            _ => false,
        }
    }

    /// Returns whether a job is late only while no permit is free, or for a short time after a fault.
    pub(super) const fn are_punctual(&self) -> bool {
        self.are_calm() || matches!(self.profile, Profile::Signals)
    }

    pub(super) fn faults(&self) -> &'static [Fault] {
        use Fault::{
            Caller, DiskFull, Fall, Full, Jump, Kill, KillAtSend, MuteLong, Out, Panic, Pause, PauseAtSend,
            RefuseConnections, Slow, Snap, Starve, Stop, Subscribers, Unresponsive, UnresponsiveLong, Unsubscribe,
            Wall,
        };
        match self.profile {
            Profile::Broadcasts if !self.chaos => &[Stop],
            Profile::Calm => &[Stop],
            Profile::Killers | Profile::Large => &[],
            Profile::Signals => &[Unsubscribe, Kill],
            Profile::Starved => &[Starve, Starve, Stop],
            Profile::Refused => &[RefuseConnections, Stop],
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
            Profile::File => &[Kill, Kill, KillAtSend, Jump, Jump, Stop, DiskFull],
            Profile::Panics => &[Panic, Panic, Panic, Panic, Kill, Stop],
            Profile::Crowd => &[PauseAtSend, PauseAtSend, Pause, Unresponsive],
        }
    }
}
