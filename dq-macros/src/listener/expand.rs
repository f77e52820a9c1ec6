//! The generated code of a listener.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Generics, Ident, LitStr, ReturnType};

use super::function::{Function, Parameter};
use super::model::Model;
use super::parse::Listener;
use crate::arguments::Root;
use crate::constants;
use crate::injection::{Field, Injection, Source, at, local, parameter};

/// The struct, its `Declared`, and its registration.
pub(super) fn of_struct(listener: &Listener, model: &Model, broken: bool) -> TokenStream {
    let Listener { item, injection } = listener;
    let declared = declared(&item.ident, &item.generics, injection, model, None, broken);
    let registration = registration(&item.ident, model, model.has_batch(), broken);
    quote!(#item #declared #registration)
}

/// The function, a struct of the same name whose fields are the dependencies, and the implementations for that struct.
///
/// The names do not collide: a function is a value, a struct with braces is only a type.
pub(super) fn of_function(function: &Function, model: &Model, broken: bool) -> TokenStream {
    let Function { item, injection, .. } = function;
    let name = &item.sig.ident;
    let visibility = &item.vis;
    let fields = injection.fields.iter().filter(|_| !broken).map(|Field { cfg, name, ty, source }| match source {
        Source::Parameter => quote!(#(#cfg)* #name: ::core::option::Option<#ty>),
        Source::Injected | Source::Default => quote!(#(#cfg)* #name: #ty),
    });
    let text = name.unraw().to_string();
    let doc = format!("The listener that runs the function `{text}`.");
    let no_retry_delay = quote!(
        const MAY_HAVE_RETRY_DELAY: ::core::primitive::bool = false;
    );
    let declared = declared(name, &Generics::default(), injection, model, Some(&no_retry_delay), broken);
    let handler = handler(function, model, broken);
    let registration = registration(name, model, function.takes_batches, broken);
    let formatter = local("formatter");
    quote! {
        #[allow(clippy::unused_async)]
        #item

        #[doc = #doc]
        #[allow(non_camel_case_types)]
        #visibility struct #name { #(#fields),* }

        #[automatically_derived]
        impl ::core::fmt::Debug for #name {
            fn fmt(&self, #formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #formatter.write_str(#text)
            }
        }

        #declared
        #handler
        #registration
    }
}

/// `Declared`; after a mistake (`broken`), one that compiles and that nothing uses.
fn declared(
    name: &Ident,
    generics: &Generics,
    injection: &Injection,
    model: &Model,
    more: Option<&TokenStream>,
    broken: bool,
) -> TokenStream {
    let root = &model.root;
    let text = name.unraw().to_string();
    let topic = constants::option(model.topic.as_ref().filter(|_| !broken));
    let (keys, values): (Vec<_>, Vec<_>) = model.settings.iter().cloned().unzip();
    let (generics, methods) = injection.implementation(generics, root, broken);
    let (parameters, arguments, bounds) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #parameters #root::Declared for #name #arguments #bounds {
            const NAME: &'static ::core::primitive::str = #text;
            const DECLARED_AT: &'static ::core::primitive::str =
                ::core::concat!(::core::file!(), ":", ::core::line!());
            const TOPIC: ::core::option::Option<&'static ::core::primitive::str> = #topic;
            const SETTINGS: &'static [(&'static ::core::primitive::str, &'static ::core::primitive::str)] =
                &[#((#keys, #values)),*];
            #more
            #methods
        }
    }
}

/// The registration. Its places make the compiler report a wrong topic at the topic, a missing handler at the name.
fn registration(name: &Ident, model: &Model, takes_batches: bool, broken: bool) -> TokenStream {
    if broken || !model.register {
        return TokenStream::new();
    }
    let root = &model.root;
    let place = model.topic.as_ref().map_or_else(Span::call_site, LitStr::span);
    let root_there = root.at(place);
    let make = if takes_batches {
        quote_spanned!(place=> #root_there::Registration::batch::<#name>())
    } else {
        quote_spanned!(place=> #root_there::Registration::delay::<#name>())
    };
    quote! {
        #[allow(deprecated)]
        const _: () = {
            #root::inventory::submit! { #make }
        };
    }
}

/// `DelayListener` or `BatchListener` for the struct of a function; nothing when no parameter names the payload.
fn handler(function: &Function, model: &Model, broken: bool) -> Option<TokenStream> {
    let root = &model.root;
    let (name, payload) = (&function.item.sig.ident, function.payload.as_ref()?);
    let (job, channel, cause) = (local("job"), local("channel"), local("cause"));
    let body = match (broken, function.takes_batches) {
        (false, _) => call(function, root),
        (true, true) => quote!({ ::core::mem::drop(#job); #root::stand_in() }),
        (true, false) => quote!({ ::core::mem::drop((#job, #channel)); #root::stand_in() }),
    };
    let on_exhausted = model.on_exhausted.as_ref().filter(|_| !broken).map(|path| {
        quote! {
            async fn on_exhausted(&self, #job: #root::Job<#payload>, #cause: &#root::Failure) {
                #path(#job, #cause).await
            }
        }
    });
    let place = at(payload);
    let payload_type = quote_spanned!(place=> type Job = #payload;);
    let (listener, on_due) = if function.takes_batches {
        let parameters = quote!(&self, #job: #root::Batch<#payload>);
        (quote!(BatchListener), quote!(async fn on_batch(#parameters)))
    } else {
        let parameters = quote!(&self, #job: #root::Job<#payload>, #channel: #root::Channel);
        (quote!(DelayListener), quote!(async fn on_due(#parameters)))
    };
    Some(quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #root::#listener for #name {
            #payload_type

            #on_due -> ::core::result::Result<#root::Decided, #root::JobError> #body

            #on_exhausted
        }
    })
}

/// The call of the function as the result of the handler. Errors of types point to the function's return type, or to
/// the type of a dependency.
fn call(function: &Function, root: &Root) -> TokenStream {
    let sig = &function.item.sig;
    let place = match &sig.output {
        ReturnType::Type(_, ty) => at(ty),
        ReturnType::Default => Span::call_site(),
    };
    let mut name = sig.ident.clone();
    name.set_span(place);
    let channel = local("channel");
    let arguments: Vec<_> = function.parameters.iter().map(|parameter| argument(parameter, function)).collect();
    let returned = quote_spanned!(place=> #name(#(#arguments),*).await);
    if function.takes_batches {
        return quote!({ #root::Concludes::concluded(#returned) });
    }
    if function.decides() {
        return quote!({ #root::Decides::decided(#returned) });
    }
    let candidates: Vec<_> = function.candidates().collect();
    if candidates.is_empty() {
        return quote!({ #root::Acks::acked(#returned, #channel) });
    }
    let call = local("call");
    let values = candidates.iter().map(|(index, Field { cfg, name, ty, .. })| {
        let (value, parameter) = (local(&format!("value_{index}")), parameter(ty, root));
        let give = quote_spanned!(at(ty)=> #parameter::give(&self.#name, #call));
        quote!(#(#cfg)* let (#value, #call) = #give;)
    });
    let one_channel = (candidates.len() > 1).then(|| assert_one_channel(&candidates, root));
    let finish = quote_spanned!(place=> #call.finish(#returned));
    quote! {{
        #one_channel
        let #call = #root::Call::new(#channel);
        #(#values)*
        #finish
    }}
}

/// What the call passes for a parameter.
fn argument(parameter: &Parameter, function: &Function) -> TokenStream {
    let (index, borrowed) = match parameter {
        Parameter::Job => return local("job").to_token_stream(),
        Parameter::Channel => return local("channel").to_token_stream(),
        Parameter::Field { index, borrowed } => (*index, *borrowed),
    };
    let Field { cfg, name, ty, source } = &function.injection.fields[index];
    if *source == Source::Parameter {
        let value = local(&format!("value_{index}"));
        quote!(#(#cfg)* #value)
    } else if borrowed {
        quote!(#(#cfg)* &self.#name)
    } else {
        quote_spanned!(at(ty)=> #(#cfg)* ::core::clone::Clone::clone(&self.#name))
    }
}

/// Rejects a second channel, at the parameter of the last candidate.
fn assert_one_channel(candidates: &[(usize, &Field)], root: &Root) -> TokenStream {
    let is_channel = candidates.iter().map(|(_, Field { cfg, ty, .. })| {
        let parameter = parameter(ty, root);
        quote!(#(#cfg)* #parameter::IS_CHANNEL)
    });
    let place = candidates.last().map_or_else(Span::call_site, |(_, field)| at(&field.ty));
    let root = root.at(place);
    let list = quote!(&[#(#is_channel),*]);
    let assertion = quote_spanned!(place=> #root::assert_one_channel(#list));
    quote!(const _: () = #assertion;)
}
