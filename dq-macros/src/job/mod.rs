//! `#[derive(DelayJob)]`: parse (the `#[job(..)]` of the type and of its fields) → model → expand.

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::completion;
use crate::errors::Errors;

mod expand;
mod id;
mod model;
mod parse;

/// The implementation; after a mistake, the mistakes and a stand-in for it.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let code = match syn::parse2::<DeriveInput>(item) {
        Ok(input) => {
            let parsed = parse::read(&input, &mut errors);
            let model = model::Model::check(&parsed, &input, &mut errors);
            let keys = completion::of_keys("job", &parsed.tokens, &model.root);
            let code = expand::of_payload(&input, &model);
            quote!(#code #keys)
        }
        Err(error) => {
            errors.add(error);
            TokenStream::new()
        }
    };
    let errors = errors.into_tokens();
    quote!(#code #errors)
}
