//! The commands of the guide are commands of the program.

use clap::Parser;
use dq_cli::arguments::Arguments;

const GUIDE: &str = include_str!("../../../../docs/guide/moving-jobs.md");
const DOCTOR: &str = include_str!("../../../../docs/guide/doctor.md");
const COMMANDS: &str = include_str!("../../../../docs/guide/command-line.md");

#[test]
fn every_command_of_the_guide_is_one_of_the_program() {
    let mut found = 0;
    for block in [GUIDE, COMMANDS, DOCTOR].concat().split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next())
    {
        for part in block.lines().flat_map(|line| line.split(" | ")).map(str::trim) {
            let words = words_of(part.split(" > ").next().unwrap_or_default());
            if !part.starts_with("dq ") {
                continue;
            }
            if let Err(error) = Arguments::try_parse_from(words) {
                panic!("{part}: {error}");
            }
            found += 1;
        }
    }
    assert!(found >= 16, "{found}");
}

/// The words of a command line without escapes.
fn words_of(line: &str) -> Vec<String> {
    let part = |(n, part): (usize, &str)| match n % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    line.split('"').enumerate().flat_map(part).collect()
}

#[test]
fn the_lines_of_the_guide_are_lines_of_an_export() {
    let block = GUIDE.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    for line in block.lines() {
        let read: dq_cli::line::Line = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
    }
    assert_eq!(block.lines().count(), 5, "one of each kind");
}
