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
    let group = templated(root, model.group.as_ref(), ["job_group", "GroupName"]);
    let weight = templated(root, model.weight.as_ref(), ["job_weight", "Weight"]);
    let mut generics = input.generics.clone();
    if !generics.params.is_empty() {
        let bound = parse_quote!(Self: #root::Payload + ::core::marker::Send + ::core::marker::Sync + 'static);
        generics.make_where_clause().predicates.push(bound);
    }
    let (parameters, arguments, bounds) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        #[allow(deprecated, clippy::needless_update)]
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
    let some = |value: TokenStream| quote!(::core::option::Option::Some(#value));
    let deliver = deliver.map(|deliver| match deliver {
        "broadcast" => quote!(Broadcast),
        "both" => quote!(Both),
        _ => quote!(Queue),
    });
    let priority = priority.map(|priority| match priority {
        "high" => quote!(High),
        "low" => quote!(Low),
        _ => quote!(Normal),
    });
    let fields = [
        delay.map(constants::duration).map(|delay| quote!(delay: #delay)),
        retry.as_ref().map(|retry| some(quote!(#retry))).map(|retry| quote!(retry: #retry)),
        expires_after.map(constants::duration).map(some).map(|after| quote!(expires_after: #after)),
        retain.map(constants::duration).map(|retain| quote!(retain: #retain)),
        deliver.map(|deliver| quote!(deliver: #root::Delivery::#deliver)),
        max_waiting.map(|jobs| some(quote!(#jobs))).map(|jobs| quote!(max_waiting: #jobs)),
        model.group_max_waiting.map(|jobs| some(quote!(#jobs))).map(|jobs| quote!(group_max_waiting: #jobs)),
        priority.map(|priority| quote!(priority: #root::Priority::#priority)),
        unique_for.map(constants::duration).map(some).map(|time| quote!(unique_for: #time)),
    ];
    let fields: Vec<_> = fields.into_iter().flatten().collect();
    (!fields.is_empty()).then(
        || quote!(const DEFAULTS: #root::JobDefaults = #root::JobDefaults { #(#fields,)* ..#root::JobDefaults::NONE };),
    )
}

/// The method that makes a group or a weight of a template.
fn templated(root: &Root, template: Option<&(LitStr, Vec<Member>)>, names: [&str; 2]) -> Option<TokenStream> {
    let (text, members) = template?;
    let [method, value] = names.map(|name| Ident::new(name, Span::call_site()));
    Some(quote! {
        fn #method(&self) -> ::core::option::Option<::core::result::Result<#root::#value, #root::InvalidValue>> {
            ::core::option::Option::Some(#root::#value::of(&::core::format_args!(#text #(, self.#members)*)))
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
        fn job_id(&self) -> ::core::option::Option<::core::result::Result<#root::JobId, #root::InvalidName>> {
            ::core::option::Option::Some(#value)
        }
    })
}
