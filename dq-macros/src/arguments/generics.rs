//! What a listener may be generic over.

use syn::{Generics, Ident};

use crate::errors::Errors;

/// Notes lifetimes, and parameters of a listener that registers itself.
pub(crate) fn check_generics(name: &Ident, generics: &Generics, register: bool, errors: &mut Errors) {
    if let Some(lifetime) = generics.lifetimes().next() {
        errors.at(lifetime, "a listener owns what it needs: `Arc<..>` instead of a borrow");
    } else if register && !generics.params.is_empty() {
        errors.at(
            generics,
            format!(
                "a generic listener cannot register itself: add `register = false` here and call \
                 `.listener::<{name}<..>>()`"
            ),
        );
    }
}
