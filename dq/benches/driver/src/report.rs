//! The rounds of a benchmark, its progress, and its figures: a table, and lines of JSON.

use std::fs::OpenOptions;
use std::io::Write;

use indicatif::{ProgressBar, ProgressStyle};

use crate::{Arguments, Cost, Server};

/// Whose value it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// dq.
    Dq,
    /// The bare client, loop or heap.
    Bare,
}

#[derive(Debug)]
struct Figure {
    name: String,
    unit: &'static str,
    dq: Vec<f64>,
    bare: Vec<f64>,
}

/// A benchmark that is running.
#[derive(Debug)]
pub struct Bench {
    /// What the command line asked for.
    pub arguments: Arguments,
    name: &'static str,
    server: String,
    bar: ProgressBar,
    figures: Vec<Figure>,
    notes: Vec<String>,
}

impl Bench {
    /// Starts a benchmark with `steps` measurements a round, each of which calls [`step`](Self::step).
    pub fn start(name: &'static str, arguments: Arguments, steps: usize) -> Self {
        let rounds = Self::rounds_of(&arguments);
        let bar = ProgressBar::new((rounds * steps) as u64);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed_precise} {msg}").unwrap());
        Self { arguments, name, server: "none".into(), bar, figures: Vec::new(), notes: Vec::new() }
    }

    fn rounds_of(arguments: &Arguments) -> usize {
        arguments.rounds.unwrap_or(if arguments.quick { 3 } else { 5 })
    }

    /// Starts a server for it.
    pub async fn server(&mut self) -> Server {
        let server = Server::start(&self.arguments);
        self.server = server.version().await;
        server
    }

    /// The numbers of its rounds.
    pub fn rounds(&self) -> std::ops::Range<usize> {
        0..Self::rounds_of(&self.arguments)
    }

    /// Tells which measurement comes now.
    pub fn step(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
        self.bar.inc(1);
    }

    /// Adds a value of a round to a figure.
    pub fn record(&mut self, side: Side, name: &str, unit: &'static str, value: f64) {
        if !self.figures.iter().any(|figure| figure.name == name) {
            self.figures.push(Figure { name: name.into(), unit, dq: Vec::new(), bare: Vec::new() });
        }
        let figure = self.figures.iter_mut().find(|figure| figure.name == name).expect("it is there now");
        match side {
            Side::Dq => figure.dq.push(value),
            Side::Bare => figure.bare.push(value),
        }
    }

    /// Adds the rate of a round and its costs, those of a server where there is one.
    pub fn record_cost(&mut self, side: Side, what: &str, cost: &Cost) {
        self.record(side, what, "jobs/s", cost.rate);
        if cost.redis_us > 0.0 {
            self.record(side, &format!("{what}: Redis"), "µs/job", cost.redis_us);
            self.record(side, &format!("{what}: scripts"), "µs/job", cost.script_us);
            self.record(side, &format!("{what}: commands"), "per 1,000 jobs", cost.commands * 1e3);
            self.record(side, &format!("{what}: Redis busy"), "%", cost.redis_us * cost.rate / 1e4);
        }
        if cost.own_us > 0.0 {
            self.record(side, &format!("{what}: dq's thread busy"), "%", cost.own_us * cost.rate / 1e4);
        }
        self.record(side, &format!("{what}: process"), "µs/job", cost.client_us);
    }

    /// Adds the last value of one figure by that of another, for each side, as a figure of its own.
    pub fn record_quotient(&mut self, name: &str, of: &str, by: &str) {
        let last = |name: &str, side: Side| {
            let figure = self.figures.iter().find(|figure| figure.name == name)?;
            if side == Side::Dq { figure.dq.last().copied() } else { figure.bare.last().copied() }
        };
        let quotients = [Side::Bare, Side::Dq].map(|side| Some((side, last(of, side)? / last(by, side)?)));
        for (side, quotient) in quotients.into_iter().flatten() {
            self.record(side, name, "×", quotient);
        }
    }

    /// Adds a line that comes below the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Prints the table, and writes the lines of `--json`.
    pub fn finish(self) {
        self.bar.finish_and_clear();
        let rounds = self.rounds().len();
        let aof = if self.arguments.aof { "everysec" } else { "off" };
        println!("{}: {}, AOF {aof}, {rounds} rounds, median [range]", self.name, self.server);
        println!("| figure | unit | dq | bare | dq / bare |\n|---|---|---|---|---|");
        for figure in &self.figures {
            println!(
                "| {} | {} | {} | {} | {} |",
                figure.name,
                figure.unit,
                summary(&figure.dq),
                summary(&figure.bare),
                summary(&figure.ratios())
            );
        }
        self.notes.iter().for_each(|note| println!("{note}"));
        if let Some(path) = &self.arguments.json {
            let mut file =
                OpenOptions::new().create(true).append(true).open(path).expect("--json names a writable file");
            for figure in &self.figures {
                let (low, dq, high) = spread(&figure.dq).unwrap_or((f64::NAN, f64::NAN, f64::NAN));
                let line = serde_json::json!({
                    "bench": self.name, "figure": figure.name, "unit": figure.unit,
                    "dq": dq, "bare": median(&figure.bare), "ratio": median(&figure.ratios()),
                    "rounds": rounds, "min": low, "max": high, "redis": self.server, "aof": aof,
                });
                writeln!(file, "{line}").unwrap();
            }
        }
    }
}

impl Figure {
    /// dq's value by the bare one, round by round.
    fn ratios(&self) -> Vec<f64> {
        self.dq.iter().zip(&self.bare).filter(|(_, bare)| **bare != 0.0).map(|(dq, bare)| dq / bare).collect()
    }
}

fn spread(values: &[f64]) -> Option<(f64, f64, f64)> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    Some((*values.first()?, values[values.len() / 2], *values.last()?))
}

/// The value in the middle, if there is one.
pub fn median(values: &[f64]) -> Option<f64> {
    spread(values).map(|(_, middle, _)| middle)
}

fn summary(values: &[f64]) -> String {
    let Some((low, middle, high)) = spread(values) else { return "–".into() };
    format!("{} [{} to {}]", number(middle), number(low), number(high))
}

/// Three significant digits, and thousands apart.
fn number(value: f64) -> String {
    if value.abs() < 1_000.0 {
        let digits = if value == 0.0 { 0 } else { (2 - value.abs().log10().floor() as i32).clamp(0, 3) };
        return format!("{value:.*}", digits as usize);
    }
    let text = format!("{:.0}", value.abs());
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (at, digit) in text.chars().enumerate() {
        if at > 0 && (text.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
