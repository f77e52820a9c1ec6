//! Where dq is.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

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

impl Root {
    /// The same, as if it was written at `place`.
    pub(crate) fn at(&self, place: Span) -> TokenStream {
        let respan = |mut token: TokenTree| {
            token.set_span(place);
            token
        };
        self.to_token_stream().into_iter().map(respan).collect()
    }
}

impl ToTokens for Root {
    /// The module that generated code may touch.
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let place = match &self.0 {
            Some(path) => {
                path.to_tokens(tokens);
                path.span().resolved_at(Span::call_site())
            }
            None => {
                tokens.extend(quote!(::dq));
                Span::call_site()
            }
        };
        tokens.extend(quote_spanned!(place=> ::__private));
    }
}
