//! The commands of the guide are commands of the program.

use clap::{CommandFactory, Parser};
use dq_cli::arguments::Arguments;
use dq_cli::failure::EXIT_CODES;

use crate::program::done;

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

/// The help, the man page and the guide have the same exit codes.
#[test]
fn every_list_of_exit_codes_is_the_same() {
    let rows: String = EXIT_CODES.iter().map(|(code, meaning)| format!("| {code} | {meaning} |\n")).collect();
    assert!(COMMANDS.contains(&rows), "{rows}");
    let lines = EXIT_CODES.map(|(code, meaning)| format!("  {code:<4} {meaning}"));
    let man = done(&["man"], "").stdout.replace("\\ ", " ");
    for (list, name) in [(done(&["--help"], "").stdout, "help"), (man, "man")] {
        for line in &lines {
            assert!(list.lines().any(|listed| listed.trim() == line.trim()), "{name} lacks {line}: {list}");
        }
    }
}

/// Helps are short, imperative and of this form: what it does, then `[default: ..]`.
#[test]
fn every_help_is_one_imperative_line_without_a_calque() {
    fn check(command: &clap::Command, path: &str) {
        let long = command.clone().render_long_help().to_string();
        let calques = [" says ", "somebody", "nobody", "whoever", " that of ", "therwise", " text "];
        assert!(!calques.iter().any(|calque| long.contains(calque)), "{path}: {long}");
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let first = about.split([' ', ',']).next().unwrap_or_default();
        let is_imperative = !first.ends_with('s') && first.starts_with(|c: char| c.is_ascii_uppercase());
        assert!(is_imperative && about.len() <= 85 && !about.ends_with('.'), "{path}: {about}");
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let is_plain = !help.contains("therwise") && !help.contains('\n') && !help.ends_with('.');
            assert!(is_plain && !help.is_empty(), "{path} {}: {help}", argument.get_id());
            let verb = help.split(' ').next().unwrap_or_default();
            assert!(
                !["Reads", "Writes", "Shows", "Takes", "Ends", "Asks", "Repairs"].contains(&verb),
                "{path}: {help}"
            );
        }
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
            check(verb, &format!("{path} {}", verb.get_name()));
        }
    }
    check(&Arguments::command(), "dq");
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
