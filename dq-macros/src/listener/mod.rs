//! `#[delay_listener]`: parse (a struct or a function) → model (its settings) → expand.

use proc_macro2::TokenStream;
use quote::quote;

use crate::completion;
use crate::errors::Errors;

mod expand;
mod function;
mod model;
mod parse;

use model::Model;
use parse::Annotated;

/// The item and its implementations; after a mistake, the item, the mistakes and stand-ins for the implementations.
pub(crate) fn expand(arguments: &TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let code = match parse::annotated(item.clone(), &mut errors) {
        Some(annotated) => {
            let model = Model::check(arguments.clone(), &annotated, &mut errors);
            let keys = completion::of_keys("delay_listener", arguments, &model.root);
            let code = match annotated {
                Annotated::Struct(listener) => expand::of_struct(&listener, &model, errors.any()),
                Annotated::Function(function) => expand::of_function(&function, &model, errors.any()),
            };
            quote!(#code #keys)
        }
        None => item,
    };
    let errors = errors.into_tokens();
    quote!(#code #errors)
}
