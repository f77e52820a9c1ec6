//! How many lines of code each room has, without comments and blank lines.
//!
//! `cargo test -p dq-tests --test tidy -- weight --nocapture` prints the figures.

use super::{code_of, report, texts};

/// The rooms, and the most lines that each may have. A commit that raises a row says what for.
const ROOMS: [(&str, usize); 23] = [
    ("dq/src/config/", 1_350),
    ("dq/src/context/", 9_200),
    ("dq/src/environment/", 850),
    ("dq/src/inspect/", 2_250),
    ("dq/src/job/", 1_930),
    ("dq/src/listener/", 1_600),
    ("dq/src/provider/", 6_800),
    ("dq/src/schedule/", 600),
    ("dq/src/store/", 3_880),
    ("dq/src/store/file/", 4_200),
    ("dq/src/store/memory/", 6_580),
    ("dq/src/store/redis/", 6_400),
    ("dq/src/", 1_300),
    ("dq/cli/", 5_000),
    ("dq/dashboard/", 5_350),
    ("dq-macros/", 3_570),
    (LUA, 4_050),
    (UNIT_TESTS, 15_300),
    ("dq/testing/", 23_100),
    ("dq/benches/", 4_300),
    ("tests/framework/", 9_400),
    ("tests/redis/", 6_900),
    ("tests/", 20_200),
];
const LUA: &str = "Lua";
const UNIT_TESTS: &str = "tests of the libraries";
/// They have no product code.
const LABORATORY: [&str; 5] = ["dq/testing/", "dq/benches/", "tests/framework/", "tests/redis/", "tests/"];

/// The lines of a text that are neither blank nor a comment.
fn lines(text: &str, comment: &str) -> usize {
    let mut is_block = false;
    let is_code = |line: &&str| {
        let line = line.trim();
        is_block |= line.starts_with("--[[");
        let is_code = !is_block && !line.is_empty() && !line.starts_with(comment);
        is_block &= !line.ends_with("]]");
        is_code
    };
    text.lines().filter(is_code).count()
}

/// The innermost room of a file.
fn room(path: &str) -> Option<usize> {
    let holds = |(_, (name, _)): &(usize, &(&str, usize))| path.starts_with(name);
    ROOMS.iter().enumerate().filter(holds).max_by_key(|(_, (name, _))| name.len()).map(|(at, _)| at)
}

#[test]
fn no_room_outgrows_its_row() {
    let of = |name: &str| ROOMS.iter().position(|(room, _)| *room == name).expect("the room has a row");
    let mut weights = [0; ROOMS.len()];
    let folders = ["dq", "dq-macros", "tests"];
    for (path, text) in texts(&folders, ".rs") {
        let Some(at) = room(&path) else { continue };
        let is_laboratory = LABORATORY.contains(&ROOMS[at].0);
        weights[if is_laboratory { at } else { of(UNIT_TESTS) }] += lines(&text, "//");
    }
    for (path, code) in code_of(&folders) {
        let Some(at) = room(&path).filter(|at| !LABORATORY.contains(&ROOMS[*at].0)) else { continue };
        let lines = lines(&code, "//");
        weights[at] += lines;
        weights[of(UNIT_TESTS)] -= lines;
    }
    weights[of(LUA)] = texts(&["dq"], ".lua").iter().map(|(_, text)| lines(text, "--")).sum();
    let mut over = Vec::new();
    for ((name, most), weight) in ROOMS.into_iter().zip(weights) {
        println!("{weight:6} of {most:6} {name}");
        if weight > most {
            over.push(format!("{name}: {weight} lines, its row says {most}"));
        }
    }
    report("take lines out, or raise the row and say in the commit what for", &over);
}
