//! The item below `#[periodic]`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, FnArg, GenericArgument, Ident, ItemFn, ItemStruct, Meta, PathArguments, ReturnType, Type};

use crate::errors::Errors;

/// What makes the payload.
#[derive(Debug)]
pub(super) enum Payload {
    /// The default of the payload of this listener, which is a struct.
    OfListener,
    /// The default of this type, which a function takes in a `Job`.
    Default(Type),
    /// The function returns it.
    Returned { ty: Type, is_async: bool },
}

/// An item with the attribute.
#[derive(Debug)]
pub(super) struct Annotated {
    /// The item without its `#[periodic]`s.
    pub(super) item: TokenStream,
    pub(super) name: Ident,
    pub(super) visibility: syn::Visibility,
    pub(super) payload: Payload,
}

/// Reads the item, and the arguments of its other `#[periodic]`s; `None` after a mistake.
pub(super) fn annotated(item: TokenStream, errors: &mut Errors) -> Option<(Annotated, Vec<TokenStream>)> {
    if let Ok(mut listener) = syn::parse2::<ItemStruct>(item.clone()) {
        let others = take_others(&mut listener.attrs);
        if !listener.generics.params.is_empty() {
            let text = "a generic listener has no one payload: put `#[periodic]` above a function that returns it";
            errors.at(&listener.generics, text);
            return None;
        }
        let (name, visibility) = (listener.ident.clone(), listener.vis.clone());
        let item = listener.into_token_stream();
        return Some((Annotated { item, name, visibility, payload: Payload::OfListener }, others));
    }
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        let text = "`#[periodic]` goes above `#[delay_listener]`, or above a function that returns the payload";
        errors.at(item, text);
        return None;
    };
    let others = take_others(&mut function.attrs);
    let payload = payload_of(&function, errors)?;
    let (name, visibility) = (function.sig.ident.clone(), function.vis.clone());
    Some((Annotated { item: function.into_token_stream(), name, visibility, payload }, others))
}

fn payload_of(function: &ItemFn, errors: &mut Errors) -> Option<Payload> {
    let sig = &function.sig;
    let jobs = sig.inputs.iter().find_map(|input| match input {
        FnArg::Typed(input) => argument_of(&input.ty),
        FnArg::Receiver(_) => None,
    });
    if let Some(ty) = jobs {
        let is_listener = |attribute: &Attribute| is_called(attribute, "delay_listener");
        if function.attrs.iter().any(is_listener) {
            return Some(Payload::Default(ty));
        }
        errors.at(&sig.ident, "put `#[periodic]` above `#[delay_listener]`, which has to be there, too");
        return None;
    }
    if !sig.generics.params.is_empty() {
        errors.at(&sig.generics, "a function that makes a payload cannot be generic: dq has to know which payload");
        return None;
    }
    if !sig.inputs.is_empty() {
        errors.at(&sig.inputs, "a function that makes the payload of a schedule takes no parameters");
        return None;
    }
    match &sig.output {
        ReturnType::Type(_, ty) => Some(Payload::Returned { ty: (**ty).clone(), is_async: sig.asyncness.is_some() }),
        ReturnType::Default => {
            let text = "`#[periodic]` needs a payload: return it, as in `fn nightly() -> Report`, or put `#[periodic]` above \
                        `#[delay_listener]`";
            errors.at(&sig.ident, text);
            None
        }
    }
}

/// `P` of `Job<P>` or `Batch<P>`.
fn argument_of(ty: &Type) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Job" || last.ident == "Batch")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(payload)) => Some(payload.clone()),
        _ => None,
    }
}

fn is_called(attribute: &Attribute, name: &str) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == name)
}

/// Removes the other `#[periodic]`s of an item. Returns their arguments.
fn take_others(attributes: &mut Vec<Attribute>) -> Vec<TokenStream> {
    let others = attributes.extract_if(.., |attribute| is_called(attribute, "periodic"));
    others
        .map(|attribute| match &attribute.meta {
            Meta::List(list) => list.tokens.clone(),
            Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
        })
        .collect()
}
