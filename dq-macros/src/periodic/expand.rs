//! The generated code of schedules.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;

use super::model::{Model, Times};
use super::parse::{Annotated, Payload};
use crate::constants;

/// The item, its schedules, and their registration. The struct of a function has its name: the names do not collide, because a
/// function is a value, and a struct with braces is only a type.
pub(super) fn code(annotated: &Annotated, models: &[Model], broken: bool) -> TokenStream {
    let Annotated { item, name, visibility, payload } = annotated;
    let Some(root) = models.first().map(|model| &model.root).filter(|_| !broken) else { return quote!(#item) };
    let holder = matches!(payload, Payload::Returned { .. }).then(|| {
        let doc = format!("The schedules whose payload the function `{}` makes.", name.unraw());
        quote! {
            #[doc = #doc]
            #[allow(non_camel_case_types, dead_code)]
            #[derive(::core::fmt::Debug)]
            #visibility struct #name {}
        }
    });
    let schedules = models.iter().map(|model| schedule(annotated, model));
    let registration = models.iter().any(|model| model.register).then(|| {
        quote! {
            #root::inventory::submit! { #root::PeriodicSet(<#name as #root::HasSchedules>::SCHEDULES) }
        }
    });
    quote! {
        #item

        #holder

        #[allow(deprecated)]
        const _: () = {
            #[automatically_derived]
            impl #root::HasSchedules for #name {
                const SCHEDULES: &'static [#root::Periodic] = &[#(#schedules),*];
            }

            #registration
        };
    }
}

fn schedule(annotated: &Annotated, model: &Model) -> TokenStream {
    let Model { root, name, jitter, start, end, revision, .. } = model;
    let (ty, payload) = payload(annotated, model);
    let times = match &model.times {
        Times::Cron { line, zone, skipped, repeated } => {
            quote!(#root::PeriodicTimes::Cron(#line, #zone, #skipped, #repeated))
        }
        Times::Every(interval) => {
            let interval = constants::duration(*interval);
            quote!(#root::PeriodicTimes::Every(#interval))
        }
        Times::Unknown => quote!(#root::PeriodicTimes::Every(::core::time::Duration::MAX)),
    };
    let on_missed = match model.on_missed {
        Some("skip") => quote!(Skip),
        Some("all") => quote!(All),
        _ => quote!(Once),
    };
    let overlap = if model.overlap == Some("skip") { quote!(Skip) } else { quote!(Allow) };
    let (jitter, start, end) = (constants::duration(*jitter), constants::option(*start), constants::option(*end));
    quote! {
        #root::Periodic {
            on_missed: #root::OnMissed::#on_missed,
            overlap: #root::Overlap::#overlap,
            jitter: #jitter,
            start: #start,
            end: #end,
            revision: #revision,
            ..#root::Periodic::new::<#ty>(
                #name,
                ::core::concat!(::core::file!(), ":", ::core::line!()),
                #times,
                #payload,
            )
        }
    }
}

/// The type of the payload, and what makes it.
fn payload(annotated: &Annotated, model: &Model) -> (TokenStream, TokenStream) {
    let (root, name) = (&model.root, &annotated.name);
    let default_of = |ty: TokenStream| {
        let text = "`#[periodic]` above a listener needs a payload that is `Default`: derive it, or put `#[periodic]` above a function \
                    that returns the payload";
        let make = quote! {
            #root::PayloadOf::Start({
                #[allow(unused_imports)]
                use #root::NoDefault as _;
                match #root::DefaultPayload::<#ty>::MAKE {
                    ::core::option::Option::Some(make) => make,
                    ::core::option::Option::None => ::core::panic!(#text),
                }
            })
        };
        (ty, make)
    };
    match &annotated.payload {
        Payload::OfListener => default_of(quote!(<#name as #root::DelayListener>::Job)),
        Payload::Default(ty) => default_of(quote!(#ty)),
        Payload::Returned { ty, is_async } => {
            let call = if *is_async { quote!(#name().await) } else { quote!(#name()) };
            (quote!(#ty), quote!(#root::PayloadOf::Tick(|| #root::made::<#ty>(async { #call }))))
        }
    }
}
