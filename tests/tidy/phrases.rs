//! Phrases that no message of dq has: German syntax in English words. A string of two words or more is a message.

use super::{code_of, report};

/// Each with what to write in its place.
const PHRASES: &[(&str, &str)] = &[
    ("go on|goes on|going on|went on|gone on", "continue, keep running, resume"),
    ("somebody|nobody|anybody|someone|whoever", "name who acts, or speak to `you`"),
    ("that of|those of", "repeat the noun"),
    ("mend|mends|mended|outweigh|outweighs|anew|as ever", "fix, override, again, as usual"),
    ("text|texts", "string, message"),
    ("behind", "after, past, beyond"),
    ("makes one of|make one of|makes an error of|make an error of", "turn into, convert into"),
    ("says|asks|knows|say so", "a thing has, reports, calls"),
];

/// What follows a comma in a splice, as in `is 300 bytes, 256 are allowed`.
const SPLICES: [&str; 5] = ["are allowed", "is allowed", "is the limit", "allowed are", "the first one counts"];

/// Right uses, and a code of the doctor.
const RIGHT: [&str; 6] = [
    "behind that of this machine",
    "ahead of that of this machine",
    "those of the last runs",
    "too far behind",
    "notes-behind",
    "text/",
];

/// The string literals of code, with the number of the line of each. Placeholders are left out.
fn messages(code: &str) -> Vec<(usize, String)> {
    let (mut found, mut rest, mut line) = (Vec::new(), code, 1);
    while let Some(at) = rest.find(['"', '/', '\'']) {
        line += rest[..at].matches('\n').count();
        let is_raw = rest[..at].ends_with("r#");
        rest = &rest[at..];
        let end = match rest.as_bytes() {
            [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
            [b'\'', b'\\', ..] => rest[2..].find('\'').map_or(1, |end| end + 3),
            [b'\'', b'"', b'\'', ..] => 3,
            [b'"', ..] if is_raw => 2 + rest[1..].find("\"#").expect("the literal ends"),
            [b'"', ..] => {
                let mut is_escaped = false;
                let is_end = |c: char| {
                    let ends = c == '"' && !is_escaped;
                    is_escaped = c == '\\' && !is_escaped;
                    ends
                };
                2 + rest[1..].find(is_end).expect("the literal ends")
            }
            _ => 1,
        };
        if rest.starts_with('"') {
            let placed = rest[1..end - 1].split('{').map(|part| part.split_once('}').map_or(part, |(_, after)| after));
            let words: Vec<_> = placed.flat_map(str::split_whitespace).filter(|word| *word != "\\").collect();
            found.push((line, words.join(" ")));
        }
        line += rest[..end].matches('\n').count();
        rest = &rest[end..];
    }
    found
}

/// Whether `since` follows `is` without a perfect in between, as in `it is DEAD since`.
fn lacks_the_perfect(sentence: &str) -> bool {
    let words: Vec<_> = sentence.split(' ').collect();
    let Some(since) = words.iter().position(|word| *word == "since") else { return false };
    let verb = words[..since].iter().rposition(|word| matches!(*word, "is" | "are" | "drains" | "runs" | "waits"));
    verb.is_some_and(|verb| {
        !words[verb..since].iter().any(|word| matches!(*word, "been" | "has" | "have" | "milliseconds" | "seconds"))
    })
}

fn has(message: &str, phrase: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let is_whole = |at: usize| {
        !is_word(message[..at].chars().next_back())
            && !is_word(message[at + phrase.len()..].chars().next().filter(|c| *c != '.'))
    };
    message.match_indices(phrase).any(|(at, _)| is_whole(at))
}

/// What is wrong with a message, in words.
fn mistakes(message: &str) -> Vec<String> {
    let message = RIGHT.iter().fold(message.to_owned(), |message, right| message.replace(right, ""));
    if message.split(' ').count() < 2 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (phrases, better) in PHRASES {
        found.extend(
            phrases.split('|').filter(|phrase| has(&message, phrase)).map(|phrase| format!("{phrase}: {better}")),
        );
    }
    let sentences = message.split(['.', ';', ':']);
    found.extend(sentences.filter(|sentence| lacks_the_perfect(sentence)).map(|_| "since: has been".to_owned()));
    let after_commas = message.split(['.', ';', ':']).flat_map(|sentence| sentence.split(", ").skip(1));
    let splices = after_commas.filter(|part| SPLICES.iter().any(|splice| part.contains(splice)));
    found.extend(splices.map(|part| format!("{part}: a comma splice")));
    found
}

#[test]
fn no_message_is_german_in_english_words() {
    let mut found = Vec::new();
    let messages_of = |(path, code): &(String, String)| {
        let lines = messages(code).into_iter().map(|(line, message)| (format!("{path}:{line}"), message));
        lines.collect::<Vec<_>>()
    };
    let all: Vec<_> =
        code_of(&["dq/src", "dq/cli/src", "dq/dashboard/src", "dq-macros"]).iter().flat_map(messages_of).collect();
    assert!(all.len() > 3_000, "the messages are found: {}", all.len());
    for (place, message) in &all {
        found.extend(mistakes(message).into_iter().map(|mistake| format!("{place}: {mistake} ({message})")));
    }
    report("write these as an English speaker does", &found);
}

#[test]
fn each_phrase_is_found_and_its_right_uses_are_not() {
    let code = "let a = \"it is DEAD since {at}\"; // \"whoever goes on\"\nlet b = '\"'; let c = \"go \\\n     on, \\\"x\\\"\";";
    assert_eq!(messages(code), [(1, "it is DEAD since".into()), (2, "go on, \\\"x\\\"".into())]);
    for wrong in [
        "the topic is paused since today",
        "it drains since noon",
        "those that run go on",
        "until somebody resumes",
        "a text in quotes",
        "the id is that of a job",
        "is 300 bytes, 256 are allowed",
        "what `?` makes one of: any",
        "the code says it",
    ] {
        assert_eq!(mistakes(wrong).len(), 1, "{wrong}: {:?}", mistakes(wrong));
    }
    for right in [
        "it has been paused since noon",
        "the store is 3s behind that of this machine",
        "milliseconds since 1970",
        "text/css; charset=utf-8",
        "says.lua",
        "is 300 bytes; the limit is 256",
    ] {
        assert_eq!(mistakes(right), [""; 0], "{right}");
    }
}
