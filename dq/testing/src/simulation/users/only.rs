//! Which parts of a run happen: everything that its seed decides, or only some parts, written as one word for a shell.
//!
//! `nodes=1 faults=charge/3:1 jobs=charge/3 choose:orders=1`
//!
//! Users choose the names, so these may contain anything. A byte other than a letter, a digit or one of `/_.~-` is written
//! as `%` and two hexadecimal digits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::str::FromStr;
use std::time::Instant;

use super::panics::Print;
use dq::job::{JobId, TopicName};

const NONE: &str = "none";
const CHOOSE: &str = "choose:";

/// The parts of a run that happen. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Only {
    /// The number of nodes at the start.
    pub(super) nodes: Option<u64>,
    /// The faults with these names.
    pub(super) faults: Option<BTreeSet<String>>,
    /// The work's adds of these jobs.
    pub(super) jobs: Option<BTreeSet<String>>,
    /// The numbers that [`choose`](super::choose()) returns.
    pub(super) chosen: BTreeMap<String, u64>,
}

/// How to run a seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct How<'a> {
    /// Keeps an account and a log.
    pub(super) traced: bool,
    pub(super) only: &'a Only,
    pub(super) print: Print,
    /// Abandons the run at this time, without a finding.
    pub(super) until: Option<Instant>,
}

/// The name of a job in an [`Only`].
pub(super) fn name_of(topic: &TopicName, id: &JobId) -> String {
    word(&format!("{topic}/{id}"))
}

/// Text as a word that a shell takes without quotes.
fn word(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'_' | b'.' | b'~' | b'-' => word.push(byte.into()),
            // Writing to a string cannot fail.
            _ => drop(write!(word, "%{byte:02X}")),
        }
    }
    word
}

/// The text that [`word`] was made of.
fn text(word: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut parts = word.split('%');
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &BTreeSet<String>| {
            if names.is_empty() { NONE.into() } else { names.iter().cloned().collect::<Vec<_>>().join(",") }
        };
        let mut parts = Vec::new();
        parts.extend(self.nodes.map(|nodes| format!("nodes={nodes}")));
        parts.extend(self.faults.as_ref().map(|faults| format!("faults={}", list(faults))));
        parts.extend(self.jobs.as_ref().map(|jobs| format!("jobs={}", list(jobs))));
        parts.extend(self.chosen.iter().map(|(name, number)| format!("{CHOOSE}{}={number}", word(name))));
        f.write_str(&parts.join(" "))
    }
}

impl FromStr for Only {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let names = |list: &str| list.split(',').filter(|name| *name != NONE).map(str::to_owned).collect();
        let mut only = Self::default();
        for part in written.split_whitespace().filter(|part| *part != "all") {
            let wrong = || format!("`{part}` is not one of nodes=, faults=, jobs= and {CHOOSE}NAME=");
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let number = || value.parse::<u64>().map_err(|_| format!("`{part}` needs a number"));
            match name {
                "nodes" => only.nodes = Some(number()?),
                "faults" => only.faults = Some(names(value)),
                "jobs" => only.jobs = Some(names(value)),
                _ => {
                    let name = name.strip_prefix(CHOOSE).and_then(text).ok_or_else(wrong)?;
                    only.chosen.insert(name, number()?);
                }
            }
        }
        Ok(only)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_back_whatever_their_names() {
        let job = name_of(&TopicName::new("charge").unwrap(), &JobId::new("A 'b', ü=%2").unwrap());
        let only = Only {
            nodes: Some(1),
            faults: Some([format!("{job}:1"), "charge/3+2".into()].into()),
            jobs: Some([job, "charge/3".into()].into()),
            chosen: [("orders of a user=ü".into(), 3), ("x".into(), 0)].into(),
        };
        let written = only.to_string();
        assert!(!written.contains(['\'', '"', '\\', '$', '&', ';']), "{written}");
        assert_eq!(written.parse(), Ok(only));
        assert_eq!("all".parse(), Ok(Only::default()));
        let none = Only { faults: Some([].into()), ..Only::default() };
        assert_eq!((none.to_string().as_str(), none.to_string().parse()), ("faults=none", Ok(none)));
    }

    #[test]
    fn a_malformed_part_is_an_error() {
        assert_eq!("nodes=two".parse::<Only>(), Err("`nodes=two` needs a number".into()));
        let wrong = "node=1".parse::<Only>().unwrap_err();
        assert_eq!(wrong, "`node=1` is not one of nodes=, faults=, jobs= and choose:NAME=");
    }
}
