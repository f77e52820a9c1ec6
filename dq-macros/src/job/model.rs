//! The settings of a payload: its `#[job(..)]`.

use std::time::Duration;

use dq_grammar::{MAX_UNIQUE, MIN_UNIQUE, RetryPolicy};
use syn::{Data, DeriveInput, Fields, LitStr, Member, Type};

use super::id::{self, IdSource};
use super::parse::Parsed;
use crate::arguments::{Argument, Root, Value};
use crate::errors::Errors;

/// The largest `max_waiting` and `group_max_waiting`.
const MAX_WAITING: u32 = 1_000_000_000;

/// A payload's topic, defaults and id.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) root: Root,
    /// `None` after a mistake.
    pub(super) topic: Option<LitStr>,
    pub(super) delay: Option<Duration>,
    pub(super) retry: Option<LitStr>,
    pub(super) expires_after: Option<Duration>,
    pub(super) retain: Option<Duration>,
    pub(super) deliver: Option<&'static str>,
    pub(super) max_waiting: Option<usize>,
    pub(super) group_max_waiting: Option<usize>,
    pub(super) priority: Option<&'static str>,
    pub(super) unique_for: Option<Duration>,
    /// The template of the group, and its fields.
    pub(super) group: Option<(LitStr, Vec<Member>)>,
    /// The template of the weight, and its fields.
    pub(super) weight: Option<(LitStr, Vec<Member>)>,
    pub(super) id: IdSource,
    /// Whether the payload borrows. No implementation is possible then.
    pub(super) borrows: bool,
}

impl Model {
    /// Checks the keys and the payload.
    pub(super) fn check(parsed: &Parsed, input: &DeriveInput, errors: &mut Errors) -> Self {
        let mut model = Self {
            root: Root::usual(),
            topic: None,
            delay: None,
            retry: None,
            expires_after: None,
            retain: None,
            deliver: None,
            max_waiting: None,
            group_max_waiting: None,
            priority: None,
            unique_for: None,
            group: None,
            weight: None,
            id: IdSource::Generated,
            borrows: false,
        };
        for argument in &parsed.arguments.list {
            model.set(argument, input, errors);
        }
        if !parsed.unreadable && !parsed.arguments.mention("topic") {
            errors.at(&input.ident, "this payload needs a topic: write `#[job(topic = \"..\")]`");
        }
        model.take_id_field(parsed, errors);
        let unique = parsed.arguments.list.iter().find(|argument| argument.key == "unique_for");
        if let (Some(argument), IdSource::Generated) = (unique, &model.id) {
            errors.at(
                &argument.key,
                "`unique_for` needs an id: mark a field with `#[job(id)]`, or write `id = \"{a}:{b}\"`",
            );
        }
        model.borrows = check_owned(input, errors);
        model
    }

    fn set(&mut self, argument: &Argument, input: &DeriveInput, errors: &mut Errors) {
        match &*argument.name() {
            "topic" => self.topic = argument.topic(errors),
            "delay" => self.delay = argument.duration(errors),
            "retry" => self.retry = argument.parsed::<RetryPolicy>(errors).cloned(),
            "expires_after" => {
                self.expires_after = argument.duration(errors);
                if self.expires_after == Some(Duration::ZERO) {
                    errors.at(argument.place(), "every job would expire at its due time: write more than zero");
                }
            }
            "retain" => self.retain = argument.duration(errors),
            "deliver" => self.deliver = argument.choice(&["queue", "broadcast", "both"], errors),
            name @ ("max_waiting" | "group_max_waiting") => {
                let most = argument.number(1..=MAX_WAITING, errors).map(|most| most as usize);
                *(if name == "max_waiting" { &mut self.max_waiting } else { &mut self.group_max_waiting }) = most;
            }
            "priority" => self.priority = argument.choice(&["high", "normal", "low"], errors),
            "unique_for" => {
                let time = argument.duration(errors);
                if time.is_some_and(|time| !(MIN_UNIQUE..=MAX_UNIQUE).contains(&time)) {
                    errors.at(argument.place(), "an id stays taken for 1s to 30d");
                }
                self.unique_for = time;
            }
            name @ ("group" | "weight") => {
                let template = argument.text(errors).and_then(|text| id::template(name, text, input, errors));
                if let Some(IdSource::Template(text, members)) = template {
                    *(if name == "group" { &mut self.group } else { &mut self.weight }) = Some((text, members));
                }
            }
            "crate" => self.root = Root::named(argument, errors),
            _ if matches!(argument.value, Value::Absent) => errors.at(
                &argument.key,
                "`#[job(id)]` goes above the field that is the id; above the type write `id = \"{tenant}:{order_id}\"`",
            ),
            _ => {
                let template = argument.text(errors).and_then(|text| id::template("id", text, input, errors));
                self.id = template.unwrap_or(IdSource::Generated);
            }
        }
    }

    /// Takes the field with `#[job(id)]` as the id, unless there is a template.
    fn take_id_field(&mut self, parsed: &Parsed, errors: &mut Errors) {
        let templated = parsed.arguments.list.iter().any(|argument| argument.key == "id");
        for (index, field) in parsed.id_fields.iter().enumerate() {
            if index > 0 || templated {
                errors
                    .at(&field.word, "this payload has two ids: keep one, or write `id = \"{a}:{b}\"` above the type");
            } else {
                self.id = IdSource::Field(field.member.clone(), Box::new(field.ty.clone()));
            }
        }
    }
}

/// Whether the payload borrows; notes each borrowed field.
fn check_owned(input: &DeriveInput, errors: &mut Errors) -> bool {
    const TEXT: &str = "a payload owns its data: write `String` instead of `&str`";
    if let Some(lifetime) = input.generics.lifetimes().next() {
        errors.at(lifetime, TEXT);
        return true;
    }
    let fields: Vec<&Fields> = match &input.data {
        Data::Struct(data) => vec![&data.fields],
        Data::Enum(data) => data.variants.iter().map(|variant| &variant.fields).collect(),
        Data::Union(data) => {
            errors.at(data.union_token, "a union cannot be serialized: a payload is a struct or an enum");
            return true;
        }
    };
    let borrowed: Vec<_> =
        fields.into_iter().flatten().filter(|field| matches!(field.ty, Type::Reference(_))).collect();
    borrowed.iter().for_each(|field| errors.at(&field.ty, TEXT));
    !borrowed.is_empty()
}
