//! A row of the table of rules taken away.

use dq_testing::simulation::Profile;

/// A rule by its number, or a part of one by its name, and how the simulation notices that it is missing.
pub struct Taken {
    pub rule: &'static str,
    /// What the rule says, and what happens without it.
    pub gone: &'static str,
    pub faults: Profile,
    /// Found in fewer seeds than this.
    pub within: u64,
    /// A part of what the checker says.
    pub says: &'static str,
    /// What has happened.
    pub seen: &'static str,
}

impl Taken {
    /// Its row with this first seed.
    pub fn row(&self, seed: &str) -> String {
        let Self { rule, gone, faults, says, seen, .. } = self;
        format!("| {rule} | {gone} | `{}` | {seed} | {seen}: `{says}` |", faults.name())
    }
}

pub const fn taken(
    rule: &'static str,
    faults: Profile,
    within: u64,
    gone: &'static str,
    seen: &'static str,
    says: &'static str,
) -> Taken {
    Taken { rule, gone, faults, within, says, seen }
}
