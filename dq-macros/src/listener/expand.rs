//! Writes the implementations of a listener.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Generics, Ident, LitStr, ReturnType, Visibility};

use super::function::{Function, Parameter};
use super::model::Model;
use super::parse::Listener;
use crate::arguments::Root;
use crate::constants;
use crate::injection::{Field, Injection};

/// A struct: itself, `Declared`, and its registration.
pub(super) fn of_struct(listener: &Listener, model: &Model, broken: bool) -> TokenStream {
    let Listener { item, injection } = listener;
    let declared = declared(&item.ident, &item.generics, injection, model, broken);
    let registration = registration(&item.ident, model, broken);
    quote!(#item #declared #registration)
}

/// A function: itself, a struct of the same name whose fields are the dependencies, and what a struct gets.
///
/// Types and values are separate name spaces; with braces the struct takes no value's name.
pub(super) fn of_function(function: &Function, model: &Model, broken: bool) -> TokenStream {
    let Function { item, injection, .. } = function;
    let name = &item.sig.ident;
    let private = Visibility::Inherited;
    let visibility = if model.register { &private } else { &item.vis };
    let fields = injection.fields.iter().filter(|_| !broken).map(|field| {
        let (cfg, name, ty) = (&field.cfg, &field.name, &field.ty);
        quote!(#(#cfg)* #name: #ty)
    });
    let text = name.unraw().to_string();
    let doc = format!("The listener that runs the function `{text}`.");
    let declared = declared(name, &Generics::default(), injection, model, broken);
    let handler = handler(function, model, broken);
    let registration = registration(name, model, broken);
    quote! {
        #[allow(clippy::unused_async)]
        #item

        #[doc = #doc]
        #[allow(non_camel_case_types)]
        #visibility struct #name { #(#fields),* }

        #[automatically_derived]
        impl ::core::fmt::Debug for #name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(#text)
            }
        }

        #declared
        #handler
        #registration
    }
}

/// `Declared`; when something is broken, one that compiles and is never used.
fn declared(name: &Ident, generics: &Generics, injection: &Injection, model: &Model, broken: bool) -> TokenStream {
    let root = &model.root;
    let text = name.unraw().to_string();
    let topic = constants::option(model.topic.as_ref().filter(|_| !broken));
    let settings = settings(model);
    let (generics, body) = injection.implementation(generics, root, broken);
    let (parameters, arguments, bounds) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #parameters #root::Declared for #name #arguments #bounds {
            const NAME: &'static str = #text;
            const DECLARED_AT: &'static str = ::core::concat!(::core::file!(), ":", ::core::line!());
            const TOPIC: ::core::option::Option<&'static str> = #topic;
            const SETTINGS: #root::ListenerSettings = #settings;
            #body
        }
    }
}

fn settings(model: &Model) -> TokenStream {
    let root = &model.root;
    let concurrency = model.concurrency.map(|number| quote!(.with_concurrency(#number)));
    let timeout = model.timeout.map(constants::duration).map(|timeout| quote!(.with_timeout(#timeout)));
    let on_timeout = model.on_timeout.map(|choice| {
        let choice = if choice == "retry" { quote!(Retry) } else { quote!(Immediate) };
        quote!(.with_on_timeout(#root::OnTimeout::#choice))
    });
    let retry = model.retry.as_ref().map(|policy| quote!(.with_retry(#policy)));
    let ack = model.ack.map(|choice| {
        let choice = if choice == "on_return" { quote!(OnReturn) } else { quote!(OnClaim) };
        quote!(.with_ack(#root::AckMode::#choice))
    });
    let max_crashes = model.max_crashes.map(|number| quote!(.with_max_crashes(#number)));
    quote!(#root::ListenerSettings::NONE #concurrency #timeout #on_timeout #retry #ack #max_crashes)
}

/// The registration. What the compiler says of a wrong topic points to the topic, of a missing handler to the name.
fn registration(name: &Ident, model: &Model, broken: bool) -> TokenStream {
    if broken || !model.register {
        return TokenStream::new();
    }
    let root = &model.root;
    let place = model.topic.as_ref().map_or_else(Span::call_site, LitStr::span);
    let root_there = root.at(place);
    let make = quote_spanned!(place=> #root_there::Registration::delay::<#name>());
    quote! {
        #root::inventory::submit! { #make }
    }
}

/// `DelayListener` for the struct of a function; nothing when the payload is not known.
fn handler(function: &Function, model: &Model, broken: bool) -> Option<TokenStream> {
    let root = &model.root;
    let (name, payload) = (&function.item.sig.ident, function.payload.as_ref()?);
    let body =
        if broken { quote!({ ::core::mem::drop((job, channel)); #root::stand_in() }) } else { call(function, root) };
    let final_retry = model.final_retry.as_ref().filter(|_| !broken).map(|path| {
        quote! {
            async fn final_retry(&self, job: #root::Job<#payload>, cause: &#root::Failure) {
                #path(job, cause).await
            }
        }
    });
    let place = payload.span().resolved_at(Span::call_site());
    let job = quote_spanned!(place=> type Job = #payload;);
    Some(quote! {
        #[automatically_derived]
        impl #root::DelayListener for #name {
            #job

            async fn on_due(
                &self,
                job: #root::Job<#payload>,
                channel: #root::Channel,
            ) -> ::core::result::Result<#root::Decided, #root::JobError> #body

            #final_retry
        }
    })
}

/// What a run of the function gives, as the handler's result. Mistakes of types point to the type it returns, or to the
/// type of a dependency.
fn call(function: &Function, root: &Root) -> TokenStream {
    let sig = &function.item.sig;
    let place = match &sig.output {
        ReturnType::Type(_, ty) => ty.span().resolved_at(Span::call_site()),
        ReturnType::Default => Span::call_site(),
    };
    let mut name = sig.ident.clone();
    name.set_span(place);
    let arguments = function.parameters.iter().map(|parameter| match parameter {
        Parameter::Job => quote!(job),
        Parameter::Channel => quote!(channel),
        Parameter::Dependency { cfg, index, borrowed } => {
            let Field { name, ty, .. } = &function.injection.fields[*index];
            let place = ty.span().resolved_at(Span::call_site());
            if *borrowed {
                quote!(#(#cfg)* &self.#name)
            } else {
                quote_spanned!(place=> #(#cfg)* ::core::clone::Clone::clone(&self.#name))
            }
        }
    });
    let returned = quote_spanned!(place=> #name(#(#arguments),*).await);
    if function.decides() {
        quote!({ #root::Decides::decided(#returned) })
    } else {
        quote!({ #root::Acks::acked(#returned, channel) })
    }
}
