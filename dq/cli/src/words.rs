//! Arguments that are one of some words.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A value, its word on the command line, and what the help says of it.
pub(crate) type Word<T> = (T, &'static str, &'static str);

/// Reads one of these words; the help lists them.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(words: &'static [Word<T>]) -> impl TypedValueParser<Value = T> {
    let known = words.iter().map(|(_, word, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(known).try_map(|text| {
        let found = words.iter().find(|(_, word, _)| *word == text);
        found.map(|(value, ..)| *value).ok_or("there is no such word")
    })
}

/// The word of a value.
pub(crate) fn word_of<T: PartialEq>(words: &[Word<T>], value: &T) -> &'static str {
    words.iter().find(|(known, ..)| known == value).map_or("?", |(_, word, _)| word)
}
