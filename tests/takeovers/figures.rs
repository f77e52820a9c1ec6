//! How long the takeovers took.

use std::time::Duration;

use dq::config::NodeSettings;
use dq::testing::seam;

/// The takeovers with one lease.
#[derive(Debug, Default)]
pub struct Figures {
    idle: Vec<Duration>,
    busy: Vec<Duration>,
}

/// Within which time another node takes over, with this lease and no other setting.
pub fn bound(lease: Duration) -> Duration {
    let mut settings = NodeSettings::default();
    let third = Duration::from_millis((lease / 3).as_millis() as u64);
    settings.heartbeat_interval = settings.heartbeat_interval.min(third);
    settings.call_timeout = settings.call_timeout.min(lease - settings.heartbeat_interval);
    settings.lease = lease;
    seam::takeover(&settings)
}

/// After this time a job has not begun for another reason than that no node was told of a lease: the bound, the fallback, and a minute
/// for a busy machine.
pub fn limit(lease: Duration) -> Duration {
    bound(lease) + NodeSettings::default().poll_interval + Duration::from_secs(60)
}

impl Figures {
    pub fn add(&mut self, is_busy: bool, took: Duration) {
        if is_busy { self.busy.push(took) } else { self.idle.push(took) }
    }

    pub fn count(&self) -> usize {
        self.idle.len() + self.busy.len()
    }

    /// Prints the distribution. Returns whether all were within the bound.
    pub fn show(mut self, lease: Duration) -> bool {
        let bound = bound(lease);
        let mut late = 0;
        for (name, all) in [("idle", &mut self.idle), ("busy", &mut self.busy)] {
            all.sort_unstable();
            let over = all.iter().filter(|took| **took > bound).count();
            let Some(last) = all.len().checked_sub(1) else { continue };
            let part = |percent: usize| all[(last * percent).div_ceil(100)].as_secs_f64();
            println!(
                "lease {lease:?}, {name} topics: {} kills, min {:.2} s, p50 {:.2} s, p90 {:.2} s, p99 {:.2} s, max {:.2} s; bound {:.2} s, {over} over it",
                all.len(),
                part(0),
                part(50),
                part(90),
                part(99),
                part(100),
                bound.as_secs_f64(),
            );
            late += over;
        }
        late == 0
    }
}
