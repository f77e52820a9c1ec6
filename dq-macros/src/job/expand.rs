//! The generated code of a payload.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, parse_quote};

use super::id::IdSource;
use super::model::Model;
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
    let (id, group, weight) = (id(model), group(model), weight(model));
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
    let (is_timed, has_choice) = (delay.or(*expires_after).or(*retain).is_some(), deliver.or(*priority).is_some());
    let is_bounded = max_waiting.or(group_max_waiting).is_some() || unique_for.is_some();
    if !is_timed && !has_choice && !is_bounded && retry.is_none() {
    let group_max_waiting = model.group_max_waiting;
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
    let unique_for = unique_for.map(constants::duration).map(|time| quote!(.unique_for(#time)));
    Some(quote! {
        const DEFAULTS: #root::JobDefaults = #root::JobDefaults::new(
    let group_max_waiting = group_max_waiting.map(|jobs| quote!(.group_max_waiting(#jobs)));
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

fn group(model: &Model) -> Option<TokenStream> {
    let (root, (text, members)) = (&model.root, model.group.as_ref()?);
    let path = quote!(#root);
    Some(quote! {
        fn job_group(
            &self,
        ) -> ::core::option::Option<::core::result::Result<#path::GroupName, #path::BadGroup>> {
            ::core::option::Option::Some(#path::ToGroup::to_group(&::core::format_args!(#text #(, self.#members)*)))
        }
    })
}

fn weight(model: &Model) -> Option<TokenStream> {
    let (root, (text, members)) = (&model.root, model.weight.as_ref()?);
    let path = quote!(#root);
    Some(quote! {
        fn job_weight(
            &self,
        ) -> ::core::option::Option<::core::result::Result<#path::Weight, #path::BadWeight>> {
            ::core::option::Option::Some(#path::ToWeight::to_weight(&::core::format_args!(#text #(, self.#members)*)))
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
