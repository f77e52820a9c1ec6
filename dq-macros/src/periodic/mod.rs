//! `#[periodic]`: parse (a listener or a function) → model (the schedules) → expand.
//!
//! The first attribute above an item reads the others of its name too, so that the item has one list of schedules.

use proc_macro2::TokenStream;
use quote::quote;

use crate::completion;
use crate::errors::Errors;

mod expand;
mod model;
mod parse;

use model::Model;

/// The item and its schedules; after a mistake, the item and the mistakes.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let Some((annotated, others)) = parse::annotated(item.clone(), &mut errors) else {
        let errors = errors.into_tokens();
        return quote!(#item #errors);
    };
    let mut models: Vec<Model> = Vec::new();
    let mut keys = TokenStream::new();
    for tokens in [arguments].into_iter().chain(others) {
        let model = Model::check(tokens.clone(), &annotated.name, &mut errors);
        if models.iter().any(|other| other.name.value() == model.name.value()) {
            let text = format!(
                "the schedule `{}` is defined twice: write `name = \"..\"` with another name",
                model.name.value()
            );
            errors.at(&model.name, text);
        }
        keys.extend(completion::of_keys("periodic", &tokens, &model.root));
        models.push(model);
    }
    let code = expand::code(&annotated, &models, errors.any());
    let errors = errors.into_tokens();
    quote!(#code #keys #errors)
}
