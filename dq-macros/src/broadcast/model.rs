//! The settings of a broadcast listener: the keys of `#[broadcast_listener(..)]`.

use proc_macro2::TokenStream;
use syn::{ItemStruct, LitStr};

use crate::arguments::{self, Key, Root};
use crate::errors::Errors;
use crate::injection::check_generics;

const ATTRIBUTE: &str = "broadcast_listener";

const KEYS: &[Key] = &[
    Key { name: "channels", example: "channels = [\"cache-expired\"]" },
    Key { name: "register", example: "register = false" },
    Key { name: "crate", example: "crate = \"work\"" },
];

/// The settings of a broadcast listener.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) root: Root,
    pub(super) channels: Vec<LitStr>,
    pub(super) register: bool,
}

impl Model {
    /// Reads and checks every key.
    pub(super) fn check(tokens: TokenStream, item: &ItemStruct, errors: &mut Errors) -> Self {
        let mut model = Self { root: Root::usual(), channels: Vec::new(), register: true };
        let arguments = arguments::read(tokens, ATTRIBUTE, KEYS, errors);
        for argument in &arguments.list {
            match &*argument.name() {
                "channels" => model.channels = argument.channels(errors).unwrap_or_default(),
                "register" => model.register = argument.flag(errors).unwrap_or(true),
                _ => model.root = Root::named(argument, errors),
            }
        }
        if !arguments.mention("channels") {
            errors.at(
                &item.ident,
                "this listener needs broadcast channels: write `#[broadcast_listener(channels = [\"..\"])]`",
            );
        }
        check_generics(item, "broadcast_listener", model.register, errors);
        model
    }
}
