//! The report at the end, for people and for programs.

use std::fmt;

use serde::Serialize;

use crate::books::{Books, Counts};

/// The summary of a ledger.
pub(crate) struct Report {
    counts: Counts,
    /// What this run added to the ledger.
    this_run: ThisRun,
    malformed: usize,
    lateness_us: Vec<u64>,
}

impl Report {
    /// Reports what the ledger has. It had `before` when this run began.
    pub(crate) fn new(mut books: Books, before: Counts, malformed: usize) -> Self {
        books.lateness_us.sort_unstable();
        let Counts { placed, closed, deleted, too_late, .. } = books.counts;
        let this_run = ThisRun {
            placed: placed - before.placed,
            closed: closed - before.closed,
            deleted: deleted - before.deleted,
            too_late: too_late - before.too_late,
        };
        Self { counts: books.counts, this_run, malformed, lateness_us: books.lateness_us }
    }

    /// Whether all that the ledger has is from earlier runs.
    pub(crate) fn did_nothing(&self) -> bool {
        self.this_run == ThisRun::default()
    }

    /// Returns the broken rules, without open orders if those are allowed. Empty if every rule was kept.
    pub(crate) fn problems(&self, may_be_open: bool) -> Vec<String> {
        let Counts { open, early, twice, wrong, .. } = self.counts;
        let open = if may_be_open { 0 } else { open };
        let rules = [
            ("unpaid and not closed", open),
            ("closed early", early),
            ("closed twice", twice),
            ("closed although paid, cancelled or never placed", wrong),
        ];
        let broken = rules.iter().filter(|(_, orders)| *orders > 0);
        broken.map(|(rule, orders)| format!("{rule}: {orders}")).collect()
    }

    /// Returns a quantile of the lateness in milliseconds: start of the handler minus due time of its job.
    fn lateness_ms(&self, part: f64) -> Option<f64> {
        let last = self.lateness_us.len().checked_sub(1)?;
        Some(self.lateness_us[(last as f64 * part).ceil() as usize] as f64 / 1_000.0)
    }

    /// Returns the lateness as text.
    pub(crate) fn lateness(&self) -> String {
        let text = |part| self.lateness_ms(part).map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
        format!("lateness of the closings: p50 {}, p99 {}, max {}", text(0.5), text(0.99), text(1.0))
    }

    /// Returns the summary for programs.
    pub(crate) fn summary(&self) -> Summary {
        let Counts { placed, closed, deleted, early, twice, .. } = self.counts;
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|part| self.lateness_ms(part));
        let this_run = self.this_run;
        Summary { placed, closed, deleted, early, twice, this_run, lateness_ms: Lateness { p50, p99, max } }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
pub(crate) struct Summary {
    placed: u64,
    closed: u64,
    deleted: u64,
    early: u64,
    twice: u64,
    this_run: ThisRun,
    lateness_ms: Lateness,
}

/// What one run added to the ledger: all of it, unless the run resumed a ledger of earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct ThisRun {
    placed: u64,
    closed: u64,
    deleted: u64,
    too_late: u64,
}

/// `null` where nothing was closed.
#[derive(Serialize)]
struct Lateness {
    p50: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { placed, open, closed, deleted, too_late, early, twice, again, .. } = self.counts;
        let rows = [
            ("orders placed", placed),
            ("closed when due", closed),
            ("paid or cancelled in time", deleted),
            ("paid too late", too_late),
            ("still open", open),
            ("closed early", early),
            ("closed twice", twice),
            ("run again after a restart", again),
            ("malformed lines", self.malformed as u64),
        ];
        for (what, orders) in rows {
            writeln!(f, "{what:<26}{orders:>7}")?;
        }
        Ok(())
    }
}
