//! The arguments of an attribute: `key = value`, separated by commas.
//!
//! A mistake never stops the reader: it notes the mistake and goes on behind the next comma. It returns the known keys,
//! each once, in the order written; [`values`] checks what they say.

use dq_grammar::{ATTRIBUTE_KEYS, AttributeKey};
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Ident, Token};

use crate::errors::{Errors, listed, nearest};

mod manifest;
mod root;
mod value;
mod values;

pub(crate) use root::Root;
pub(crate) use value::Value;
pub(crate) use values::duration;

/// A key that an attribute takes.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name.
    pub(crate) name: &'static str,
    /// An example of it, for messages.
    pub(crate) example: &'static str,
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Argument {
    /// The key as the user wrote it.
    pub(crate) key: Ident,
    /// An example of how to write it.
    pub(crate) example: &'static str,
    /// The value.
    pub(crate) value: Value,
}

impl Argument {
    /// The name of the key.
    pub(crate) fn name(&self) -> String {
        self.key.to_string()
    }

    /// The place of a mistake in the value: the value, or the key if it has no value.
    pub(crate) fn place(&self) -> TokenStream {
        let tokens = self.value.to_token_stream();
        if tokens.is_empty() { self.key.to_token_stream() } else { tokens }
    }
}

/// The arguments of an attribute.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// The known keys, each once, in the order written.
    pub(crate) list: Vec<Argument>,
    /// The keys that the unknown ones were probably meant to be.
    meant: Vec<&'static str>,
}

impl Arguments {
    /// Whether the key is there, or a misspelt form of it.
    pub(crate) fn mention(&self, name: &str) -> bool {
        self.meant.contains(&name) || self.list.iter().any(|argument| argument.key == name)
    }
}

/// Reads the arguments of `#[attribute(..)]`.
pub(crate) fn read(tokens: TokenStream, attribute: &str, keys: &[Key], errors: &mut Errors) -> Arguments {
    let mut found = Vec::new();
    let read_all = |input: ParseStream<'_>| {
        while !input.is_empty() {
            found.extend(read_one(input, keys, errors)?);
            separator(input, errors)?;
        }
        Ok(())
    };
    if let Err(error) = read_all.parse2(tokens) {
        errors.add(error);
    }
    known_and_unique(found, attribute, keys, errors)
}

fn read_one(input: ParseStream<'_>, keys: &[Key], errors: &mut Errors) -> syn::Result<Option<(Ident, Value)>> {
    if !input.peek(Ident::peek_any) {
        let found = value::until_comma(input)?;
        let place = if found.is_empty() { input.cursor().token_stream() } else { found };
        errors.at(first_token(place), format!("expected a key, for example `{}`", keys[0].example));
        return Ok(None);
    }
    let key = Ident::parse_any(input)?;
    let value = if input.parse::<Option<Token![=]>>()?.is_some() {
        Value::read(input)?
    } else if input.is_empty() || input.peek(Token![,]) || input.peek(Ident::peek_any) {
        Value::Absent
    } else {
        value::until_comma(input)?;
        Value::Absent
    };
    Ok(Some((key, value)))
}

fn first_token(tokens: TokenStream) -> TokenStream {
    tokens.into_iter().take(1).collect()
}

fn separator(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
    if !input.is_empty() && input.parse::<Option<Token![,]>>()?.is_none() {
        errors.at(first_token(input.cursor().token_stream()), "expected a comma before this");
        if !input.peek(Ident::peek_any) {
            value::until_comma(input)?;
        }
    }
    Ok(())
}

/// The settings that the attribute of a listener takes, in the order of the table.
pub(crate) fn settings() -> impl Iterator<Item = &'static AttributeKey> {
    ATTRIBUTE_KEYS.iter().filter(|setting| setting.example.is_some())
}

/// The attribute that has this key, if another one does.
fn place_of(key: &str, attribute: &str) -> Option<&'static str> {
    const OF_JOB: [&str; 11] = [
        "delay",
        "expires_after",
        "retain",
        "deliver",
        "priority",
        "group",
        "weight",
        "max_waiting",
        "group_max_waiting",
        "unique_for",
        "id",
    ];
    let has = |keys: &[&str]| keys.contains(&key);
    let is_of_listener = || key == "on_exhausted" || key != "retry" && settings().any(|setting| setting.name == key);
    match attribute {
        "job" if is_of_listener() => Some("delay_listener"),
        "delay_listener" | "broadcast_listener" if has(&OF_JOB) => Some("job"),
        _ => None,
    }
}

fn known_and_unique(found: Vec<(Ident, Value)>, attribute: &str, keys: &[Key], errors: &mut Errors) -> Arguments {
    let mut arguments = Arguments::default();
    for (key, value) in found {
        let name = key.to_string();
        let Some(known) = keys.iter().find(|known| known.name == name) else {
            let names = keys.iter().map(|key| key.name);
            let place = place_of(&name, attribute);
            match nearest(&name, names.clone()).filter(|_| place.is_none()) {
                Some(near) => {
                    errors.at(&key, format!("unknown key `{name}`: did you mean `{near}`?"));
                    arguments.meant.push(near);
                }
                None => {
                    let names = listed(names, "and");
                    let belongs =
                        place.map_or_else(String::new, |place| format!(", which belongs into `#[{place}(..)]`"));
                    errors.at(&key, format!("unknown key `{name}`{belongs}: the keys of `#[{attribute}]` are {names}"));
                }
            }
            continue;
        };
        if arguments.list.iter().any(|argument| argument.key == key) {
            errors.at(&key, format!("this is the second `{name}`: keep one"));
            continue;
        }
        arguments.list.push(Argument { key, example: known.example, value });
    }
    arguments
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    const KEYS: &[Key] = &[
        Key { name: "topic", example: "topic = \"order-timeout\"" },
        Key { name: "concurrency", example: "concurrency = 64" },
        Key { name: "crate", example: "crate = \"work\"" },
    ];

    fn texts(tokens: TokenStream) -> (Vec<String>, Vec<String>) {
        let mut errors = Errors::default();
        let keys = read(tokens, "delay_listener", KEYS, &mut errors).list.iter().map(Argument::name).collect();
        (keys, errors.texts())
    }

    #[test]
    fn the_reader_goes_on_behind_each_mistake() {
        let (keys, errors) = texts(quote!(topc = "a", 7, concurrency = 3 crate = work, topic("x"), topic = "b"));
        assert_eq!(keys, ["concurrency", "crate", "topic"]);
        assert_eq!(
            errors,
            [
                "expected a key, for example `topic = \"order-timeout\"`",
                "expected a comma before this",
                "unknown key `topc`: did you mean `topic`?",
                "this is the second `topic`: keep one",
            ]
        );
    }

    #[test]
    fn a_key_of_another_attribute_says_where_it_belongs() {
        let (_, errors) = texts(quote!(delay = "5m"));
        let [error] = &errors[..] else { panic!("{errors:?}") };
        assert!(error.starts_with("unknown key `delay`, which belongs into `#[job(..)]`: the keys of"), "{error}");
        assert_eq!(place_of("concurrency", "job"), Some("delay_listener"));
        assert_eq!((place_of("retry", "job"), place_of("delay", "job")), (None, None));
    }

    #[test]
    fn an_empty_list_and_a_trailing_comma_are_allowed() {
        assert_eq!(texts(quote!()), (vec![], vec![]));
        assert_eq!(texts(quote!(topic = "a",)), (vec!["topic".into()], vec![]));
    }
}
