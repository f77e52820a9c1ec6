//! The config file: TOML. Every problem names its line.
//!
//! ```toml
//! store = "memory:jobs"
//! lease = "30s"
//!
//! [topic.order-timeout]
//! concurrency = 8
//! retry = "1m, 5m, 1h"
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::layer::Layer;
use super::problem::{Setting, SettingProblem, nearest};
use super::settings::{Keyed, NodeSettings, TopicSettings};
use super::source::{Source, SourceLocation};
use super::value::Written;

/// The largest config file, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// Reads the config file at `path`.
pub(crate) fn read(path: &Path) -> Layer {
    let name = path.display().to_string();
    match text(path) {
        Ok(text) => parse(&name, &text),
        Err(error) => {
            let problem = SettingProblem::FileUnreadable { path: name, reason: error.to_string() };
            Layer { problems: vec![problem], ..Layer::default() }
        }
    }
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it is longer than {MAX_FILE} bytes")));
    }
    Ok(text)
}

/// Reads the text of a config file named `name`.
pub(crate) fn parse(name: &str, text: &str) -> Layer {
    let mut reader = Reader { name, text, layer: Layer::default() };
    let (table, mut errors) = DeTable::parse_recoverable(text);
    let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    errors.sort_by_key(start);
    for error in errors {
        let at = reader.location(start(&error));
        reader.layer.problems.push(SettingProblem::FileSyntax { at, reason: error.message().to_owned() });
    }
    if reader.layer.problems.is_empty() {
        reader.root(table.get_ref());
    }
    reader.layer
}

struct Reader<'a> {
    name: &'a str,
    text: &'a str,
    layer: Layer,
}

impl Reader<'_> {
    fn location(&self, offset: usize) -> SourceLocation {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        SourceLocation { file: self.name.to_owned().into(), line: u32::try_from(line).unwrap_or(u32::MAX) }
    }

    fn source<T>(&self, spanned: &Spanned<T>) -> Source {
        Source::File(self.location(spanned.span().start))
    }

    fn root(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            let (name, at) = (key.get_ref().as_ref(), self.source(key));
            match (name, value.get_ref()) {
                ("store", DeValue::String(url)) => self.layer.store = Some((url.to_string(), at)),
                ("store", other) => self.layer.problems.push(not_a_url(at, written(other))),
                ("topic", DeValue::Table(topics)) => self.topics(topics),
                // For the program `dq`; other programs name their app in their code.
                ("app", DeValue::String(_)) => {}
                (_, value) => self.setting(None, name, value, at),
            }
        }
    }

    fn topics(&mut self, topics: &DeTable<'_>) {
        for (topic, value) in topics {
            let (name, at) = (topic.get_ref().as_ref(), self.source(topic));
            let DeValue::Table(settings) = value.get_ref() else {
                let reason =
                    format!("`topic.{name}` is {}: write `[topic.\"{name}\"]`", written(value.get_ref()).shown());
                let at = self.location(topic.span().start);
                self.layer.problems.push(SettingProblem::FileSyntax { at, reason });
                continue;
            };
            if name == "*" {
                let at = self.location(topic.span().start);
                let reason = "`[topic.\"*\"]` sets nothing, because dq has no defaults for all topics: write a table for each topic";
                self.layer.problems.push(SettingProblem::FileSyntax { at, reason: reason.to_owned() });
                continue;
            }
            self.layer.name_topic(name, at);
            for (key, value) in settings {
                self.setting(Some(name), key.get_ref(), value.get_ref(), self.source(key));
            }
        }
    }

    fn setting(&mut self, topic: Option<&str>, key: &str, value: &DeValue<'_>, at: Source) {
        if self.layer.read(topic, key, written(value), at.clone()).is_none() {
            self.layer.problems.push(unknown_key(key, topic, at));
        }
    }
}

/// The problem with a key that the node, or a topic, does not have.
pub(super) fn unknown_key(key: &str, topic: Option<&str>, at: Source) -> SettingProblem {
    let place = place_of(key, topic.is_some());
    let suggestion = match topic {
        _ if place.is_some() => None,
        Some(_) => nearest(key, TopicSettings::KEYS.iter().map(|key| key.name)),
        None => nearest(key, NodeSettings::KEYS.iter().map(|key| key.name).chain(["store", "topic"])),
    };
    SettingProblem::UnknownKey { key: key.to_owned(), topic: topic.map(str::to_owned), at, place, suggestion }
}

/// Where a key belongs that is right elsewhere.
fn place_of(key: &str, is_of_topic: bool) -> Option<&'static str> {
    if is_of_topic && (key == "store" || NodeSettings::key(key).is_some()) {
        Some("it is a setting of the node, so write it above the first `[topic.NAME]`")
    } else if !is_of_topic && TopicSettings::key(key).is_some() {
        Some("it is a setting of a topic, so write it below `[topic.NAME]`")
    } else if matches!(key, "delay" | "id" | "expires_after" | "retain" | "deliver" | "priority") {
        Some("it belongs to the payload: write it in `#[job(..)]`")
    } else {
        None
    }
}

fn not_a_url(at: Source, written: Written<'_>) -> SettingProblem {
    let setting = Setting::new(None, "store");
    SettingProblem::InvalidValue {
        setting,
        at,
        why: format!("`{}` is not a URL such as \"memory:jobs\"", written.shown()),
    }
}

fn written<'a>(value: &'a DeValue<'_>) -> Written<'a> {
    match value {
        DeValue::String(text) => Written::Text(text),
        DeValue::Boolean(flag) => Written::Flag(*flag),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Written::Other(number.as_str()), Written::Number),
        DeValue::Float(number) => Written::Other(number.as_str()),
        DeValue::Datetime(_) => Written::Other("a date"),
        DeValue::Array(_) => Written::Other("an array"),
        DeValue::Table(_) => Written::Other("a table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        parse("dq.toml", text).problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_problem_names_its_line() {
        let text = "lease = 30\nLAESE = \"3s\"\ncrash_rollback = true\n[topic.a]\nconcurrency = \"many\"\nretri = \"none\"\n\
                    [topic.\"b:c\"]\nretry = \"5x\"\n[topics.d]\n[topic.\"*\"]\n";
        assert_eq!(
            problems(text),
            [
                "dq.toml:2: there is no setting `LAESE`: did you mean `lease`?",
                "dq.toml:3: there is no setting `crash_rollback`: did you mean `rollback_on_shutdown`?",
                &format!("`lease` (dq.toml:1): {}", dq_grammar::parse_duration("30").unwrap_err()),
                "dq.toml:10: `[topic.\"*\"]` sets nothing, because dq has no defaults for all topics: write a table for each topic",
                "`concurrency` of topic `a` (dq.toml:5): `many` is not a whole number such as 64",
                "dq.toml:6: there is no setting `retri` of topic `a`: did you mean `retry`?",
                &format!(
                    "`retry` of topic `b:c` (dq.toml:8): {}",
                    "5x".parse::<crate::job::RetryPolicy>().unwrap_err()
                ),
                "dq.toml:9: there is no setting `topics`: did you mean `topic`?",
            ]
        );
    }

    #[test]
    fn a_url_under_a_wrong_key_is_shown_without_its_secrets() {
        for key in ["lease = ", "concurrency = ", "[topic]\nstore = ", "[topic.a]\nretry = ", "stroe = "] {
            let problems = problems(&format!("{key}\"redis://me:secret@host\"\n"));
            assert!(problems.len() == 1 && !problems[0].contains("secret"), "{problems:?}");
        }
    }

    #[test]
    fn a_key_in_the_wrong_place_says_where_it_belongs() {
        let text = "concurrency = 5\n[topic.a]\ndelay = \"5m\"\nlease = \"30s\"\n";
        assert_eq!(
            problems(text),
            [
                "dq.toml:1: there is no setting `concurrency`: it is a setting of a topic, so write it below `[topic.NAME]`",
                "dq.toml:3: there is no setting `delay` of topic `a`: it belongs to the payload: write it in `#[job(..)]`",
                "dq.toml:4: there is no setting `lease` of topic `a`: it is a setting of the node, so write it above the first \
                 `[topic.NAME]`",
            ]
        );
    }

    #[test]
    fn every_syntax_error_is_reported() {
        let problems = problems("lease = \n[topic.a\nshutdown_grace = \"1s\"\n");
        assert!(problems.len() >= 2, "{problems:?}");
        assert!(problems[0].starts_with("dq.toml:1: "), "{problems:?}");
    }

    #[test]
    fn values_of_every_kind_are_read() {
        let text = "store = \"memory:x\"\napp = \"shop\"\nrollback_on_shutdown = false\nmax_in_flight = 1_000\nlease = \"30s\"\n\
                    [topic.a]\ntimeout = \"none\"\nack = \"on_claim\"\n";
        let layer = parse("dq.toml", text);
        assert_eq!(layer.problems, []);
        assert_eq!(layer.store.unwrap().0, "memory:x");
        assert_eq!(layer.node.len(), 3);
        assert_eq!(layer.topics["a"].1.len(), 2);
    }

    #[test]
    fn a_missing_file_is_a_problem() {
        let problems = read(Path::new("/nowhere/dq.toml")).problems;
        assert!(problems[0].to_string().starts_with("cannot read the config file `/nowhere/dq.toml`: No such file"));
    }
}
