//! Each rule of the protocol, or a part of one, taken away once: what is missing, the faults that show it, and what the checker says then.
//!
//! The table is that of `docs/internals/guarantees.md`; `tests/simulate --rules` prints it with the first seeds of today.

use dq_testing::simulation::{Options, Profile, simulate};

pub const DOCS: &str = include_str!("../../docs/internals/guarantees.md");

/// Not all of these rules are found in 500 seeds.
const RARE: [&str; 6] = ["7", "ahead", "borrowed", "noted", "outbox", "position"];

/// A rule by its number, or a part of one by its name, and how the simulation notices that it is missing.
pub struct Taken {
    pub rule: &'static str,
    /// What the rule says, and what happens without it.
    gone: &'static str,
    faults: Profile,
    /// The first seed that finds it.
    pub seed: String,
    /// What has happened.
    seen: &'static str,
    /// A part of what the checker says.
    says: &'static str,
}

impl Taken {
    fn of(row: &'static str) -> Option<Self> {
        let columns: Vec<_> = row.strip_prefix("| ")?.strip_suffix("` |")?.split(" | ").collect();
        let [rule, gone, faults, seed, seen]: [&str; 5] = columns.try_into().ok()?;
        let faults = Profile::named(faults.trim_matches('`'))?;
        let (seen, says) = seen.rsplit_once(": `")?;
        Some(Self { rule, gone, faults, seed: seed.to_owned(), seen, says })
    }

    /// Its row.
    pub fn row(&self) -> String {
        let Self { rule, gone, faults, seed, seen, says } = self;
        format!("| {rule} | {gone} | `{}` | {seed} | {seen}: `{says}` |", faults.name())
    }

    /// It is found in fewer seeds than this.
    pub fn within(&self) -> u64 {
        if RARE.contains(&self.rule) { 1_000 } else { 500 }
    }

    /// The first seed in which the checker says what the row does. A rule that is missing may show in another way before.
    pub fn first(&self) -> Option<u64> {
        let mut options = Options::default();
        (options.without, options.profile) = (Some(self.rule), Some(self.faults));
        (0..self.within()).find(|seed| {
            let Some(what) = simulate(*seed, &options).found else { return false };
            let is_this = what.contains(self.says);
            if !is_this {
                eprintln!("rule {}, seed {seed}: the checker says: {what}", self.rule);
            }
            is_this
        })
    }
}

/// The rows.
pub fn table() -> impl Iterator<Item = Taken> {
    let (_, rest) = DOCS.split_once("\n## Each rule taken away\n").expect("it has this section");
    rest.lines().take_while(|line| !line.starts_with("## ")).filter_map(Taken::of)
}
