//! The commands of the guide are commands of the program.

use clap::Parser;
use dq_cli::arguments::Arguments;

const GUIDE: &str = include_str!("../../../../docs/guide/moving-jobs.md");

#[test]
fn every_command_of_the_guide_is_one_of_the_program() {
    let mut found = 0;
    for block in GUIDE.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        for part in block.lines().flat_map(|line| line.split(" | ")).map(str::trim) {
            let words = part.split(" > ").next().unwrap_or_default().split_whitespace();
            if !part.starts_with("dq ") {
                continue;
            }
            if let Err(error) = Arguments::try_parse_from(words) {
                panic!("{part}: {error}");
            }
            found += 1;
        }
    }
    assert!(found >= 8, "{found}");
}

#[test]
fn the_lines_of_the_guide_are_lines_of_an_export() {
    let block = GUIDE.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    for line in block.lines() {
        let read: dq_cli::line::Line = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
    }
    assert_eq!(block.lines().count(), 4);
}
