//! The words of `docs/internals/glossary.md`: no identifier, key or term uses a word that it retires.

use std::collections::HashMap;
use std::fs;

use super::{report, root, texts};

/// Parts of identifiers (`snake_case` and `CamelCase` are split) that no code has.
const RETIRED_PARTS: &str = "begun cast casted caster casts court courts deaf deafen deputy dice flying fronted \
    heard judge judged lane lanes patience refront standing story stray strays strike strikes suspect suspects toll \
    troubled turned unheard weather whereabouts withdraw withdrawal withdrawals withdrawn";

/// Whole identifiers that no code has. Their parts are ordinary words elsewhere.
const RETIRED_NAMES: &str = "Age Aged Board Front Hear Hearing Hold LookError Looks Mark Marks UnderWay World board \
    front_bytes front_length mark_of on_mark set_front under_way with_front trouble world";

/// Words and phrases that no text has, as terms of dq.
const RETIRED_TERMS: &str = "a front|a hold |a judge|a look |a mark |a suspect|a withdrawal|board of|caster|casts|deaf|\
    deputy|dice|flying|heard turn|is begun|lane|lanes|look by id|looks by id|of marks|patience|\
    refront|standing of|stray|suspects|the court|the front of a record|the judge|the mark |the marks|the new front|\
    the standing|the suspect|the world|under way|weather|whereabouts|withdraw|withdrawal|withdrawals|withdrawn";

/// Standard names of libraries that look like retired words.
const FOREIGN: &[&str] = &["broadcast", "downcast", "downcast_ref", "upcast"];

fn files() -> Vec<(String, String)> {
    let code = [".rs", ".lua", ".pml"].into_iter().flat_map(|ending| texts(&["dq", "examples", "tests"], ending));
    let code = code.chain(texts(&["docs"], ".pml"));
    code.filter(|(path, _)| !path.starts_with("tests/ui/") && path != "tests/tidy/words.rs").collect()
}

fn documents() -> Vec<(String, String)> {
    let all = texts(&["docs", "examples", "."], ".md").into_iter().map(|(path, text)| (path.replace("./", ""), text));
    all.filter(|(path, _)| !path.ends_with("glossary.md") && !path.ends_with("CHANGELOG.md")).collect()
}

/// The parts of an identifier, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if c == '_' || (c.is_ascii_uppercase() && before.is_ascii_lowercase()) {
            parts.push(String::new());
        }
        if c != '_' {
            parts.last_mut().unwrap().push(c.to_ascii_lowercase());
        }
        before = c;
    }
    parts
}

fn is_retired(name: &str) -> bool {
    !FOREIGN.contains(&name)
        && (RETIRED_NAMES.split_whitespace().any(|retired| retired == name)
            || parts(name).iter().any(|part| RETIRED_PARTS.split_whitespace().any(|retired| retired == part)))
}

/// The words of a line of code before its comment.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap().split("--").next().unwrap();
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

fn has_term(line: &str, term: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    line.match_indices(term).any(|(at, _)| {
        !is_word(line[..at].chars().next_back())
            && (term.ends_with(' ') || !is_word(line[at + term.len()..].chars().next()))
    })
}

#[test]
fn the_glossary_has_at_most_100_terms() {
    let text = fs::read_to_string(root().join("docs/internals/glossary.md")).unwrap();
    let terms = text.lines().filter(|line| line.starts_with("| **")).count();
    assert!((1..=100).contains(&terms), "take a word out that its type explains: {terms}");
}

#[test]
fn retired_words_are_no_identifiers_and_no_keys() {
    // `Max-Age` is an attribute of cookies.
    let files: Vec<_> = files().into_iter().map(|(path, text)| (path, text.replace("Max-Age", ""))).collect();
    let (mut found, mut known) = (Vec::new(), HashMap::new());
    for (path, text) in &files {
        for (number, line) in text.lines().enumerate() {
            let retired: Vec<_> =
                names(line).filter(|name| *known.entry(*name).or_insert_with(|| is_retired(name))).collect();
            if !retired.is_empty() {
                found.push(format!("{path}:{}: {}", number + 1, retired.join(", ")));
            }
        }
    }
    report("take the words of docs/internals/glossary.md for these", &found);
}

#[test]
fn retired_words_are_no_terms() {
    let mut found = Vec::new();
    for (path, text) in files().into_iter().chain(documents()) {
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            let retired: Vec<_> =
                RETIRED_TERMS.split('|').map(str::trim_start).filter(|term| has_term(&line, term)).collect();
            if !retired.is_empty() {
                found.push(format!("{path}:{}: {}", number + 1, retired.join(", ")));
            }
        }
    }
    report("take the words of docs/internals/glossary.md for these", &found);
}
