//! Checks of values, by the rules of `dq-grammar` that the library applies at run time too.
//!
//! A check that finds a mistake notes it and returns `None`.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use dq_grammar::{Kind, MAX_DELAY, OnBlocked, Rate, RetryPolicy, check_topic, parse_duration};
use syn::{LitStr, Path};

use super::{Argument, Value};
use crate::errors::{Errors, listed, nearest};

impl Argument {
    /// Notes that the value is missing or of the wrong kind.
    fn expected(&self, what: &str, errors: &mut Errors) {
        let (name, example) = (&self.key, self.example);
        match self.value {
            Value::Absent => errors.at(&self.key, format!("`{name}` needs a value: write `{example}`")),
            _ => errors.at(self.place(), format!("expected {what}, for example `{example}`")),
        }
    }

    /// A text in quotes.
    pub(crate) fn text(&self, errors: &mut Errors) -> Option<&LitStr> {
        if let Value::Text(text) = &self.value {
            return Some(text);
        }
        self.expected("a string in quotes", errors);
        None
    }

    /// A whole number within `range`.
    pub(crate) fn number(&self, range: RangeInclusive<u32>, errors: &mut Errors) -> Option<u32> {
        let Value::Number(number) = &self.value else {
            self.expected("a number without quotes", errors);
            return None;
        };
        let read = number.base10_parse().ok().filter(|read| number.suffix().is_empty() && range.contains(read));
        if read.is_none() {
            let (name, least, most) = (&self.key, range.start(), range.end());
            errors.at(number, format!("`{name}` takes a whole number from {least} to {most}"));
        }
        read
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, errors: &mut Errors) -> Option<bool> {
        if let Value::Flag(flag) = &self.value {
            return Some(flag.value());
        }
        self.expected("`true` or `false` without quotes", errors);
        None
    }

    /// One of these texts.
    pub(crate) fn choice(&self, choices: &[&'static str], errors: &mut Errors) -> Option<&'static str> {
        let text = self.text(errors)?;
        let written = text.value();
        let found = choices.iter().copied().find(|choice| *choice == written);
        if found.is_none() {
            let all = listed(choices.iter().copied(), "or");
            let meant = nearest(&written, choices.iter().copied());
            let hint = meant.map(|near| format!(". Did you mean `{near}`?")).unwrap_or_default();
            errors.at(text, format!("`{}` takes {all}, not `{written}`{hint}", self.key));
        }
        found
    }

    /// A path, with or without quotes. It keeps its place, so that errors of the compiler point to it.
    pub(crate) fn path(&self, errors: &mut Errors) -> Option<Path> {
        match &self.value {
            Value::Path(path) => Some(path.clone()),
            Value::Text(text) => {
                let parsed = text.parse_with(Path::parse_mod_style);
                if parsed.is_err() {
                    errors.at(text, format!("`{}` is not a path: write `{}`", text.value(), self.example));
                }
                parsed.ok()
            }
            _ => {
                self.expected("a path in quotes", errors);
                None
            }
        }
    }

    /// A duration of at most ten years.
    pub(crate) fn duration(&self, errors: &mut Errors) -> Option<Duration> {
        duration(self.text(errors)?, errors)
    }

    /// A setting, as a config file writes it without quotes.
    pub(crate) fn setting(&self, kind: &Kind, errors: &mut Errors) -> Option<String> {
        match kind {
            Kind::Number(range) => self.number(range.clone(), errors).map(|number| number.to_string()),
            Kind::Flag => self.flag(errors).map(|flag| flag.to_string()),
            Kind::Choice(choices) => self.choice(choices, errors).map(str::to_owned),
            Kind::Retry => self.parsed::<RetryPolicy>(errors).map(LitStr::value),
            Kind::Blocked => self.parsed::<OnBlocked>(errors).map(LitStr::value),
            Kind::Rate => match self.text(errors)? {
                text if text.value() == "none" => Some(text.value()),
                _ => self.parsed::<Rate>(errors).map(LitStr::value),
            },
            Kind::Time | Kind::Limit => {
                let text = self.text(errors)?;
                let is_none = matches!(kind, Kind::Limit) && text.value() == "none";
                (is_none || duration(text, errors).is_some()).then(|| text.value())
            }
        }
    }

    /// The text of a `T`, such as a retry policy.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(&self, errors: &mut Errors) -> Option<&LitStr> {
        let text = self.text(errors)?;
        match text.value().parse::<T>() {
            Ok(_) => Some(text),
            Err(bad) => {
                errors.at(text, bad);
                None
            }
        }
    }

    /// A topic.
    pub(crate) fn topic(&self, errors: &mut Errors) -> Option<LitStr> {
        topic(self.text(errors)?, errors)
    }

    /// The names of broadcast channels: at least one, each once.
    pub(crate) fn channels(&self, errors: &mut Errors) -> Option<Vec<LitStr>> {
        let Value::List(_, values) = &self.value else {
            self.expected("a list", errors);
            return None;
        };
        if values.is_empty() {
            errors.at(self.place(), format!("name at least one broadcast channel: write `{}`", self.example));
            return None;
        }
        let mut channels: Vec<LitStr> = Vec::new();
        for value in values {
            let Value::Text(text) = value else {
                errors.at(value, format!("expected a string in quotes, for example `{}`", self.example));
                continue;
            };
            if channels.contains(text) {
                errors.at(text, format!("the broadcast channel `{}` is named twice: keep one", text.value()));
            } else {
                channels.extend(topic(text, errors));
            }
        }
        Some(channels)
    }
}

fn topic(text: &LitStr, errors: &mut Errors) -> Option<LitStr> {
    match check_topic(&text.value()) {
        Ok(()) => Some(text.clone()),
        Err(bad) => {
            errors.at(text, bad);
            None
        }
    }
}

/// A duration of at most ten years.
pub(crate) fn duration(text: &LitStr, errors: &mut Errors) -> Option<Duration> {
    match parse_duration(&text.value()) {
        Ok(long) if long > MAX_DELAY => {
            errors.at(text, format!("`{}` is too long: the limit is ten years", text.value()));
            None
        }
        Ok(duration) => Some(duration),
        Err(bad) => {
            errors.at(text, bad);
            None
        }
    }
}
