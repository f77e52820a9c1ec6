//! The item below `#[delay_listener]`.

use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, ItemStruct, Token, Visibility};

use super::function::{self, Function, FunctionItem};
use crate::errors::Errors;
use crate::injection::Injection;

/// A struct or a function with the attribute.
#[derive(Debug)]
pub(super) enum Annotated {
    Struct(Box<Listener>),
    Function(Box<Function>),
}

/// A struct with the attribute. Its fields have no `#[inject]` any more.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) item: ItemStruct,
    pub(super) injection: Injection,
}

/// Reads the item; `None` after the mistake that it cannot be a listener.
pub(super) fn annotated(item: TokenStream, errors: &mut Errors) -> Option<Annotated> {
    let is_struct = |input: ParseStream<'_>| {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        let is_struct = input.peek(Token![struct]);
        input.parse::<TokenStream>()?;
        Ok(is_struct)
    };
    if is_struct.parse2(item.clone()).unwrap_or(false) {
        match syn::parse2::<ItemStruct>(item) {
            Ok(mut item) => {
                let injection = Injection::read(&mut item.fields, errors);
                return Some(Annotated::Struct(Box::new(Listener { item, injection })));
            }
            Err(error) => errors.add(error),
        }
        return None;
    }
    match syn::parse2::<FunctionItem>(item.clone()) {
        Ok(item) => function::read(item, errors).map(Box::new).map(Annotated::Function),
        Err(_) => {
            errors.at(item, "`#[delay_listener]` goes above a struct or an async function");
            None
        }
    }
}
