//! One measurement, and the table of many.

use std::time::{Duration, Instant};

use crate::server::{Server, Spent};

/// 100 bytes of a user, as JSON.
pub(crate) fn payload() -> &'static str {
    concat!(
        r#"{"payload":""#,
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        r#""}"#
    )
}

/// User and system time of this process so far.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|&i| fields.get(i)?.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10) // 100 ticks a second on Linux
}

/// The cost of a job.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) per_second: f64,
    main_us: f64,
    script_us: f64,
    scripts: f64,
    client_us: f64,
}

pub(crate) struct Meter {
    jobs: usize,
    start: Instant,
    cpu: Duration,
    spent: Spent,
}

impl Meter {
    pub(crate) async fn start(server: &Server, jobs: usize) -> Self {
        let spent = server.spent().await;
        Self { jobs, start: Instant::now(), cpu: cpu(), spent }
    }

    pub(crate) async fn end(self, server: &Server) -> Round {
        let (time, cpu, jobs) = (self.start.elapsed(), cpu() - self.cpu, self.jobs as f64);
        let (now, before) = (server.spent().await, self.spent);
        Round {
            per_second: jobs / time.as_secs_f64(),
            main_us: (now.main_us - before.main_us) / jobs,
            script_us: (now.script_us - before.script_us) / jobs,
            scripts: (now.scripts - before.scripts) / jobs,
            client_us: cpu.as_secs_f64() * 1e6 / jobs,
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

/// A line of the table: medians, and the range of the rate.
pub(crate) fn table(name: &str, rounds: &[Round]) {
    if rounds.is_empty() {
        return;
    }
    let (low, rate, high) = median(rounds.iter().map(|round| round.per_second));
    let of = |what: fn(&Round) -> f64| median(rounds.iter().map(what)).1;
    println!(
        "{name:<42} {rate:>8.0} jobs/s [{low:.0} to {high:.0}]  Redis {:.2} µs a job, {:.2} in scripts, {:.1} scripts for 1,000 jobs, client {:.2} µs",
        of(|round| round.main_us),
        of(|round| round.script_us),
        of(|round| round.scripts) * 1_000.0,
        of(|round| round.client_us),
    );
}

/// The ratio of the second to the first, round by round.
pub(crate) fn ratio(name: &str, bare: &[Round], node: &[Round]) {
    if bare.is_empty() || node.is_empty() {
        return;
    }
    let of = |what: fn(&Round) -> f64| median(node.iter().zip(bare).map(|(node, bare)| what(node) / what(bare)));
    let ((low, rate, high), (_, main, _)) = (of(|round| round.per_second), of(|round| round.main_us));
    println!("{name:<42} {rate:.2} of the rate [{low:.2} to {high:.2}], {main:.2} of the Redis time");
}
