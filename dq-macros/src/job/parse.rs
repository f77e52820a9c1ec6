//! The `#[job(..)]` of a payload and of its fields.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Data, DeriveInput, Fields, Ident, Index, Member, Meta, Type};

use crate::arguments::{self, Arguments, Key};
use crate::errors::{Errors, nearest};

pub(super) const KEYS: &[Key] = &[
    Key { name: "topic", example: "topic = \"order-timeout\"" },
    Key { name: "delay", example: "delay = \"30m\"" },
    Key { name: "retry", example: "retry = \"1m, 5m, 10m\"" },
    Key { name: "expires_after", example: "expires_after = \"1h\"" },
    Key { name: "retain", example: "retain = \"1d\"" },
    Key { name: "deliver", example: "deliver = \"queue\"" },
    Key { name: "max_waiting", example: "max_waiting = 10000" },
    Key { name: "group_max_waiting", example: "group_max_waiting = 100" },
    Key { name: "priority", example: "priority = \"high\"" },
    Key { name: "unique_for", example: "unique_for = \"24h\"" },
    Key { name: "group", example: "group = \"{customer}\"" },
    Key { name: "weight", example: "weight = \"{tokens}\"" },
    Key { name: "id", example: "id = \"{tenant}:{order_id}\"" },
    Key { name: "crate", example: "crate = \"work\"" },
];

/// The attributes of a payload.
#[derive(Debug)]
pub(super) struct Parsed {
    /// Whether a `#[job ..]` above the type has no brackets, which is a noted mistake.
    pub(super) unreadable: bool,
    /// The keys of the type.
    pub(super) arguments: Arguments,
    /// The fields with `#[job(id)]`.
    pub(super) id_fields: Vec<IdField>,
    /// The keys as the user wrote them.
    pub(super) tokens: TokenStream,
}

/// A field with `#[job(id)]`.
#[derive(Debug)]
pub(super) struct IdField {
    pub(super) member: Member,
    pub(super) ty: Type,
    /// The word `id`.
    pub(super) word: Ident,
}

/// Reads every `#[job(..)]`. Several above the type count as one.
pub(super) fn read(input: &DeriveInput, errors: &mut Errors) -> Parsed {
    let mut tokens = TokenStream::new();
    let mut unreadable = false;
    for attribute in jobs(&input.attrs) {
        match &attribute.meta {
            Meta::List(list) => {
                let inner = &list.tokens;
                let comma = (!tokens.is_empty() && !ends_with_comma(&tokens)).then(|| quote!(,));
                tokens.extend(quote!(#comma #inner));
            }
            other => {
                unreadable = true;
                errors.at(other, "write the keys in round brackets: `#[job(topic = \"..\")]`");
            }
        }
    }
    let arguments = arguments::read(tokens.clone(), "job", KEYS, errors);
    Parsed { unreadable, arguments, id_fields: id_fields(&input.data, errors), tokens }
}

fn ends_with_comma(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().last().is_some_and(|last| last.to_string() == ",")
}

fn jobs(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("job"))
}

/// The fields of a struct with their names or numbers.
pub(super) fn members(fields: &Fields) -> impl Iterator<Item = (Member, &syn::Field)> {
    fields.iter().enumerate().map(|(index, field)| {
        let member = field.ident.clone().map_or_else(|| Member::Unnamed(Index::from(index)), Member::Named);
        (member, field)
    })
}

fn id_fields(data: &Data, errors: &mut Errors) -> Vec<IdField> {
    let mut found = Vec::new();
    match data {
        Data::Struct(data) => {
            for (member, field) in members(&data.fields) {
                for attribute in jobs(&field.attrs) {
                    let word = word_id(attribute, errors);
                    found.extend(word.map(|word| IdField { member: member.clone(), ty: field.ty.clone(), word }));
                }
            }
        }
        Data::Enum(data) => {
            for variant in &data.variants {
                let fields = variant.fields.iter().flat_map(|field| &field.attrs);
                for attribute in jobs(&variant.attrs).chain(fields.filter(|a| a.path().is_ident("job"))) {
                    errors.at(
                        attribute,
                        "`#[job(id)]` goes above a field of a struct: put the enum in a struct that has a field for the id",
                    );
                }
            }
        }
        Data::Union(_) => {}
    }
    found
}

/// The word `id` of `#[job(id)]` above a field.
fn word_id(attribute: &Attribute, errors: &mut Errors) -> Option<Ident> {
    match attribute.parse_args::<Ident>() {
        Ok(word) if word == "id" => return Some(word),
        Ok(word) if nearest(&word.to_string(), ["id"]).is_some() => {
            errors.at(&word, format!("unknown key `{word}`: did you mean `id`?"));
        }
        _ => {
            let place = match &attribute.meta {
                Meta::List(list) if !list.tokens.is_empty() => list.tokens.clone(),
                other => other.to_token_stream(),
            };
            errors.at(
                place,
                "write `#[job(id)]` above a field; the other keys belong in the `#[job(..)]` above the type",
            );
        }
    }
    None
}
