//! What the guide says of the log.

use std::collections::BTreeSet;
use std::fs;

use super::{code_of, first_literal, report, root};

/// The tables of docs/guide/logs.md have the begin of every warning and error of the library, and of no others.
#[test]
fn the_guide_has_every_warning_and_error_of_the_log() {
    let guide = fs::read_to_string(root().join("docs/guide/logs.md")).unwrap();
    let mut found = Vec::new();
    for (heading, call) in [("\n## Every error\n", "tracing::error!("), ("\n## Every warning\n", "tracing::warn!(")] {
        let section = guide.split(heading).nth(1).expect("the guide has this table").split("\n## ").next().unwrap();
        let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
        let rows: BTreeSet<_> = rows.filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
        let mut unused = rows.clone();
        for (path, text) in code_of(&["dq/src"]) {
            for (at, _) in text.match_indices(call) {
                let line = first_literal(text[at..].split(";\n").next().unwrap()).expect("the line has a text");
                let rows = rows.iter().filter(|row| line.starts_with(**row));
                match rows.max_by_key(|row| row.len()) {
                    Some(row) => drop(unused.remove(row)),
                    None if line.starts_with('{') => {} // the warnings about a server, below the tables
                    None => found.push(format!("{path}: {line}")),
                }
            }
        }
        found.extend(unused.into_iter().map(|row| format!("nothing logs this: {row}")));
    }
    report("compare docs/guide/logs.md with what is logged", &found);
}
