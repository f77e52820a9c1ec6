//! The options of `tests/simulate`.

use dq_testing::simulation::{Options, Profile, RULES};

use crate::shrunk;

/// What the command is asked for.
pub struct Arguments {
    pub seeds: u64,
    pub from: u64,
    pub threads: usize,
    pub keep_going: bool,
    pub shrinks: bool,
    pub options: Options,
}

/// What the words of the command line ask for.
pub enum Asked {
    Run(Box<Arguments>),
    Rules,
    Help,
}

/// How the command is used.
pub fn usage() -> String {
    let profiles: Vec<_> = Profile::ALL.iter().map(|profile| profile.name()).collect();
    let rules: Vec<_> = RULES.iter().map(ToString::to_string).collect();
    format!(
        "tests/simulate [OPTION ...]\n\
         runs seeds of the simulation, shows progress, and ends with one line of JSON\n\
         {{\"seeds\",\"jobs\",\"faults\",\"found\",\"seed\",\"what\"}}; exit 1 when something was found, 2 when an option is wrong\n\n\
         \x20 --seeds N        how many seeds (1000)\n\
         \x20 --from SEED      the first of them (0)\n\
         \x20 --profile NAME   only these faults: {}\n\
         \x20 --without RULE   take a rule of the protocol away: {}\n\
         \x20 --log            print all that happens; a seed gives the same log again\n\
         \x20 --keep-going     go on when something was found\n\
         \x20 --threads N      how many seeds at a time (one a core)\n\
         \x20 --no-shrink      do not make what was found first as small as possible\n\
         \x20 --nodes N, --ids N, --busy SECONDS, --faults NAME,.. --acts N,N-N,..\n\
         \x20                  what shrinking has left of a run; `none` is no fault, no act\n\
         \x20 --rules          take each rule away once, and print the table of docs/internals/guarantees.md\n\
         \x20 --help           this text",
        profiles.join(", "),
        rules.join(", "),
    )
}

/// Reads the words of the command line.
///
/// # Errors
/// What is wrong with them.
pub fn read(words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (options, keep_going) = Default::default();
    let mut asked = Arguments { seeds: 1_000, from: 0, threads, keep_going, shrinks: true, options };
    let mut words = words;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seeds" => asked.seeds = number(&word, words.next())?,
            "--from" => asked.from = number(&word, words.next())?,
            "--threads" => asked.threads = number::<std::num::NonZeroUsize>(&word, words.next())?.get(),
            "--without" => asked.options.without = Some(rule(&word, words.next())?),
            "--profile" => asked.options.profile = Some(profile(&word, words.next())?),
            "--log" => asked.options.log = true,
            "--keep-going" => asked.keep_going = true,
            "--no-shrink" => asked.shrinks = false,
            "--nodes" => asked.options.nodes = Some(number::<std::num::NonZeroU64>(&word, words.next())?.get()),
            "--ids" => asked.options.ids = Some(number::<std::num::NonZeroU64>(&word, words.next())?.get()),
            "--busy" => asked.options.busy = Some(shrunk::micros(&word, words.next())?),
            "--faults" => asked.options.faults = Some(shrunk::names(&word, words.next())?),
            "--acts" => asked.options.acts = Some(shrunk::numbers(&word, words.next())?),
            "--rules" => return Ok(Asked::Rules),
            "--help" | "-h" => return Ok(Asked::Help),
            other => return Err(format!("there is no option `{other}`")),
        }
    }
    if asked.from.checked_add(asked.seeds).is_none() {
        return Err(format!("there are no {} seeds from {} on", asked.seeds, asked.from));
    }
    Ok(Asked::Run(Box::new(asked)))
}

fn number<N: std::str::FromStr>(option: &str, word: Option<String>) -> Result<N, String> {
    let word = word.ok_or_else(|| format!("`{option}` needs a number"))?;
    word.parse().map_err(|_| format!("`{option}` needs a number, not `{word}`"))
}

fn rule(option: &str, word: Option<String>) -> Result<u8, String> {
    let rule = number(option, word)?;
    if RULES.contains(&rule) { Ok(rule) } else { Err(format!("the simulation cannot take rule {rule} away")) }
}

fn profile(option: &str, word: Option<String>) -> Result<Profile, String> {
    let word = word.ok_or_else(|| format!("`{option}` needs a name"))?;
    Profile::named(&word).ok_or_else(|| format!("there is no profile `{word}`"))
}
