//! Which items, statements and arms the tests' build contains.

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Token};

/// Whether code with these attributes is part of the library as the tests link it: with all features, on Linux.
pub(super) fn is_compiled(attributes: &[Attribute]) -> bool {
    let of_cfg = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    of_cfg.filter_map(|attribute| attribute.parse_args::<Meta>().ok()).all(|meta| holds(&meta))
}

/// Whether this is a function that a test runner calls.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "test"))
}

fn holds(meta: &Meta) -> bool {
    let parts = |list: &syn::MetaList| list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok();
    match meta {
        Meta::Path(path) => path.is_ident("unix") || path.is_ident("debug_assertions"),
        Meta::NameValue(pair) => {
            let Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) = &pair.value else { return false };
            pair.path.is_ident("feature") || (pair.path.is_ident("target_os") && value.value() == "linux")
        }
        Meta::List(list) => {
            let Some(parts) = parts(list) else { return false };
            match list.path.get_ident().map(ToString::to_string).as_deref() {
                Some("not") => !parts.iter().any(holds),
                Some("any") => parts.iter().any(holds),
                Some("all") => parts.iter().all(holds),
                _ => false,
            }
        }
    }
}
