//! `delay!("15m")`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;

use crate::arguments;
use crate::constants;
use crate::errors::Errors;

/// The duration as a constant expression; after a mistake, the mistake and a duration of zero.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let duration = match syn::parse2::<LitStr>(input.clone()) {
        Ok(text) => arguments::duration(&text, &mut errors),
        Err(_) => {
            errors.at(input, "expected a string in quotes with a number and a unit, for example `delay!(\"15m\")`");
            None
        }
    };
    let duration = constants::duration(duration.unwrap_or_default());
    let errors = errors.into_tokens();
    quote!({ #errors #duration })
}
