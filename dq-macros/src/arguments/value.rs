//! The value of a key, by the kind of its tokens.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Ident, Lit, LitBool, LitInt, LitStr, Path, Token, bracketed, token};

/// The value of a key.
#[derive(Debug)]
pub(crate) enum Value {
    /// No `=` follows the key, or nothing follows the `=`.
    Absent,
    /// A text in quotes.
    Text(LitStr),
    /// A whole number.
    Number(LitInt),
    /// `true` or `false`.
    Flag(LitBool),
    /// A path without quotes.
    Path(Path),
    /// `[a, b]`.
    List(token::Bracket, Vec<Value>),
    /// Anything else.
    Other(TokenStream),
}

impl Value {
    /// Reads the value behind `key =` up to the next comma.
    pub(super) fn read(input: ParseStream<'_>) -> syn::Result<Self> {
        if at_end(input) {
            return Ok(Self::Absent);
        }
        let ahead = input.fork();
        match Self::read_known(&ahead) {
            Ok(Some(_)) if at_end(&ahead) || ahead.peek(Ident::peek_any) => {
                Ok(Self::read_known(input)?.unwrap_or(Self::Absent))
            }
            _ => Ok(Self::Other(until_comma(input)?)),
        }
    }

    fn read_known(input: ParseStream<'_>) -> syn::Result<Option<Self>> {
        Ok(Some(if input.peek(Lit) {
            match input.parse()? {
                Lit::Str(text) => Self::Text(text),
                Lit::Int(number) => Self::Number(number),
                Lit::Bool(flag) => Self::Flag(flag),
                other => Self::Other(other.to_token_stream()),
            }
        } else if input.peek(token::Bracket) {
            let content;
            let bracket = bracketed!(content in input);
            let values = Punctuated::<Self, Token![,]>::parse_terminated_with(&content, Self::read)?;
            Self::List(bracket, values.into_iter().collect())
        } else if input.peek(Ident::peek_any) || input.peek(Token![::]) {
            Self::Path(Path::parse_mod_style(input)?)
        } else {
            return Ok(None);
        }))
    }
}

impl ToTokens for Value {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Absent => {}
            Self::Text(text) => text.to_tokens(tokens),
            Self::Number(number) => number.to_tokens(tokens),
            Self::Flag(flag) => flag.to_tokens(tokens),
            Self::Path(path) => path.to_tokens(tokens),
            Self::List(bracket, values) => {
                let values = values.iter();
                bracket.surround(tokens, |inner| inner.extend(quote::quote!(#(#values),*)));
            }
            Self::Other(other) => other.to_tokens(tokens),
        }
    }
}

fn at_end(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,])
}

/// Takes the tokens up to the next comma outside of brackets.
pub(super) fn until_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !at_end(input) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}
