//! The generic parameters that a listener may have.

use syn::ItemStruct;

use crate::errors::Errors;

/// Notes lifetimes, and generic parameters of a listener that registers itself. `method` registers it by hand.
pub(crate) fn check_generics(item: &ItemStruct, method: &str, register: bool, errors: &mut Errors) {
    let ItemStruct { ident, generics, .. } = item;
    if let Some(lifetime) = generics.lifetimes().next() {
        errors.at(lifetime, "a listener owns its fields: write `Arc<..>` instead of a reference");
    } else if register && !generics.params.is_empty() {
        errors.at(
            generics,
            format!(
                "a generic listener cannot register itself: add `register = false` here and call \
                 `.{method}::<{ident}<..>>()`"
            ),
        );
    }
}
