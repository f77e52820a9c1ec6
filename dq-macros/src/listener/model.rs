//! The settings of a listener: the keys of `#[delay_listener(..)]`.

use proc_macro2::TokenStream;
use syn::{LitStr, Path};

use super::parse::Annotated;
use crate::arguments::{self, Argument, Key, Root, Value};
use crate::errors::Errors;
use crate::injection::check_generics;

const ATTRIBUTE: &str = "delay_listener";

/// The topic, the settings, and what is not a setting.
fn keys() -> Vec<Key> {
    let settings = arguments::settings();
    let settings = settings.filter_map(|setting| Some(Key { name: setting.name, example: setting.example? }));
    let first = [Key { name: "topic", example: "topic = \"order-timeout\"" }];
    let last = [
        Key { name: "on_exhausted", example: "on_exhausted = \"give_up\"" },
        Key { name: "register", example: "register = false" },
        Key { name: "crate", example: "crate = \"work\"" },
    ];
    first.into_iter().chain(settings).chain(last).collect()
}

/// The settings of a listener.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) root: Root,
    pub(super) topic: Option<LitStr>,
    /// The settings, each with its value as a config file writes it.
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) on_exhausted: Option<Path>,
    pub(super) register: bool,
}

impl Model {
    /// Whether it has the key `batch_size`.
    pub(super) fn has_batch(&self) -> bool {
        self.settings.iter().any(|(name, _)| *name == "batch_size")
    }

    /// Reads and checks every key.
    pub(super) fn check(tokens: TokenStream, annotated: &Annotated, errors: &mut Errors) -> Self {
        let mut model =
            Self { root: Root::usual(), topic: None, settings: Vec::new(), on_exhausted: None, register: true };
        let arguments = arguments::read(tokens, ATTRIBUTE, &keys(), errors);
        for argument in &arguments.list {
            model.set(argument, annotated, errors);
        }
        check_batch(&arguments.list, annotated, errors);
        if let Annotated::Struct(listener) = annotated {
            let item = &listener.item;
            check_generics(item, "listener", model.register, errors);
        }
        model
    }

    fn set(&mut self, argument: &Argument, annotated: &Annotated, errors: &mut Errors) {
        let name = argument.name();
        if let Some(setting) = arguments::settings().find(|setting| setting.name == name) {
            self.settings.extend(argument.setting(&setting.kind, errors).map(|value| (setting.name, value)));
            return;
        }
        match &*name {
            "topic" => self.topic = argument.topic(errors),
            "register" => self.register = argument.flag(errors).unwrap_or(true),
            "crate" => self.root = Root::named(argument, errors),
            _ => match annotated {
                Annotated::Function(_) => self.on_exhausted = argument.path(errors),
                Annotated::Struct(_) => errors.at(
                    &argument.key,
                    "this key is for functions: write `async fn on_exhausted(&self, ..)` in the `impl DelayListener`",
                ),
            },
        }
    }
}

/// Notes a `batch_size` above a function that takes one job, and a batch that is acked before it runs.
fn check_batch(arguments: &[Argument], annotated: &Annotated, errors: &mut Errors) {
    let find = |name| arguments.iter().find(|argument| argument.key == name);
    let takes_batches = match annotated {
        Annotated::Struct(_) => find("batch_size").is_some(),
        Annotated::Function(function) => function.takes_batches,
    };
    if let Some(batch) = find("batch_size").filter(|_| !takes_batches) {
        let name =
            if let Annotated::Function(function) = annotated { function.payload_text() } else { "..".to_owned() };
        errors.at(
            &batch.key,
            format!(
                "this function takes one job: write `batch: Batch<{name}>` instead of the `Job`, or remove `batch_size`"
            ),
        );
    }
    let is_on_claim = |ack: &&Argument| matches!(&ack.value, Value::Text(text) if text.value() == "on_claim");
    if let Some(ack) = find("ack").filter(is_on_claim).filter(|_| takes_batches) {
        errors.at(ack.place(), "dq acks the jobs of a batch when its handler returns: remove `ack`");
    }
}
