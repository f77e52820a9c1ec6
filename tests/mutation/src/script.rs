//! The changes of a Lua script.

use std::collections::HashMap;
use std::ops::Range;

use crate::change::{Change, Edit, Found};

/// All changes of a script.
pub(crate) fn find(path: &str, text: &str) -> Found {
    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
    let mut finder = Finder { path, name, text, code: code_of(text), seen: HashMap::new(), found: Found::default() };
    finder.conditions();
    finder.calls();
    finder.tokens();
    finder.found
}

/// The text with blanks instead of comments and the contents of texts, byte by byte.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '-' if rest.starts_with("--[[") => rest.find("]]").map_or(rest.len(), |at| at + 2),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |at| at + 2),
            _ => 0,
        };
        let blank = |c: char| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) };
        match (length, first) {
            (0, _) => code.push(first),
            (_, '-') => code.extend(rest[..length].chars().map(blank)),
            _ => {
                code.push(first);
                code.extend(rest[1..length - 1].chars().map(blank));
                code.push(first);
            }
        }
        rest = &rest[length.max(first.len_utf8())..];
    }
    code
}

struct Finder<'a> {
    path: &'a str,
    name: String,
    text: &'a str,
    code: String,
    seen: HashMap<String, usize>,
    found: Found,
}

/// What is written instead of a token.
const TOKENS: [(&str, &str); 15] = [
    ("<=", "<"),
    (">=", ">"),
    ("==", "~="),
    ("~=", "=="),
    ("<", "<="),
    (">", ">="),
    ("+", "-"),
    ("-", "+"),
    ("*", "+"),
    ("and", "or"),
    ("or", "and"),
    ("true", "false"),
    ("false", "true"),
    ("math.min", "math.max"),
    ("math.max", "math.min"),
];

/// Words that an expression follows.
const BEFORE_EXPRESSIONS: [&str; 7] = ["return", "and", "or", "not", "in", "if", "elseif"];

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl Finder<'_> {
    fn add(&mut self, range: Range<usize>, kind: &'static str, after: String) {
        let line = 1 + self.text[..range.start].matches('\n').count();
        // The loader replaces this line as it stands, for tests that move the clock.
        let whole = self.text.lines().nth(line - 1).unwrap_or_default();
        if whole.contains("redis.call('TIME')") || self.text[range.clone()].contains("redis.call('TIME')") {
            return;
        }
        let (path, function, before) = (self.path.to_owned(), self.name.clone(), self.text[range.clone()].to_owned());
        let edit = Edit::Script(after.clone());
        let mut change = Change { path, function, nth: 0, range, line, kind, before, after, edit };
        let nth = self.seen.entry(change.key()).or_default();
        change.nth = *nth;
        *nth += 1;
        self.found.changes.push(change);
    }

    /// The last word or sign before a place.
    fn before(&self, at: usize) -> &str {
        let before = self.code[..at].trim_end();
        let word = before.trim_end_matches(is_word);
        if word.len() < before.len() { &before[word.len()..] } else { &before[before.len().saturating_sub(1)..] }
    }

    fn conditions(&mut self) {
        let mut ranges = Vec::new();
        let mut at = 0;
        for line in self.code.split_inclusive('\n') {
            for (open, close) in [("if ", " then"), ("while ", " do")] {
                let whole = |begin: &usize| *begin == 0 || !is_word(line[..*begin].chars().next_back().unwrap_or(' '));
                let begins = line.match_indices(open).map(|(begin, _)| begin);
                for begin in begins.filter(|begin| whole(begin) || line[..*begin].ends_with("else")) {
                    if let Some(length) = line[begin..].find(close) {
                        ranges.push(at + begin + open.len()..at + begin + length);
                    }
                }
            }
            at += line.len();
        }
        for range in ranges {
            let after = format!("not ({})", &self.text[range.clone()]);
            self.add(range, "condition", after);
        }
    }

    /// Commands whose answers nobody reads.
    fn calls(&mut self) {
        let mut ranges = Vec::new();
        for (at, _) in self.code.match_indices("call(") {
            let begin = if self.code[..at].ends_with("redis.") { at - "redis.".len() } else { at };
            let is_whole = !self.code[..begin].ends_with(|c: char| is_word(c) || c == '.');
            let before = self.before(begin);
            let is_statement = BEFORE_EXPRESSIONS.iter().all(|word| *word != before)
                && (before.ends_with(is_word) || before.is_empty() || matches!(before, ")" | "]" | "}" | "'"));
            if let Some(end) = self.closing(at + "call".len()).filter(|_| is_whole && is_statement) {
                ranges.push(begin..end);
            }
        }
        for range in ranges {
            self.add(range, "statement", "do end".to_owned());
        }
    }

    /// Behind the parenthesis that closes the one at `open`.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        for (at, c) in self.code[open..].char_indices() {
            match c {
                '(' => depth += 1,
                ')' if depth == 1 => return Some(open + at + 1),
                ')' => depth -= 1,
                _ => {}
            }
        }
        None
    }

    fn tokens(&mut self) {
        let mut found: Vec<(Range<usize>, &'static str, String)> = Vec::new();
        let mut at = 0;
        while at < self.code.len() {
            let rest = &self.code[at..];
            let first = rest.chars().next().unwrap_or(' ');
            if is_word(first) {
                let word: String = rest.chars().take_while(|c| is_word(*c) || *c == '.').collect();
                let word = word.trim_end_matches('.').to_owned();
                if let Some((_, other)) = TOKENS.iter().find(|(token, _)| *token == word) {
                    found.push((at..at + word.len(), "operator", (*other).to_owned()));
                } else if let Ok(number) = word.parse::<u64>() {
                    found.push((at..at + word.len(), "literal", (number + 1).to_string()));
                }
                at += word.len().max(1);
                continue;
            }
            let sign = TOKENS.iter().find(|(token, _)| rest.starts_with(token));
            if let Some((token, other)) = sign {
                let before = self.before(at);
                let has_left = before.ends_with(|c: char| is_word(c) || matches!(c, ')' | ']' | '\'' | '}'));
                if has_left && !BEFORE_EXPRESSIONS.contains(&before) {
                    found.push((at..at + token.len(), "operator", (*other).to_owned()));
                }
                at += token.len();
            } else {
                at += first.len_utf8();
            }
        }
        found.into_iter().for_each(|(range, kind, after)| self.add(range, kind, after));
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    fn of(text: &str) -> Vec<String> {
        let found = find("lua/x.lua", text).changes;
        found.into_iter().map(|change| format!("{} {} -> {}", change.kind, change.before, change.after)).collect()
    }

    #[test]
    fn comments_and_texts_are_no_places() {
        assert_eq!(of("--[[ a < b\n1 ]]\nlocal a = 'x < 1' -- b > 2\n"), [""; 0]);
    }

    #[test]
    fn a_command_whose_answer_is_used_stays() {
        assert_eq!(of("local a = call('GET', b)\nreturn call('GET', (c))\n"), [""; 0]);
        assert_eq!(
            of("if a then call('DEL', (b)) end\n"),
            ["condition a -> not (a)", "statement call('DEL', (b)) -> do end"]
        );
    }

    #[test]
    fn signs_words_and_numbers_change() {
        let changes = ["operator <= -> <", "operator and -> or", "operator math.min -> math.max", "literal 2 -> 3"];
        assert_eq!(of("local a = b <= c and math.min(d, 2, -e)\n"), changes);
    }
}
