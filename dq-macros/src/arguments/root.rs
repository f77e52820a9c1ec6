//! The path to dq in generated code.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Path, parse_quote, parse_str};

use super::Argument;
use super::manifest::name_of_dq;
use crate::errors::Errors;

/// The path to dq: what `crate = ".."` says, or the name of the dependency.
#[derive(Debug, Clone)]
pub(crate) struct Root(Path);

impl Root {
    /// `::dq`, or what Cargo.toml calls it.
    pub(crate) fn usual() -> Self {
        let name = parse_str::<Ident>(&name_of_dq()).unwrap_or_else(|_| format_ident!("dq"));
        Self(parse_quote!(::#name))
    }

    /// What `crate = ".."` says. Its spans are the macro's, so that the user's lints skip generated code.
    pub(crate) fn named(argument: &Argument, errors: &mut Errors) -> Self {
        let Some(mut path) = argument.path(errors) else { return Self::usual() };
        for segment in &mut path.segments {
            segment.ident.set_span(segment.ident.span().resolved_at(Span::call_site()));
        }
        Self(path)
    }

    /// The same path with all its tokens at `place`.
    pub(crate) fn at(&self, place: Span) -> TokenStream {
        let respan = |mut token: TokenTree| {
            token.set_span(place);
            token
        };
        self.to_token_stream().into_iter().map(respan).collect()
    }
}

impl ToTokens for Root {
    /// The module of dq that generated code may use.
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let place = self.0.span().resolved_at(Span::call_site());
        self.0.to_tokens(tokens);
        tokens.extend(quote_spanned!(place=> ::__private));
    }
}
