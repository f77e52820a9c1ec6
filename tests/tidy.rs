//! The rules of style that a program can check. Fix the place that it names; do not argue with the number.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/log_lines.rs"]
mod log_lines;
#[path = "tidy/phrases.rs"]
mod phrases;
#[path = "tidy/weight.rs"]
mod weight;
#[path = "tidy/words.rs"]
mod words;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(name.as_str(), "target" | ".git" | "dq-data") {
            walk(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}

/// Files below the folders that end in `ending`, as (path from the top, text).
fn texts(folders: &[&str], ending: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    folders.iter().for_each(|folder| walk(&root().join(folder), &mut files));
    let named = |path: &PathBuf| path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
    let wanted = files.iter().filter(|path| path.to_string_lossy().ends_with(ending));
    wanted.map(|path| (named(path), fs::read_to_string(path).unwrap())).collect()
}

fn sources() -> Vec<(String, String)> {
    texts(&["dq", "dq-macros", "examples", "tests"], ".rs")
}

/// The part of a file that is not its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

/// Library code: no unit tests, neither at the foot of a file nor in files of their own.
fn code_of(folders: &[&str]) -> Vec<(String, String)> {
    let code = texts(folders, ".rs").into_iter();
    let code = code.filter(|(path, _)| !path.contains("/tests/") && !path.ends_with("/tests.rs"));
    code.map(|(path, text)| (path, without_tests(&text).to_owned())).collect()
}

fn report(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// Lines with one of `words` in files that `exempt` does not name.
fn lines_with(files: &[(String, String)], words: &[&str], exempt: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| !exempt(path)) {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            if words.iter().any(|word| code.contains(word)) {
                found.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn no_file_has_more_than_500_lines() {
    let long = sources().into_iter().map(|(path, text)| (path, text.lines().count())).filter(|(_, lines)| *lines > 500);
    report("split these", &long.map(|(path, lines)| format!("{path}: {lines} lines")).collect::<Vec<_>>());
}

#[test]
fn files_are_named_after_what_they_are() {
    let vague = ["util", "utils", "common", "helper", "helpers", "base", "misc"];
    let named = sources().into_iter().map(|(path, _)| path);
    let found = named.filter(|path| path.split(['/', '.']).any(|part| vague.contains(&part)));
    report("name these after their responsibility", &found.collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_to_do() {
    let marks = [
        "to".to_owned() + "do!(",
        "unimpl".to_owned() + "emented!(",
        "#[ign".to_owned() + "ore",
        "db".to_owned() + "g!(",
    ];
    let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
    report("finish these", &lines_with(&sources(), &marks, |path| path.starts_with("tests/ui/")));
    let words = ["TO".to_owned() + "DO", "FIX".to_owned() + "ME"];
    let left = sources().into_iter().filter(|(_, text)| words.iter().any(|word| text.contains(word)));
    report("finish these", &left.map(|(path, _)| path).collect::<Vec<_>>());
}

#[test]
fn tests_wait_for_events_and_never_for_time() {
    let tests = texts(&["tests"], ".rs");
    let sleeps = lines_with(&tests, &["sleep("], |path| path.starts_with("tests/ui/") || path == "tests/tidy.rs");
    // A handler under test may take its time on the paused clock, and a proxy may be slow; the line says so.
    let is_meant = |line: &String| line.contains("handler_takes") || line.contains("sleep(latency)");
    let sleeps: Vec<_> = sleeps.into_iter().filter(|line| !is_meant(line)).collect();
    report("wait for an event instead", &sleeps);
}

/// `CARGO_TARGET_DIR` and `build.target-dir` move what cargo builds.
#[test]
fn scripts_and_documents_ask_cargo_where_it_builds() {
    let entries = ["tests", ".ci", "docs/internals/protocol"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let paths = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
    let scripts = paths.filter(|path| path.is_file() && path.extension().is_none());
    let mut all = texts(&["docs", "examples"], ".md");
    all.extend(scripts.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())));
    assert!(all.iter().any(|(path, _)| path.ends_with("tests/simulate")), "the scripts are found");
    let folders = ["debug", "release", "simulation", "servers"].map(|folder| format!("target/{folder}"));
    let named = |(path, text): &(String, String)| {
        let text = text.replace("$target/", ""); // what cargo said
        folders.iter().any(|folder| text.contains(folder)).then(|| path.clone())
    };
    let found: Vec<_> = all.iter().filter_map(named).collect();
    report("ask cargo: `cargo run`, or `target_directory` of `cargo metadata`", &found);
}

#[test]
fn the_library_unwraps_nothing() {
    let library = code_of(&["dq/src", "dq-macros"]);
    report("handle the error", &lines_with(&library, &[".unwrap()"], |path| path.contains("/testing/")));
}

#[test]
fn clocks_randomness_and_tasks_have_one_home() {
    let library = code_of(&["dq/src"]);
    let words = [
        "SystemTime::now(",
        "Instant::now(",
        "tokio::spawn(",
        "thread::spawn(",
        "thread::Builder",
        "RandomState::new(",
        "tokio::time::sleep",
    ];
    let home = |path: &str| path.starts_with("dq/src/environment") || path.starts_with("dq/src/testing/");
    report("go through `Environment`", &lines_with(&library, &words, home));
}

#[test]
fn every_select_is_biased() {
    let mut found = Vec::new();
    for (path, text) in code_of(&["dq/src", "dq/testing/src"]) {
        for (at, _) in text.match_indices("select! {") {
            if !text[at..].trim_start_matches("select! {").trim_start().starts_with("biased;") {
                found.push(format!("{path}: {}", text[at..].lines().nth(1).unwrap_or_default().trim()));
            }
        }
    }
    report("the order of `select!` must not be random", &found);
}

/// A folder uses only folders of its own floor and of the floors before it, as `docs/internals/architecture.md` draws them.
#[test]
fn dependencies_between_folders_go_one_way() {
    let floors: [&[&str]; 9] = [
        &["time", "telemetry"],
        &["environment", "job"],
        &["schedule"],
        &["store"],
        &["listener", "broadcast"],
        &["config"],
        &["provider", "inspect"],
        &["context"],
        &["prelude", "private", "testing", "redis", "lib"],
    ];
    let floor = |name: &str| floors.iter().position(|names| names.contains(&name));
    let mut found = Vec::new();
    for (path, text) in code_of(&["dq/src"]) {
        let folder = path.trim_start_matches("dq/src/").split(['/', '.']).next().unwrap().to_owned();
        let Some(own) = floor(&folder) else {
            found.push(format!("{path}: `{folder}` stands on no floor"));
            continue;
        };
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for (at, _) in line.match_indices("crate::") {
                let used: String = line[at + 7..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                if floor(&used).is_some_and(|other| other > own) {
                    found.push(format!("{path}: uses crate::{used}, which is a floor above"));
                }
            }
        }
    }
    report("a folder uses one of a floor above", &found);
}

/// The modules of `folder`, each with the siblings that it imports: files and folders beside each other, tests left out.
fn sibling_imports(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let files = code_of(&[folder]);
    let module = |path: &str| {
        let name = path.trim_start_matches(folder).trim_start_matches('/').split(['/', '.']).next().unwrap();
        (!matches!(name, "mod" | "lib" | "tests")).then(|| name.to_owned())
    };
    let siblings: BTreeSet<String> = files.iter().filter_map(|(path, _)| module(path)).collect();
    let top = folder.split("/src").nth(1).unwrap().replace('/', "::");
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in &files {
        let Some(own) = module(path) else { continue };
        // `super::` names a sibling of the module itself, `super::super::` one of the folder it is in.
        let within = path.trim_start_matches(folder).trim_start_matches('/');
        let depth = within.matches('/').count() + usize::from(!within.ends_with("/mod.rs"));
        let paths = ["super::".repeat(depth), format!("crate{top}::")];
        let code: String = text.lines().map(|line| line.split("//").next().unwrap().to_owned() + "\n").collect();
        for (path, at) in paths.iter().flat_map(|path| code.match_indices(path.as_str()).map(move |(at, _)| (path, at)))
        {
            let after = &code[at + path.len()..];
            if code[..at].ends_with("super::") || after.starts_with("super::") {
                continue;
            }
            let list = after.strip_prefix('{').and_then(|list| list.split('}').next());
            for item in list.map_or(vec![after], |list| list.split(',').collect()) {
                let name = item.trim_start().chars();
                let used: String = name.take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                if used != own && siblings.contains(&used) {
                    imports.entry(own.clone()).or_default().insert(used);
                }
            }
        }
    }
    imports
}

/// A circle of imports, if there is one: what is left when modules that import no other are taken away, again and again.
fn circle(mut imports: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let before = imports.clone();
        imports.retain(|_, used| used.iter().any(|module| before.contains_key(module)));
        imports.retain(|module, _| before.values().any(|used| used.contains(module)));
        if imports.len() == before.len() {
            let used = |(module, used): (&String, &BTreeSet<String>)| {
                let used: Vec<_> = used.iter().filter(|module| before.contains_key(*module)).cloned().collect();
                format!("{module} -> {}", used.join(", "))
            };
            return imports.iter().map(used).collect();
        }
    }
}

/// Files and folders beside each other form an order: data and traits below, what uses them above. A parent that only
/// re-exports its modules does not count.
#[test]
fn modules_of_a_folder_do_not_import_each_other_in_circles() {
    let files = code_of(&["dq/src", "dq/testing/src", "dq/cli/src", "dq/dashboard/src"]);
    let folder = |path: &String| Path::new(path).parent().unwrap().to_string_lossy().into_owned();
    let folders: BTreeSet<String> = files.iter().map(|(path, _)| folder(path)).collect();
    assert!(folders.contains("dq/testing/src/simulation"), "{folders:?}");
    // What a listener of jobs and one of broadcasts have in common, they take from each other.
    for folder in folders.iter().filter(|folder| *folder != "dq/src") {
        report(&format!("modules of {folder} import each other in a circle"), &circle(sibling_imports(folder)));
    }
}

#[test]
fn a_circle_of_imports_is_found() {
    let imports = |of: &[(&str, &str)]| {
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in of {
            imports.entry((*from).into()).or_default().insert((*to).into());
        }
        imports
    };
    assert_eq!(circle(imports(&[("a", "b"), ("b", "c"), ("a", "c")])), [""; 0]);
    let found = circle(imports(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]));
    assert_eq!(found, ["b -> c", "c -> b"]);
}

/// The rooms below `store`: the contract is the files beside them. Only the factory picks a store by its name.
#[test]
fn the_contract_names_no_store_and_no_store_names_another() {
    let allowed = |path: &str| -> &[&str] {
        let path = path.trim_start_matches("dq/src/");
        match path.strip_prefix("store/").unwrap_or("").split('/').next().unwrap() {
            "memory" => &["memory"],
            "file" => &["file", "memory"], // it keeps its jobs in a memory store
            "redis" => &["redis"],
            _ if path.starts_with("context/factory/stores.rs") => &["file", "memory", "redis"],
            _ if path == "context/problems.rs" || path == "redis.rs" => &["redis"],
            _ if path.starts_with("testing/") => &["memory"],
            _ => &[],
        }
    };
    let mut found = Vec::new();
    for (path, text) in code_of(&["dq/src"]) {
        let inside = path.matches('/').count().saturating_sub(2);
        for store in ["memory", "file", "redis"].iter().filter(|store| !allowed(&path).contains(store)) {
            let named = [format!("store::{store}::"), format!("{}{store}::", "super::".repeat(inside))];
            let is_below_store = path.starts_with("dq/src/store/");
            let names = |line: &&str| {
                line.contains(&named[0])
                    || is_below_store && line.trim_start().starts_with(&format!("use {}", named[1]))
            };
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            found.extend(code.filter(names).map(|line| format!("{path}: {}", line.trim())));
        }
    }
    report("only the factory names a store", &found);
}

/// A room is a folder of `dq/src`. Others see what its `mod.rs` shows, and name no module of it.
#[test]
fn a_room_is_entered_by_its_door() {
    let rooms = texts(&["dq/src"], "/mod.rs").into_iter();
    let rooms = rooms.filter(|(path, _)| path.matches('/').count() == 3 || path.starts_with("dq/src/store/"));
    let rooms: Vec<_> = rooms.filter(|(path, _)| !path.contains("/tests/")).collect();
    assert!(rooms.len() > 12, "{}", rooms.len());
    let open = lines_with(&rooms, &["pub(crate) mod ", "pub(in ", "pub mod "], |path| path == "dq/src/store/mod.rs");
    // The state machine is a page of the documentation, the names of metrics are read with their table, the tests break a disk
    // and a journal, the laboratory enters by the seam, and tests are generated from the limits.
    let meant = [
        "pub mod state;",
        "pub mod limits;",
        "pub(crate) mod table;",
        "pub mod disk;",
        "pub mod journal;",
        "pub mod seam;",
    ];
    let open: Vec<_> = open.into_iter().filter(|line| !meant.iter().any(|module| line.ends_with(module))).collect();
    report("keep these modules private, and show what others need", &open);
}

/// Claims, outcomes, attempts, isolation, renewals, crashes, sweeps and the stop are each the duty of one file.
#[test]
fn each_request_is_sent_by_one_file() {
    let expected = [
        "Audit lease/audit.rs",
        "Exhaust outcomes/decide.rs",
        "Isolate runs/isolation.rs",
        "Reclaim lease/reclaim.rs",
        "Reconcile lease/mod.rs",
        "Recover lease/audit.rs",
        "Release machine/stop.rs",
        "Renew lease/mod.rs",
        "Scan lease/reclaim.rs",
        "Settle outcomes/ack.rs",
        "Sweep claims/transfer.rs",
        "Transfer claims/transfer.rs",
    ];
    // Not `Wake`: whoever leaves work to others sends it.
    let requests = expected.map(|sender| sender.split(' ').next().unwrap());
    let mut senders = BTreeSet::new();
    for (path, code) in code_of(&["dq/src/context/topic"]) {
        // A request is made where it is sent.
        let makes =
            |request: &str| code.contains(&format!(" {request} {{")) || code.contains(&format!("({request} {{"));
        let sends = |request: &&str| makes(request) || code.contains(&format!("moment.send({request}"));
        let file = path.trim_start_matches("dq/src/context/topic/");
        senders.extend(requests.iter().copied().filter(sends).map(|request| format!("{request} {file}")));
    }
    assert_eq!(senders, expected.map(str::to_owned).into());
}

/// The output of a failing program in `tests/ui` has every error text of the macros.
#[test]
fn every_error_text_of_the_macros_is_shown_by_a_failing_program() {
    let shown: String = texts(&["tests/ui"], ".stderr").into_iter().map(|(_, text)| text).collect();
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for (path, text) in texts(&["dq-macros/src"], ".rs") {
        for piece in error_texts(without_tests(&text)) {
            if !shown.contains(&piece) {
                found.push(format!("{path}: {piece}"));
            }
        }
    }
    report("write a failing program in tests/ui/fail for these", &found);
}

/// The longest fixed piece of each text that is given to an error in this source.
fn error_texts(source: &str) -> BTreeSet<String> {
    let mut pieces = BTreeSet::new();
    for marker in ["errors.at(", "Error::new(", "Error::new_spanned("] {
        for (at, _) in source.match_indices(marker) {
            let call = source[at..].split(";\n").next().unwrap();
            let Some(text) = first_literal(call) else { continue };
            let fixed = text.split(['{', '}']).map(str::trim).max_by_key(|piece| piece.len()).unwrap_or_default();
            if fixed.len() >= 8 {
                pieces.insert(fixed.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }
    pieces
}

fn first_literal(code: &str) -> Option<String> {
    let start = code.find('"')? + 1;
    let mut text = String::new();
    let mut chars = code[start..].chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(text),
            '\\' => match chars.next()? {
                '\n' => text.push(' '),
                escaped => text.push(escaped),
            },
            c => text.push(c),
        }
    }
    None
}
