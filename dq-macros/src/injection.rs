//! What a listener is made of: fields that are injected by their type, and its own state.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, Fields, Generics, Ident, Type, WherePredicate, parse_quote};

use crate::arguments::Root;
use crate::errors::{Errors, nearest};

/// How a struct is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Named,
    Tuple,
    Unit,
}

/// A field of a listener.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its `#[cfg(..)]`: an attribute sees what the compiler would have stripped.
    pub(crate) cfg: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// `#[inject(default)]`.
    pub(crate) default: bool,
}

/// The fields of a listener.
#[derive(Debug)]
pub(crate) struct Injection {
    pub(crate) shape: Shape,
    pub(crate) fields: Vec<Field>,
}

/// The attributes that keep something in or out.
pub(crate) fn cfg_of(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

impl Injection {
    /// Reads the fields, and takes `#[inject(..)]` away from them.
    pub(crate) fn read(fields: &mut Fields, errors: &mut Errors) -> Self {
        let shape = match fields {
            Fields::Named(_) => Shape::Named,
            Fields::Unnamed(_) => Shape::Tuple,
            Fields::Unit => Shape::Unit,
        };
        let read = |(index, field): (usize, &mut syn::Field)| {
            let default = take_inject(&mut field.attrs, errors);
            if let Type::Reference(reference) = &mut field.ty
                && reference.lifetime.is_none()
            {
                errors.at(&*reference, "a listener owns what it needs: `Arc<..>` instead of a reference");
                reference.lifetime = Some(parse_quote!('static)); // or the compiler asks for a lifetime
            }
            let name = field.ident.clone().unwrap_or_else(|| format_ident!("_{index}"));
            Field { cfg: cfg_of(&field.attrs), name, ty: field.ty.clone(), default }
        };
        Self { shape, fields: fields.iter_mut().enumerate().map(read).collect() }
    }

    fn injected(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| !field.default)
    }

    /// The list of what is injected.
    fn dependencies(&self, root: &Root) -> TokenStream {
        let dependencies = self.injected().map(|Field { cfg, name, ty, .. }| {
            let (name, written) = (name.unraw().to_string(), written(ty));
            let (name, of) = (name.trim_start_matches('_'), quote!(#root::Dependency::of::<#ty>));
            let name = if name.is_empty() { "_" } else { name };
            quote!(#(#cfg)* #of(#name, #written))
        });
        quote!(::std::vec::Vec::from([#(#dependencies),*]))
    }

    /// The expression that makes the listener from an `injector`.
    fn make(&self, root: &Root) -> TokenStream {
        let values = self.fields.iter().map(|Field { cfg, name, ty, default }| {
            let value = if *default {
                quote!(<#ty as ::core::default::Default>::default())
            } else {
                quote!(#root::Injector::get::<#ty>(injector)?)
            };
            match self.shape {
                Shape::Named => quote!(#(#cfg)* #name: #value),
                Shape::Tuple | Shape::Unit => quote!(#(#cfg)* #value),
            }
        });
        match self.shape {
            Shape::Named => quote!(Self { #(#values),* }),
            Shape::Tuple => quote!(Self(#(#values),*)),
            Shape::Unit => quote!(Self),
        }
    }

    /// `dependencies` and `inject` of a `Declared`, and the generics of its impl; when something is `broken`, functions
    /// that compile and are never called.
    pub(crate) fn implementation(&self, generics: &Generics, root: &Root, broken: bool) -> (Generics, TokenStream) {
        let mut generics = generics.clone();
        let (dependencies, value) = if broken {
            (quote!(::std::vec::Vec::new()), quote!(#root::stand_in()))
        } else {
            let bounds = self.bounds(&generics, root);
            if !bounds.is_empty() {
                generics.make_where_clause().predicates.extend(bounds);
            }
            let value = self.make(root);
            (self.dependencies(root), quote!(::core::result::Result::Ok(#value)))
        };
        let body = quote! {
            fn dependencies() -> ::std::vec::Vec<#root::Dependency> { #dependencies }

            #[allow(unused_variables)]
            fn inject(injector: &#root::Injector) -> ::core::result::Result<Self, #root::Missing> { #value }
        };
        (generics, body)
    }

    /// What fields of a generic type ask of it.
    fn bounds(&self, generics: &Generics, root: &Root) -> Vec<WherePredicate> {
        let parameters: Vec<_> = generics.type_params().map(|parameter| &parameter.ident).collect();
        let generic = self.fields.iter().filter(|field| {
            field.cfg.is_empty() && parameters.iter().any(|name| mentions(field.ty.to_token_stream(), name))
        });
        let bound = |Field { ty, default, .. }: &Field| match default {
            true => parse_quote!(#ty: ::core::default::Default),
            false => parse_quote!(#ty: #root::Injectable),
        };
        generic.map(bound).collect()
    }
}

fn mentions(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        proc_macro2::TokenTree::Ident(ident) => ident == *name,
        proc_macro2::TokenTree::Group(group) => mentions(group.stream(), name),
        _ => false,
    })
}

/// Takes `#[inject(default)]` away; whether it was there.
fn take_inject(attributes: &mut Vec<Attribute>, errors: &mut Errors) -> bool {
    let mut default = false;
    for inject in attributes.extract_if(.., |attribute| attribute.path().is_ident("inject")) {
        match inject.parse_args::<Ident>() {
            Ok(word) if word == "default" => default = true,
            Ok(word) if nearest(&word.to_string(), ["default"]).is_some() => {
                errors.at(&word, format!("Unknown key `{word}`. Did you mean `default`?"));
            }
            _ => errors.at(
                &inject.meta,
                "write `#[inject(default)]` for state of the listener's own; any other field needs no attribute, it is \
                 injected by its type",
            ),
        }
    }
    default
}

/// The type as people write it: tokens without the spaces that a token stream puts between them.
pub(crate) fn written(ty: &Type) -> String {
    let mut text = String::new();
    for word in ty.to_token_stream().to_string().split(' ') {
        let name = |c: char| c.is_alphanumeric() || c == '_';
        let apart = text.ends_with(',') || text.ends_with('+') || word == "+" || text.ends_with(';');
        let names = text.ends_with(name) && word.starts_with(|c| name(c) || c == '\'');
        if apart || names || text.ends_with("->") || word == "->" {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_reads_as_it_was_written() {
        for text in [
            "Arc<dyn Notify + Send>",
            "std::sync::Arc<Mutex<Vec<u8>>>",
            "(u8, &'static str)",
            "[u8; 4]",
            "fn(u8) -> u16",
            "dyn Fn(&u8) -> Box<dyn Any + 'static>",
        ] {
            assert_eq!(written(&syn::parse_str(text).unwrap()), text);
        }
    }
}
