//! The settings of a listener: the keys of `#[delay_listener(..)]`.

use std::time::Duration;

use proc_macro2::TokenStream;
use syn::{LitStr, Path};

use super::parse::Annotated;
use crate::arguments::{self, Argument, Key, Root, Value};
use crate::errors::Errors;

const ATTRIBUTE: &str = "delay_listener";

const KEYS: &[Key] = &[
    Key { name: "topic", example: "topic = \"order-timeout\"" },
    Key { name: "concurrency", example: "concurrency = 64" },
    Key { name: "timeout", example: "timeout = \"5s\"" },
    Key { name: "on_timeout", example: "on_timeout = \"retry\"" },
    Key { name: "retry", example: "retry = \"1m, 5m, 10m\"" },
    Key { name: "ack", example: "ack = \"on_return\"" },
    Key { name: "max_crashes", example: "max_crashes = 3" },
    Key { name: "history", example: "history = 20" },
    Key { name: "history_after", example: "history_after = \"1d\"" },
    Key { name: "batch", example: "batch = 500" },
    Key { name: "statistics", example: "statistics = true" },
    Key { name: "final_retry", example: "final_retry = \"give_up\"" },
    Key { name: "register", example: "register = false" },
    Key { name: "crate", example: "crate = \"work\"" },
];

/// The settings of a listener.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) root: Root,
    pub(super) topic: Option<LitStr>,
    pub(super) concurrency: Option<u32>,
    pub(super) timeout: Option<Duration>,
    pub(super) on_timeout: Option<&'static str>,
    pub(super) retry: Option<LitStr>,
    pub(super) ack: Option<&'static str>,
    pub(super) max_crashes: Option<u32>,
    pub(super) history: Option<u32>,
    pub(super) history_after: Option<Duration>,
    pub(super) batch: Option<u32>,
    pub(super) statistics: Option<bool>,
    pub(super) final_retry: Option<Path>,
    pub(super) register: bool,
}

impl Model {
    /// Reads and checks every key.
    pub(super) fn check(tokens: TokenStream, annotated: &Annotated, errors: &mut Errors) -> Self {
        let mut model = Self {
            root: Root::usual(),
            topic: None,
            concurrency: None,
            timeout: None,
            on_timeout: None,
            retry: None,
            ack: None,
            max_crashes: None,
            history: None,
            history_after: None,
            batch: None,
            statistics: None,
            final_retry: None,
            register: true,
        };
        let arguments = arguments::read(tokens, ATTRIBUTE, KEYS, errors);
        for argument in &arguments.list {
            model.set(argument, annotated, errors);
        }
        check_batch(&arguments.list, annotated, errors);
        if let Annotated::Struct(listener) = annotated {
            let item = &listener.item;
            arguments::check_generics(item, "listener", model.register, errors);
        }
        model
    }

    fn set(&mut self, argument: &Argument, annotated: &Annotated, errors: &mut Errors) {
        match &*argument.name() {
            "topic" => self.topic = argument.topic(errors),
            "concurrency" => self.concurrency = argument.number(1..=100_000, errors),
            "timeout" => self.timeout = argument.timeout(errors),
            "on_timeout" => self.on_timeout = argument.choice(&["retry", "immediate"], errors),
            "retry" => self.retry = argument.retry(errors),
            "ack" => self.ack = argument.choice(&["on_return", "on_claim"], errors),
            "max_crashes" => self.max_crashes = argument.number(1..=1_000, errors),
            "history" => self.history = argument.number(0..=100, errors),
            "history_after" => self.history_after = argument.duration(errors),
            "batch" => self.batch = argument.number(1..=1_000, errors),
            "statistics" => self.statistics = argument.flag(errors),
            "register" => self.register = argument.flag(errors).unwrap_or(true),
            "crate" => self.root = Root::named(argument, errors),
            _ => match annotated {
                Annotated::Function(_) => self.final_retry = argument.path(errors),
                Annotated::Struct(_) => errors.at(
                    &argument.key,
                    "this key is for functions: write `async fn final_retry(&self, ..)` in the `impl DelayListener`",
                ),
            },
        }
    }
}

/// Notes a `batch` above a function that takes one job, and a batch that is acked before it runs.
fn check_batch(arguments: &[Argument], annotated: &Annotated, errors: &mut Errors) {
    let find = |name| arguments.iter().find(|argument| argument.key == name);
    let takes_batches = match annotated {
        Annotated::Struct(_) => find("batch").is_some(),
        Annotated::Function(function) => function.takes_batches,
    };
    if let Some(batch) = find("batch").filter(|_| !takes_batches) {
        let name =
            if let Annotated::Function(function) = annotated { function.payload_text() } else { "..".to_owned() };
        errors.at(
            &batch.key,
            format!(
                "this function takes one job: write `batch: Batch<{name}>` instead of the `Job`, or remove `batch`"
            ),
        );
    }
    let is_on_claim = |ack: &&Argument| matches!(&ack.value, Value::Text(text) if text.value() == "on_claim");
    if let Some(ack) = find("ack").filter(is_on_claim).filter(|_| takes_batches) {
        errors.at(ack.place(), "dq acks the jobs of a batch when its handler returns: remove `ack`");
    }
}
