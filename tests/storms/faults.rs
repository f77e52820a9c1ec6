//! What the storm does to a process and to its connections.

use std::time::Duration;

use dq_tests::{Direction, Proxy};
use fastrand::Rng;

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL.
    Kill,
    /// SIGSTOP for longer than a lease.
    Stall,
    /// SIGTERM: a clean stop, which excuses nothing.
    Stop,
    /// Something on its way to the store.
    Network(Network),
}

/// Which faults happen to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// Clean stops.
    Stops,
    /// Kills.
    Kills,
    /// All of them. A kill and a stall come first, so that a short storm has them, too.
    All,
}

/// What the proxy in front of the store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// All connections are closed.
    Cut,
    /// Bytes take longer, in both directions.
    Delay(Duration),
    /// So many bytes a second come from the store.
    Limit(u64),
    /// Nothing passes in one direction, until later.
    HoldBack(Direction),
    /// All is lost in one direction.
    Lose(Direction),
    /// The n-th reply is lost, and its connection cut.
    LoseReply(u64),
}

impl Fault {
    /// Draws a fault; `earlier` is the number of faults of the same place so far.
    pub fn draw(rng: &mut Rng, faults: Faults, earlier: u32) -> Self {
        match (faults, earlier, rng.u32(0..100)) {
            (Faults::Stops, ..) => Self::Stop,
            (Faults::Kills, ..) | (_, 0, _) => Self::Kill,
            (_, 1, _) => Self::Stall,
            (_, _, drawn) => Self::of(drawn, rng),
        }
    }

    fn of(drawn: u32, rng: &mut Rng) -> Self {
        match drawn {
            0..25 => Self::Kill,
            25..40 => Self::Stall,
            40..45 => Self::Stop,
            _ => Self::Network(Network::draw(rng)),
        }
    }
}

impl Network {
    fn draw(rng: &mut Rng) -> Self {
        let direction = if rng.bool() { Direction::Up } else { Direction::Down };
        match rng.u32(0..11) {
            0..2 => Self::Cut,
            2..4 => Self::Delay(Duration::from_millis(rng.u64(20..900))),
            4 => Self::Limit(rng.u64(5_000..200_000)),
            5..7 => Self::HoldBack(direction),
            7..9 => Self::Lose(direction),
            _ => Self::LoseReply(rng.u64(1..60)),
        }
    }

    /// The name of the fault in the files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Delay(_) => "delayed",
            Self::Limit(_) => "limited",
            Self::HoldBack(Direction::Up) => "held up",
            Self::HoldBack(Direction::Down) => "held down",
            Self::Lose(Direction::Up) => "lost up",
            Self::Lose(Direction::Down) => "lost down",
            Self::LoseReply(_) => "reply lost",
        }
    }

    /// How long it lasts.
    pub fn duration(self, rng: &mut Rng) -> Duration {
        match self {
            Self::Cut => Duration::ZERO,
            // Often longer than a lease and a half, so that what was held arrives after the jobs have gone to another node.
            Self::HoldBack(_) => Duration::from_millis(rng.u64(1_000..12_000)),
            _ => Duration::from_millis(rng.u64(300..6_000)),
        }
    }

    /// Begins. [`Proxy::mend`] ends it.
    pub fn begin(self, proxy: &Proxy) {
        match self {
            Self::Cut => proxy.cut(),
            Self::Delay(delay) => {
                proxy.delay(Direction::Up, delay / 2);
                proxy.delay(Direction::Down, delay / 2);
            }
            Self::Limit(rate) => proxy.limit(Direction::Down, Some(rate)),
            Self::HoldBack(direction) => proxy.hold(direction),
            Self::Lose(direction) => proxy.lose(direction),
            Self::LoseReply(n) => proxy.lose_reply(n),
        }
    }
}
