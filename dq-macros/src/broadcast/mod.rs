//! `#[broadcast_listener]`: parse → model → expand.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ItemStruct;

use crate::completion;
use crate::errors::Errors;
use crate::injection::Injection;

mod expand;
mod model;

use model::Model;

/// The struct and its implementations; after a mistake, the struct, the mistakes and stand-ins for the implementations.
pub(crate) fn expand(arguments: &TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let code = match syn::parse2::<ItemStruct>(item.clone()) {
        Ok(mut listener) => {
            let injection = Injection::read(&mut listener.fields, &mut errors);
            let model = Model::check(arguments.clone(), &listener, &mut errors);
            let keys = completion::of_keys("broadcast_listener", arguments, &model.root);
            let code = expand::of_struct(&listener, &injection, &model, errors.any());
            quote!(#code #keys)
        }
        Err(_) => {
            errors.at(&item, "`#[broadcast_listener]` goes above a struct");
            item
        }
    };
    let errors = errors.into_tokens();
    quote!(#code #errors)
}
