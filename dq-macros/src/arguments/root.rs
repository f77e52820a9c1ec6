//! Where dq is.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Path;

use super::Argument;
use crate::errors::Errors;

/// The path to dq: what `crate = ".."` says, or `::dq`.
#[derive(Debug, Clone)]
pub(crate) struct Root(Option<Path>);

impl Root {
    /// `::dq`.
    pub(crate) const USUAL: Self = Self(None);

    /// What `crate = ".."` says. Its spans are the macro's, so that no lint of the user's looks at generated code.
    pub(crate) fn named(argument: &Argument, errors: &mut Errors) -> Self {
        let Some(mut path) = argument.path(errors) else { return Self::USUAL };
        for segment in &mut path.segments {
            segment.ident.set_span(segment.ident.span().resolved_at(Span::call_site()));
        }
        Self(Some(path))
    }
}

impl ToTokens for Root {
    /// The module that generated code may touch.
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match &self.0 {
            Some(path) => path.to_tokens(tokens),
            None => tokens.extend(quote!(::dq)),
        }
        tokens.extend(quote!(::__private));
    }
}
