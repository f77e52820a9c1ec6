//! The generated code of a payload.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, LitStr, Member, parse_quote};

use super::id::IdSource;
use super::model::Model;
use crate::arguments::Root;
use crate::constants;

/// The implementation of `DelayJob`. After a mistake it has the valid parts, and an empty topic if the topic is
/// unknown; the topic check skips an empty topic.
pub(super) fn of_payload(input: &DeriveInput, model: &Model) -> TokenStream {
    if model.borrows {
        return TokenStream::new();
    }
    let (root, name) = (&model.root, &input.ident);
    let topic = model.topic.as_ref().map_or_else(|| quote!(""), ToTokens::to_token_stream);
    let defaults = defaults(model);
    let id = id(model);
    let group = templated(root, model.group.as_ref(), ["job_group", "GroupName", "BadGroup", "ToGroup", "to_group"]);
    let weight = templated(root, model.weight.as_ref(), ["job_weight", "Weight", "BadWeight", "ToWeight", "to_weight"]);
    let mut generics = input.generics.clone();
    if !generics.params.is_empty() {
        let bound = parse_quote!(Self: #root::Payload + ::core::marker::Send + ::core::marker::Sync + 'static);
        generics.make_where_clause().predicates.push(bound);
    }
    let (parameters, arguments, bounds) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #parameters #root::DelayJob for #name #arguments #bounds {
            const TOPIC: &'static ::core::primitive::str = #topic;
            #defaults
            #id
            #group
            #weight
        }
    }
}

fn defaults(model: &Model) -> Option<TokenStream> {
    let Model { root, delay, retry, expires_after, retain, deliver, max_waiting, priority, unique_for, .. } = model;
    let group_max_waiting = model.group_max_waiting;
    let (is_timed, has_choice) = (delay.or(*expires_after).or(*retain).is_some(), deliver.or(*priority).is_some());
    let is_bounded = max_waiting.or(group_max_waiting).is_some() || unique_for.is_some();
    if !is_timed && !has_choice && !is_bounded && retry.is_none() {
        return None;
    }
    let delay = constants::duration(delay.unwrap_or_default());
    let retry = constants::option(retry.as_ref());
    let expires_after = constants::option(expires_after.map(constants::duration));
    let retain = constants::duration(retain.unwrap_or_default());
    let max_waiting = constants::option(max_waiting.as_ref());
    let deliver = match deliver {
        Some("broadcast") => quote!(Broadcast),
        Some("both") => quote!(Both),
        _ => quote!(Queue),
    };
    let priority = match priority {
        Some("high") => quote!(High),
        Some("low") => quote!(Low),
        _ => quote!(Normal),
    };
    let group_max_waiting = group_max_waiting.map(|jobs| quote!(.group_max_waiting(#jobs)));
    let unique_for = unique_for.map(constants::duration).map(|time| quote!(.unique_for(#time)));
    Some(quote! {
        const DEFAULTS: #root::JobDefaults = #root::JobDefaults::new(
            #delay,
            #retry,
            #expires_after,
            #retain,
            #root::Deliver::#deliver,
            #max_waiting,
            #root::Priority::#priority
        )#group_max_waiting #unique_for;
    })
}

/// The method that makes a group or a weight of a template.
fn templated(root: &Root, template: Option<&(LitStr, Vec<Member>)>, names: [&str; 5]) -> Option<TokenStream> {
    let (text, members) = template?;
    let [method, value, bad, convert, converted] = names.map(|name| Ident::new(name, Span::call_site()));
    Some(quote! {
        fn #method(&self) -> ::core::option::Option<::core::result::Result<#root::#value, #root::#bad>> {
            ::core::option::Option::Some(#root::#convert::#converted(&::core::format_args!(#text #(, self.#members)*)))
        }
    })
}

fn id(model: &Model) -> Option<TokenStream> {
    let root = &model.root;
    let value = match &model.id {
        IdSource::Generated => return None,
        IdSource::Field(member, ty) => {
            let place = ty.span().resolved_at(Span::call_site());
            quote_spanned!(place=> #root::ToJobId::to_job_id(&self.#member))
        }
        IdSource::Template(text, members) => {
            quote!(#root::ToJobId::to_job_id(&::core::format_args!(#text #(, self.#members)*)))
        }
    };
    Some(quote! {
        fn job_id(&self) -> ::core::option::Option<::core::result::Result<#root::JobId, #root::BadName>> {
            ::core::option::Option::Some(#value)
        }
    })
}
