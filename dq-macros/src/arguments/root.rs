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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_code_means_the_named_crate_everywhere() {
        let settings = quote!(crate = work, topic = "a", timeout = "1s", on_timeout = "retry", ack = "on_claim");
        let payload = quote!(
            #[job(topic = "a", delay = "1s", crate = "work", id = "{0}")]
            struct Payload<T>(T);
        );
        let function = quote!(
            async fn f(job: Job<P>, a: A, b: &B, channel: Channel) -> Result<Decided, E> {}
        );
        let all = [
            crate::job::expand(payload),
            crate::listener::expand(&settings, function),
            crate::listener::expand(
                &settings,
                quote!(
                    struct L {
                        a: A,
                        #[inject(default)]
                        b: B,
                    }
                ),
            ),
            crate::broadcast::expand(
                &quote!(channels = ["a"], crate = "work"),
                quote!(
                    struct L(A);
                ),
            ),
        ];
        for code in all.map(|code| code.to_string()) {
            assert!(!code.contains("dq") && code.contains("work :: __private"), "{code}");
            assert!(!code.contains("compile_error"), "{code}");
        }
    }
}
