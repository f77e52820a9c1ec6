//! The generated code of a broadcast listener.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ItemStruct;
use syn::ext::IdentExt;

use super::model::Model;
use crate::injection::Injection;

/// The struct, `Declared`, and its registration.
pub(super) fn of_struct(item: &ItemStruct, injection: &Injection, model: &Model, broken: bool) -> TokenStream {
    let (root, channels, name) = (&model.root, &model.channels, &item.ident);
    let text = name.unraw().to_string();
    let (generics, methods) = injection.implementation(&item.generics, root, broken);
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let registration = (model.register && !broken).then(|| {
        quote! {
            #[allow(deprecated)]
            const _: () = {
                #root::inventory::submit! { #root::Registration::broadcast::<#name>() }
            };
        }
    });
    quote! {
        #item

        #[automatically_derived]
        #[allow(deprecated)]
        impl #parameters #root::BroadcastDeclared for #name #arguments #bounds {
            const NAME: &'static ::core::primitive::str = #text;
            const DECLARED_AT: &'static ::core::primitive::str =
                ::core::concat!(::core::file!(), ":", ::core::line!());
            const CHANNELS: &'static [&'static ::core::primitive::str] = &[#(#channels),*];
            #methods
        }

        #registration
    }
}
