//! The fields of a listener: injected values, found by their type, and the listener's own state; and its generic parameters.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Fields, Generics, Ident, ItemStruct, Type, WherePredicate, parse_quote};

use crate::arguments::Root;
use crate::errors::{Errors, nearest};

/// The form of a struct.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Named,
    Tuple,
    Unit,
}

/// A field of a listener.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its `#[cfg(..)]`s: an attribute macro runs before the compiler removes fields.
    pub(crate) cfg: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) source: Source,
}

/// Where the value of a field comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The injector finds it by its type.
    Injected,
    /// `#[inject(default)]`: `Default` makes it.
    Default,
    /// A parameter of a function that may be dq's channel: its type decides.
    Parameter,
}

/// The fields of a listener.
#[derive(Debug)]
pub(crate) struct Injection {
    pub(crate) shape: Shape,
    pub(crate) fields: Vec<Field>,
}

/// The `#[cfg(..)]`s among these attributes.
pub(crate) fn cfg_of(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

impl Injection {
    /// Reads the fields and removes their `#[inject(..)]`.
    pub(crate) fn read(fields: &mut Fields, errors: &mut Errors) -> Self {
        let shape = match fields {
            Fields::Named(_) => Shape::Named,
            Fields::Unnamed(_) => Shape::Tuple,
            Fields::Unit => Shape::Unit,
        };
        let read = |(index, field): (usize, &mut syn::Field)| {
            let source = take_inject(&mut field.attrs, errors);
            if let Type::Reference(reference) = &mut field.ty
                && reference.lifetime.is_none()
            {
                errors.at(&*reference, "a listener owns its fields: write `Arc<..>` instead of a reference");
                reference.lifetime = Some(parse_quote!('static)); // otherwise the compiler asks for a lifetime, too
            }
            let name = field.ident.clone().unwrap_or_else(|| format_ident!("_{index}"));
            Field { cfg: cfg_of(&field.attrs), name, ty: field.ty.clone(), source }
        };
        Self { shape, fields: fields.iter_mut().enumerate().map(read).collect() }
    }

    /// The list of the dependencies.
    fn dependencies(&self, root: &Root) -> TokenStream {
        let injected = self.fields.iter().filter(|field| field.source != Source::Default);
        let dependencies = injected.map(|Field { cfg, name, ty, source }| {
            let (name, written) = (name.unraw().to_string(), written(ty));
            let name = name.trim_start_matches('_');
            let name = if name.is_empty() { "_" } else { name };
            let dependency = if *source == Source::Parameter {
                {
                    let parameter = parameter(ty, root);
                    quote_spanned!(at(ty)=> #parameter::dependency(#name, #written))
                }
            } else {
                quote!(::core::option::Option::Some(#root::Dependency::of::<#ty>(#name, #written)))
            };
            quote!(#(#cfg)* #dependency)
        });
        quote!(#root::dependencies([#(#dependencies),*]))
    }

    /// The expression that makes the listener from an injector.
    fn make(&self, injector: &Ident, root: &Root) -> TokenStream {
        let values = self.fields.iter().map(|Field { cfg, name, ty, source }| {
            let value = match source {
                Source::Default => quote!(<#ty as ::core::default::Default>::default()),
                Source::Injected => quote!(#root::Injector::get::<#ty>(#injector)?),
                Source::Parameter => {
                    let parameter = parameter(ty, root);
                    quote_spanned!(at(ty)=> #parameter::inject(#injector)?)
                }
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

    /// The generics of an impl of `Declared`, and its `dependencies` and `inject`. After a mistake (`broken`) the two
    /// compile and are never called.
    pub(crate) fn implementation(&self, generics: &Generics, root: &Root, broken: bool) -> (Generics, TokenStream) {
        let mut generics = generics.clone();
        let injector = local("injector");
        let (dependencies, value) = if broken {
            (quote!(#root::dependencies([])), quote!(#root::stand_in()))
        } else {
            let bounds = self.bounds(&generics, root);
            if !bounds.is_empty() {
                generics.make_where_clause().predicates.extend(bounds);
            }
            let value = self.make(&injector, root);
            (self.dependencies(root), quote!(::core::result::Result::Ok(#value)))
        };
        let methods = quote! {
            fn dependencies() -> #root::Vec<#root::Dependency> { #dependencies }

            fn inject(#injector: &#root::Injector) -> ::core::result::Result<Self, #root::Missing> {
                let _ = #injector;
                #value
            }
        };
        (generics, methods)
    }

    /// The bounds that fields of a generic type need.
    fn bounds(&self, generics: &Generics, root: &Root) -> Vec<WherePredicate> {
        let parameters: Vec<_> = generics.type_params().map(|parameter| &parameter.ident).collect();
        let generic = self.fields.iter().filter(|field| {
            field.cfg.is_empty() && parameters.iter().any(|name| mentions(field.ty.to_token_stream(), *name))
        });
        let bound = |Field { ty, source, .. }: &Field| match source {
            Source::Default => parse_quote!(#ty: ::core::default::Default),
            Source::Injected | Source::Parameter => parse_quote!(#ty: #root::Injectable),
        };
        generic.map(bound).collect()
    }
}

/// The place of a type, for generated code that uses it.
pub(crate) fn at(ty: &Type) -> Span {
    ty.span().resolved_at(Span::call_site())
}

/// `Parameter` of a type, at the place of the type.
pub(crate) fn parameter(ty: &Type, root: &Root) -> TokenStream {
    let root = root.at(at(ty));
    quote_spanned!(at(ty)=> <#ty as #root::Parameter>)
}

/// Whether this identifier is among the tokens.
pub(crate) fn mentions<T: ?Sized>(tokens: TokenStream, name: &T) -> bool
where
    Ident: PartialEq<T>,
{
    tokens.into_iter().any(|token| match token {
        proc_macro2::TokenTree::Ident(ident) => ident == *name,
        proc_macro2::TokenTree::Group(group) => mentions(group.stream(), name),
        _ => false,
    })
}

/// Removes `#[inject(default)]` and reads it.
fn take_inject(attributes: &mut Vec<Attribute>, errors: &mut Errors) -> Source {
    let mut source = Source::Injected;
    for inject in attributes.extract_if(.., |attribute| attribute.path().is_ident("inject")) {
        match inject.parse_args::<Ident>() {
            Ok(word) if word == "default" => source = Source::Default,
            Ok(word) if nearest(&word.to_string(), ["default"]).is_some() => {
                errors.at(&word, format!("unknown key `{word}`: did you mean `default`?"));
            }
            _ => errors.at(
                &inject.meta,
                "write `#[inject(default)]` above the listener's own state; dq fills every other field by its type, without an \
                 attribute",
            ),
        }
    }
    source
}

/// The type as people write it: without the spaces that a token stream puts between tokens.
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

/// A local that no name in the user's code can refer to, and that refers to nothing in the user's code.
///
/// Hygiene keeps a function listener apart from a local of its name. A constant of that name would still turn the
/// local's pattern into a comparison, hence the underscores.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(&format!("__{name}"), Span::mixed_site())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_type_is_what_the_user_wrote() {
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
