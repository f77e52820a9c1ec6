//! Completion of keys in an editor.
//!
//! rust-analyzer completes and documents identifiers that resolve to an item. So under rust-analyzer, and only there,
//! each identifier that begins an argument becomes a path into `dq::__private::keys`, where every key is a documented
//! empty module.

use std::sync::LazyLock;

use proc_macro2::{TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::Ident;

use crate::arguments::Root;

static IN_EDITOR: LazyLock<bool> =
    LazyLock::new(|| std::env::current_exe().is_ok_and(|program| program.to_string_lossy().contains("rust-analyzer")));

/// The tokens to emit beside the item; none under a compiler.
pub(crate) fn of_keys(attribute: &str, arguments: &TokenStream, root: &Root) -> TokenStream {
    if *IN_EDITOR { uses(attribute, arguments, root) } else { TokenStream::new() }
}

fn uses(attribute: &str, arguments: &TokenStream, root: &Root) -> TokenStream {
    let module = format_ident!("{attribute}");
    let keys = leading_identifiers(arguments.clone());
    quote!(#(const _: () = { use #root::keys::#module::#keys as _; };)*)
}

fn leading_identifiers(tokens: TokenStream) -> Vec<Ident> {
    let mut leading = true;
    let mut found = Vec::new();
    for token in tokens {
        if let TokenTree::Ident(ident) = &token
            && leading
            && ident != "crate"
        {
            found.push(ident.clone());
        }
        leading = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',');
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identifier_that_begins_an_argument_is_a_key_even_if_the_rest_is_broken() {
        let found = leading_identifiers(quote!(topic = path, con, = 5, crate = work, timeout "5s" retry));
        assert_eq!(found, ["topic", "con", "timeout"]);
        let emitted = uses("delay_listener", &quote!(con), &Root::usual()).to_string();
        assert!(emitted.contains("keys :: delay_listener :: con as _"), "{emitted}");
    }
}
