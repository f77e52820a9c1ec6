//! The copy of the source tree in which a number chosen at run time makes one change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::change::{Change, Edit};
use crate::draw::CRATES;

/// The variable that says which change is made. (dq warns about unknown variables that begin with `DQ_`.)
pub(crate) const VARIABLE: &str = "MUTANT";

/// Where the scripts are assembled, and what the copy makes of it.
const ASSEMBLED: (&str, &str, &str) = (
    "dq/src/store/redis/scripts.rs",
    "let mut text = assembled(*step);",
    "let mut text = crate::mutation::script(assembled(*step));",
);

/// A copy of the tree.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) folder: PathBuf,
    /// Where the places are in the copy: file, bytes, number.
    pub(crate) places: Vec<(String, Range<usize>, usize)>,
}

/// Copies the tree at `top` with these changes, numbered from 1. Files that are as they were keep their times.
pub(crate) fn write(top: &Path, folder: &Path, changes: &[Change]) -> Result<Copy, String> {
    let mut by_file: BTreeMap<&str, Vec<(usize, &Change)>> = BTreeMap::new();
    for (at, change) in changes.iter().enumerate() {
        by_file.entry(&change.path).or_default().push((at + 1, change));
    }
    let mut places = Vec::new();
    let mut kept = Vec::new();
    for path in listed(top)? {
        let Ok(bytes) = fs::read(top.join(&path)) else { continue };
        let bytes = match (by_file.get(path.as_str()), CRATES.contains(&path.as_str()), path == ASSEMBLED.0) {
            (None, false, false) => bytes,
            (of_file, is_root, is_assembled) => {
                let text = String::from_utf8(bytes).map_err(|error| format!("{path}: {error}"))?;
                let (mut text, found) = instrumented(&text, of_file.map_or(&[], Vec::as_slice));
                places.extend(found.into_iter().map(|(range, number)| (path.clone(), range, number)));
                if is_root {
                    text.push_str("\n#[allow(dead_code, missing_docs)]\nmod mutation;\n");
                }
                if is_assembled {
                    let (at, before) =
                        text.match_indices(ASSEMBLED.1).next().ok_or("the loader of the scripts is not known")?;
                    text.replace_range(at..at + before.len(), ASSEMBLED.2);
                }
                text.into_bytes()
            }
        };
        write_if_new(&folder.join(&path), &bytes)?;
        kept.push(path);
    }
    for root in CRATES {
        let path = Path::new(root).with_file_name("mutation.rs");
        write_if_new(&folder.join(&path), switch(changes).as_bytes())?;
        kept.push(path.to_string_lossy().into_owned());
    }
    remove_others(folder, &kept)?;
    Ok(Copy { folder: folder.to_path_buf(), places })
}

/// The files of the repository, those that are not committed yet among them.
fn listed(top: &Path) -> Result<Vec<String>, String> {
    let git = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(git).current_dir(top).output().map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn write_if_new(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Removes what an earlier copy had and the tree has no more.
fn remove_others(folder: &Path, kept: &[String]) -> Result<(), String> {
    let list = folder.with_extension("list");
    let before = fs::read_to_string(&list).unwrap_or_default();
    for path in before.lines().filter(|path| !kept.iter().any(|kept| kept == path)) {
        // It may be gone already.
        let _ = fs::remove_file(folder.join(path));
    }
    fs::write(&list, kept.join("\n")).map_err(|error| format!("{}: {error}", list.display()))
}

/// Where something is written: the byte, then what comes first there.
type Order = (usize, u8, usize, usize);

/// The text with something written around each place, and where the places are in it.
fn instrumented(text: &str, changes: &[(usize, &Change)]) -> (String, Vec<(Range<usize>, usize)>) {
    // At one byte, what ends there comes first (the inner before the outer), then what is only inserted, then what begins.
    let mut inserts: Vec<(Order, bool, usize, &Change)> = Vec::new();
    for (number, change) in changes {
        let Range { start, end } = change.range;
        match start == end {
            true => inserts.push(((start, 1, *number, 0), true, *number, change)),
            false => {
                inserts.push(((start, 2, usize::MAX - end, *number), true, *number, change));
                inserts.push(((end, 0, usize::MAX - start, usize::MAX - *number), false, *number, change));
            }
        }
    }
    inserts.sort_by_key(|(order, ..)| *order);
    let mut result = String::with_capacity(text.len() + 200 * changes.len());
    let mut begins = BTreeMap::new();
    let mut places = Vec::new();
    let mut at = 0;
    for ((position, class, ..), is_open, number, change) in inserts {
        result.push_str(&text[at..position]);
        at = position;
        let begin = result.len();
        result.push_str(&if is_open { change.edit.open(number) } else { change.edit.close(number) });
        if is_open {
            begins.insert(number, begin);
        }
        if !is_open || class == 1 {
            places.push((begins.remove(&number).unwrap_or(begin)..result.len(), number));
        }
    }
    result.push_str(&text[at..]);
    (result, places)
}

/// The module of the copy that knows which change is made.
fn switch(changes: &[Change]) -> String {
    let mut scripts = String::new();
    for (at, change) in changes.iter().enumerate() {
        if let Edit::Script(after) = &change.edit {
            // Writing to a text cannot fail.
            let _ = writeln!(scripts, "    ({}, {after:?}),", at + 1);
        }
    }
    include_str!("switch.rs").replace("VARIABLE", VARIABLE).replace("    // SCRIPTS\n", &scripts)
}

#[cfg(test)]
mod tests {
    use super::instrumented;
    use crate::change::{Change, Edit};

    fn change(range: std::ops::Range<usize>, edit: Edit) -> Change {
        let text = String::new;
        Change {
            path: text(),
            function: text(),
            nth: 0,
            range,
            line: 1,
            kind: "x",
            before: text(),
            after: text(),
            edit,
        }
    }

    #[test]
    fn places_within_places_are_nested() {
        let text = "{a < b && c}";
        let inner = change(1..6, Edit::Instead("a <= b".into()));
        let outer = change(1..11, Edit::Instead("a < b || c".into()));
        let same = change(1..11, Edit::Negated);
        let first = change(1..1, Edit::First("return;".into()));
        let changes = [(1, &inner), (2, &outer), (3, &same), (4, &first)];
        let (text, places) = instrumented(text, &changes);
        let expected = "{ if crate::mutation::is(4) { return; } \
            (if crate::mutation::is(2) { (a < b || c) } else { ((crate::mutation::is(3) != (\
            (if crate::mutation::is(1) { (a <= b) } else { (a < b) }) && c))) })}";
        assert_eq!(text, expected);
        assert_eq!(places.len(), 4);
    }
}
