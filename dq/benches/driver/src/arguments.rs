//! The options of every benchmark.

use std::path::PathBuf;

/// What the command line asked for.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// `--quick`: about a tenth of the jobs, and three rounds.
    pub quick: bool,
    /// `--rounds N`: this many rounds instead of three or five.
    pub rounds: Option<usize>,
    /// `--only WORDS`: only measurements whose name contains these words.
    pub only: Option<String>,
    /// `--json FILE`: appends a line for each figure to this file.
    pub json: Option<PathBuf>,
    /// `--svg FILE`: draws the curves of lateness into this file.
    pub svg: Option<PathBuf>,
    /// `--redis PATH`: the server's program instead of `redis-server`.
    pub redis: Option<PathBuf>,
    /// `--aof`: the server writes an append-only file, synced every second.
    pub aof: bool,
    /// `--role ROLE URL WORDS..`: a part of a benchmark that runs as a process of its own.
    pub role: Vec<String>,
}

impl Arguments {
    /// Reads the command line.
    ///
    /// # Panics
    /// If an option is unknown or lacks its value.
    pub fn read() -> Self {
        let mut found = Self::default();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
            match word.as_str() {
                "--bench" => {} // cargo says so
                "--quick" => found.quick = true,
                "--aof" => found.aof = true,
                "--rounds" => found.rounds = Some(value().parse().expect("--rounds needs a number")),
                "--only" => found.only = Some(value()),
                "--json" => found.json = Some(value().into()),
                "--svg" => found.svg = Some(value().into()),
                "--redis" => found.redis = Some(value().into()),
                "--role" => found.role = words.by_ref().collect(),
                _ => panic!(
                    "{word} is unknown; there are --quick --rounds N --only WORDS --json FILE --svg FILE --redis PATH --aof"
                ),
            }
        }
        found
    }

    /// `quick` with `--quick`, otherwise `full`.
    pub const fn scaled(&self, quick: usize, full: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Returns whether a measurement of this name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }
}
