//! The options of `tests/simulate`.

use std::hash::{BuildHasher, RandomState};

use dq_testing::simulation::{Options, Profile};

use crate::{shrunk, taken};

/// What to run.
pub struct Arguments {
    pub seeds: u64,
    pub from: u64,
    pub threads: usize,
    pub keep_going: bool,
    pub shrinks: bool,
    pub options: Options,
}

/// What the command line asks for.
pub enum Invocation {
    Run(Box<Arguments>),
    Rules,
    Help,
}

/// The help text.
pub fn usage() -> String {
    let rules: Vec<_> = taken::table().map(|taken| taken.rule).collect();
    format!(
        "tests/simulate [OPTION ...]\n\
         runs seeds of the simulation, shows progress, and prints one line of JSON at the end\n\
         {{\"from\",\"seeds\",\"jobs\",\"faults\",\"found\",\"seed\",\"what\"}}; exits with 1 after a finding, with 2 if an option is wrong\n\n\
         \x20 --seeds N        how many seeds (1000)\n\
         \x20 --from SEED      the first of them (0)\n\
         \x20 --fresh          draw the first of them at random, and print the range: a long run then repeats no other one\n\
         \x20 --profile NAME   only the faults of this profile: {}\n\
         \x20 --without RULE   take a rule of the protocol away: {}\n\
         \x20 --log            print every event; a seed prints the same log each time\n\
         \x20 --keep-going     go on after a finding\n\
         \x20 --threads N      how many seeds at a time (one per core)\n\
         \x20 --no-shrink      do not shrink the first finding\n\
         \x20 --nodes N, --ids N, --busy SECONDS, --faults NAME,.. --acts N,N-N,..\n\
         \x20                  the parts of a run that shrinking left; `none`: no fault, no act\n\
         \x20 --rules          take each rule away once, and print the table of docs/internals/guarantees.md\n\
         \x20 --help           this text",
        Profile::ALL.map(|(_, name, _)| name).join(", "),
        rules.join(", "),
    )
}

/// Reads the command line.
///
/// # Errors
/// What is wrong with it.
pub fn read(words: impl Iterator<Item = String>) -> Result<Invocation, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (options, keep_going) = Default::default();
    let mut arguments = Arguments { seeds: 1_000, from: 0, threads, keep_going, shrinks: true, options };
    let mut words = words;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seeds" => arguments.seeds = number(&word, words.next())?,
            "--from" => arguments.from = number(&word, words.next())?,
            "--fresh" => arguments.from = fresh(),
            "--threads" => arguments.threads = number::<std::num::NonZeroUsize>(&word, words.next())?.get(),
            "--without" => arguments.options.without = Some(rule(&word, words.next())?),
            "--profile" => arguments.options.profile = Some(profile(&word, words.next())?),
            "--log" => arguments.options.log = true,
            "--keep-going" => arguments.keep_going = true,
            "--no-shrink" => arguments.shrinks = false,
            "--nodes" => arguments.options.nodes = Some(number::<std::num::NonZeroU64>(&word, words.next())?.get()),
            "--ids" => arguments.options.ids = Some(number::<std::num::NonZeroU64>(&word, words.next())?.get()),
            "--busy" => arguments.options.busy = Some(shrunk::micros(&word, words.next())?),
            "--faults" => arguments.options.faults = Some(shrunk::names(&word, words.next())?),
            "--acts" => arguments.options.acts = Some(shrunk::numbers(&word, words.next())?),
            "--rules" => return Ok(Invocation::Rules),
            "--help" | "-h" => return Ok(Invocation::Help),
            other => return Err(format!("there is no option `{other}`")),
        }
    }
    if arguments.from.checked_add(arguments.seeds).is_none() {
        return Err(format!("there are no {} seeds from {} on", arguments.seeds, arguments.from));
    }
    Ok(Invocation::Run(Box::new(arguments)))
}

/// The first seed of a range that hardly any other run has, below 2^40.
fn fresh() -> u64 {
    RandomState::new().hash_one(()) >> 24
}

fn number<N: std::str::FromStr>(option: &str, word: Option<String>) -> Result<N, String> {
    let word = word.ok_or_else(|| format!("`{option}` needs a number"))?;
    word.parse().map_err(|_| format!("`{option}` needs a number, not `{word}`"))
}

fn rule(option: &str, word: Option<String>) -> Result<&'static str, String> {
    let word = word.ok_or_else(|| format!("`{option}` needs a rule"))?;
    let taken = taken::table().find(|taken| taken.rule == word);
    Ok(taken.ok_or_else(|| format!("the simulation cannot take rule {word} away"))?.rule)
}

fn profile(option: &str, word: Option<String>) -> Result<Profile, String> {
    let word = word.ok_or_else(|| format!("`{option}` needs a name"))?;
    Profile::named(&word).ok_or_else(|| format!("there is no profile `{word}`"))
}
