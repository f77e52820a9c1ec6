//! A function as a listener: its type says what each parameter is.
//!
//! `job: Job<P>` is the job and `channel: Channel` decides; or `batch: Batch<P>` has many jobs and decides. Every other parameter is a dependency: `T` gets a clone,
//! `&T` borrows the listener's own. Where a type called `Channel` may be another crate's, generated code asks the type.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, FnArg, GenericArgument, Ident, Pat, PatType, PathArguments, ReturnType, Safety, Signature, Type,
    Visibility,
};

use crate::errors::Errors;
use crate::injection::{Field, Injection, Shape, Source, cfg_of, mentions, written};

/// A function as the user wrote it. The macro copies its block without parsing it, so that the compiler reports its mistakes.
#[derive(Debug)]
pub(super) struct FunctionItem {
    pub(super) attrs: Vec<Attribute>,
    pub(super) vis: Visibility,
    pub(super) sig: Signature,
    pub(super) block: TokenStream,
}

impl Parse for FunctionItem {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self {
            attrs: input.call(Attribute::parse_outer)?,
            vis: input.parse()?,
            sig: input.parse()?,
            block: input.parse()?,
        })
    }
}

impl ToTokens for FunctionItem {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.attrs.iter().for_each(|attribute| attribute.to_tokens(tokens));
        self.vis.to_tokens(tokens);
        self.sig.to_tokens(tokens);
        self.block.to_tokens(tokens);
    }
}

/// A function with the attribute.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) item: FunctionItem,
    /// The payload; `None` after the mistake that no parameter names it.
    pub(super) payload: Option<Type>,
    /// A parameter is a `Batch` of jobs instead of a `Job`.
    pub(super) takes_batches: bool,
    /// The parameters in order.
    pub(super) parameters: Vec<Parameter>,
    /// The fields of the listener's struct.
    pub(super) injection: Injection,
}

/// What a parameter gets.
#[derive(Debug)]
pub(super) enum Parameter {
    /// The job, or the batch.
    Job,
    Channel,
    /// The value of the field with this index.
    Field {
        index: usize,
        borrowed: bool,
    },
}

impl Function {
    /// The payload as the user wrote it.
    pub(super) fn payload_text(&self) -> String {
        self.payload.as_ref().map_or_else(|| "..".to_owned(), written)
    }

    /// Whether a parameter is certainly dq's channel.
    pub(super) fn decides(&self) -> bool {
        self.parameters.iter().any(|parameter| matches!(parameter, Parameter::Channel))
    }

    /// The fields that may be dq's channel, with their indices.
    pub(super) fn candidates(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.injection.fields.iter().enumerate().filter(|(_, field)| field.source == Source::Parameter)
    }
}

/// Reads the parameters; `None` for a function of an impl, where no struct can be declared.
pub(super) fn read(item: FunctionItem, errors: &mut Errors) -> Option<Function> {
    const TEXT: &str = "a function in an `impl` cannot be a listener: move it out of the `impl`, or put \
                        `#[delay_listener]` above a struct";
    if let Some(FnArg::Receiver(receiver)) = item.sig.inputs.first() {
        errors.at(receiver, TEXT);
        return None;
    }
    if let Some(this) = find_self(item.sig.to_token_stream()).or_else(|| find_self(item.block.clone())) {
        errors.at(this, TEXT);
        return None;
    }
    check_signature(&item, errors);
    let injection = Injection { shape: Shape::Named, fields: Vec::new() };
    let takes_batches = takes_batches(&item);
    let mut function = Function { payload: None, takes_batches, parameters: Vec::new(), injection, item };
    for input in function.item.sig.inputs.clone() {
        if let FnArg::Typed(input) = input {
            function.parameter(input, errors);
        }
    }
    if function.payload.is_none() {
        report_missing_job(&function.item, errors);
    }
    Some(function)
}

/// A `Self` that only an impl gives a meaning to.
fn find_self(tokens: TokenStream) -> Option<TokenTree> {
    const DEFINE_ANOTHER_SELF: [&str; 5] = ["impl", "trait", "struct", "enum", "union"];
    let mut found = None;
    for token in tokens {
        match &token {
            TokenTree::Ident(name) if DEFINE_ANOTHER_SELF.iter().any(|keyword| name == keyword) => return None,
            TokenTree::Ident(name) if name == "Self" => found = found.or(Some(token)),
            TokenTree::Group(group) => found = found.or_else(|| find_self(group.stream())),
            _ => {}
        }
    }
    found
}

fn check_signature(item: &FunctionItem, errors: &mut Errors) {
    let sig = &item.sig;
    if sig.asyncness.is_none() {
        errors.at(sig.fn_token, "a listener is asynchronous: write `async fn`");
    }
    if let Safety::Unsafe(unsafety) = &sig.safety {
        errors.at(unsafety, "dq calls a listener without `unsafe`: remove it here");
    }
    if !sig.generics.params.is_empty() || sig.generics.where_clause.is_some() {
        let place = if sig.generics.params.is_empty() {
            sig.generics.where_clause.to_token_stream()
        } else {
            sig.generics.to_token_stream()
        };
        errors.at(
            place,
            "a function listener cannot be generic: write a struct with `#[delay_listener(register = false)]` and call \
             `.listener::<L<..>>()`",
        );
    }
    if matches!(sig.output, ReturnType::Default) {
        let text = if takes_batches(item) {
            "a batch that decides nothing: return `Result<(), JobError>`, whose `Ok(())` acks every job that the batch did not decide, \
             or `Result<Decided, JobError>` with `batch.rest()`"
        } else {
            "a function listener returns `Result<(), JobError>`, or `Result<Decided, JobError>` if it takes a `Channel`"
        };
        errors.at(&sig.ident, text);
    }
}

impl Function {
    /// Whether the function returns a decision, which only dq's channel makes, and takes `count` channels by value.
    fn decides_with(&self, count: usize) -> bool {
        let channels = self.item.sig.inputs.iter().filter(|input| match input {
            FnArg::Typed(input) => is_called_channel(&input.ty),
            FnArg::Receiver(_) => false,
        });
        channels.count() == count && mentions(self.item.sig.output.to_token_stream(), "Decided")
    }

    fn parameter(&mut self, input: PatType, errors: &mut Errors) {
        let Some(payload) = payload_of(&input.ty) else { return self.channel_or_field(input, errors) };
        if self.payload.replace(payload).is_some() {
            let text = if self.takes_batches {
                "a listener takes one batch at a time, or one job: keep one `Batch<..>` or one `Job<..>`. To inject a type of that \
                 name, write the listener as a struct"
            } else {
                "a listener gets one job at a time: keep one `Job<..>`. To inject a type of that name, write the listener \
                 as a struct"
            };
            errors.at(&input, text);
        }
        self.parameters.push(Parameter::Job);
    }

    fn channel_or_field(&mut self, input: PatType, errors: &mut Errors) {
        if self.takes_batches && last_name(&input.ty).is_some_and(|name| name == "Channel") && self.decides_with(1) {
            errors.at(&input, "a batch brings its channel: remove this, and return what `batch.rest()` decides");
        }
        let is_again = |(_, field): (usize, &Field)| field.ty == *input.ty && field.cfg.is_empty();
        if self.decides_with(2) && cfg_of(&input.attrs).is_empty() && self.candidates().any(is_again) {
            errors.at(&input, "a job gets one decision: keep one `Channel`");
        }
        if is_called_channel(&input.ty) && self.decides_with(1) && !self.takes_batches {
            return self.parameters.push(Parameter::Channel);
        }
        let index = self.injection.fields.len();
        let (ty, borrowed) = match *input.ty {
            Type::Reference(reference) if reference.lifetime.is_none() => {
                if reference.mutability.is_some() {
                    errors.at(
                        reference.mutability,
                        "all runs share a dependency: write `&T`, and put what changes into a `Mutex`",
                    );
                }
                (*reference.elem, true)
            }
            other => (other, false),
        };
        if let Some(what) = unsized_or_opaque(&ty) {
            errors.at(&ty, format!("{what} cannot be injected: write `&Arc<{}>`", written(&shared(&ty))));
        }
        if borrowed && is_called_channel(&ty) && self.decides_with(0) {
            errors.at(&ty, "a decision uses up the channel: write `channel: Channel` without `&`");
        }
        let name = match &*input.pat {
            Pat::Ident(pattern) => pattern.ident.clone(),
            _ => format_ident!("dependency_{index}"),
        };
        let source = if is_called_channel(&ty) && !borrowed && !self.takes_batches {
            Source::Parameter
        } else {
            Source::Injected
        };
        self.parameters.push(Parameter::Field { index, borrowed });
        self.injection.fields.push(Field { cfg: cfg_of(&input.attrs), name, ty, source });
    }
}

/// Notes that no parameter is a job, at the parameter that was probably meant to be it.
fn report_missing_job(item: &FunctionItem, errors: &mut Errors) {
    let inputs: Vec<_> = item
        .sig
        .inputs
        .iter()
        .filter_map(|input| if let FnArg::Typed(input) = input { Some(input) } else { None })
        .collect();
    let borrowed = |ty: &Type| matches!(ty, Type::Reference(reference) if payload_of(&reference.elem).is_some());
    let name = |input: &PatType| match &*input.pat {
        Pat::Ident(pattern) => pattern.ident.to_string(),
        _ => String::new(),
    };
    let bare = |input: &PatType, name: &str| last_name(&input.ty).is_some_and(|last| last == name);
    if let Some(input) = inputs.iter().find(|input| borrowed(&input.ty)) {
        errors
            .at(input, "a listener owns its job, or its batch: write `job: Job<..>` or `batch: Batch<..>` without `&`");
    } else if let Some(input) = inputs.iter().find(|input| bare(input, "Job")) {
        errors.at(input, "`Job` needs the payload's type: write `job: Job<..>`");
    } else if let Some(input) = inputs.iter().find(|input| bare(input, "Batch")) {
        errors.at(input, "`Batch` needs the payload's type: write `batch: Batch<..>`");
    } else if let Some(input) = inputs.iter().find(|input| matches!(&*name(input), "job" | "_job")) {
        let (name, ty) = (name(input), written(&input.ty));
        errors.at(input, format!("a listener gets its payload in a `Job`: write `{name}: Job<{ty}>`"));
    } else {
        let place = match inputs.as_slice() {
            [only] => only.to_token_stream(),
            _ => item.sig.ident.to_token_stream(),
        };
        errors.at(place, "a function listener takes a job: write `job: Job<..>` with the payload's type");
    }
}

/// `P` of `Job<P>` or `Batch<P>`.
fn payload_of(ty: &Type) -> Option<Type> {
    argument_of(ty, "Job").or_else(|| argument_of(ty, "Batch"))
}

/// `P` of `Name<P>`.
fn argument_of(ty: &Type, name: &str) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match (arguments.args.len(), arguments.args.first()) {
        (1, Some(GenericArgument::Type(payload))) => Some(payload.clone()),
        _ => None,
    }
}

fn takes_batches(item: &FunctionItem) -> bool {
    let is_batch = |input: &FnArg| matches!(input, FnArg::Typed(input) if argument_of(&input.ty, "Batch").is_some());
    item.sig.inputs.iter().any(is_batch)
}

/// The last name of a path, if no type arguments follow it.
fn last_name(ty: &Type) -> Option<&Ident> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    last.arguments.is_none().then_some(&last.ident)
}

/// Whether the type may be dq's channel, under its name or a longer one.
fn is_called_channel(ty: &Type) -> bool {
    last_name(ty).is_some_and(|name| name.to_string().ends_with("Channel"))
}

fn unsized_or_opaque(ty: &Type) -> Option<&'static str> {
    match ty {
        Type::ImplTrait(_) => Some("`impl Trait` names no type and"),
        Type::TraitObject(_) => Some("`dyn Trait` has no size and"),
        Type::Slice(_) => Some("a slice has no size and"),
        Type::Path(path) if path.path.is_ident("str") => Some("`str` has no size and"),
        _ => None,
    }
}

/// The type to share instead: `dyn Trait` for `impl Trait`.
fn shared(ty: &Type) -> Type {
    match ty {
        Type::ImplTrait(opaque) => {
            let bounds = &opaque.bounds;
            syn::parse_quote!(dyn #bounds)
        }
        other => other.clone(),
    }
}
