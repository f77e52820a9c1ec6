//! A function as a listener: its parameters by their types.
//!
//! `job: Job<P>` is the job, `channel: Channel` decides, every other parameter is a dependency: `T` gets a clone, `&T`
//! borrows the one that the listener holds.

use quote::{ToTokens, format_ident};
use syn::{Attribute, FnArg, GenericArgument, Pat, PatType, PathArguments, ReturnType, Safety, Type};

use super::item::FunctionItem;
use crate::errors::Errors;
use crate::injection::{Field, Injection, Shape, cfg_of};

/// A function with the attribute.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) item: FunctionItem,
    /// The payload; `None` when no parameter says it, which is a noted mistake.
    pub(super) payload: Option<Type>,
    /// The parameters in order.
    pub(super) parameters: Vec<Parameter>,
    /// The fields that the dependencies become.
    pub(super) injection: Injection,
}

/// What a parameter is given.
#[derive(Debug)]
pub(super) enum Parameter {
    Job,
    Channel,
    /// The dependency with this index.
    Dependency {
        cfg: Vec<Attribute>,
        index: usize,
        borrowed: bool,
    },
}

impl Function {
    /// Whether the function decides by itself.
    pub(super) fn decides(&self) -> bool {
        self.parameters.iter().any(|parameter| matches!(parameter, Parameter::Channel))
    }
}

/// Reads the parameters; `None` for a method, beside which nothing can be written.
pub(super) fn read(item: FunctionItem, errors: &mut Errors) -> Option<Function> {
    if let Some(FnArg::Receiver(receiver)) = item.sig.inputs.first() {
        errors.at(receiver, "a method cannot be a listener: put `#[delay_listener]` above a free function or a struct");
        return None;
    }
    check_signature(&item, errors);
    let injection = Injection { shape: Shape::Named, fields: Vec::new() };
    let mut function = Function { payload: None, parameters: Vec::new(), injection, item };
    for input in function.item.sig.inputs.clone() {
        if let FnArg::Typed(input) = input {
            function.parameter(input, errors);
        }
    }
    if function.payload.is_none() {
        errors.at(
            &function.item.sig.ident,
            "a function listener takes its job, with the payload's type: `job: Job<..>` as the first parameter",
        );
    }
    Some(function)
}

fn check_signature(item: &FunctionItem, errors: &mut Errors) {
    let sig = &item.sig;
    if sig.asyncness.is_none() {
        errors.at(sig.fn_token, "a listener is asynchronous: write `async fn`");
    }
    if let Safety::Unsafe(unsafety) = &sig.safety {
        errors.at(unsafety, "a listener is called by dq, which has no `unsafe`: leave it out");
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
        errors.at(&sig.ident, "a function listener returns `Result<(), JobError>`, or with a `Channel` parameter `Result<Decided, JobError>`");
    }
}

impl Function {
    fn parameter(&mut self, input: PatType, errors: &mut Errors) {
        if let Some(payload) = payload_of(&input.ty) {
            if self.payload.replace(payload).is_some() {
                errors.at(&input, "a listener gets one job at a time: keep one `Job<..>`");
            }
            return self.parameters.push(Parameter::Job);
        }
        if is_channel(&input.ty) {
            if self.decides() {
                errors.at(&input, "one decision for one job: keep one `Channel`");
            }
            return self.parameters.push(Parameter::Channel);
        }
        self.dependency(input, errors);
    }

    fn dependency(&mut self, input: PatType, errors: &mut Errors) {
        let index = self.injection.fields.len();
        let (ty, borrowed) = match *input.ty {
            Type::Reference(reference) if reference.lifetime.is_none() => {
                if reference.mutability.is_some() {
                    errors.at(
                        reference.mutability,
                        "a dependency is shared by all runs: write `&T`, and a `Mutex` within for what changes",
                    );
                }
                (*reference.elem, true)
            }
            other => (other, false),
        };
        if let Some(what) = unsized_or_opaque(&ty) {
            errors.at(
                &ty,
                format!("{what} cannot be injected: write `&Arc<{}>`", crate::injection::written(&shared(&ty))),
            );
        }
        let name = match &*input.pat {
            Pat::Ident(pattern) => pattern.ident.clone(),
            _ => format_ident!("dependency_{index}"),
        };
        let cfg = cfg_of(&input.attrs);
        self.parameters.push(Parameter::Dependency { cfg: cfg.clone(), index, borrowed });
        self.injection.fields.push(Field { cfg, name, ty, default: false });
    }
}

/// `P` of `Job<P>`.
fn payload_of(ty: &Type) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Job")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match (arguments.args.len(), arguments.args.first()) {
        (1, Some(GenericArgument::Type(payload))) => Some(payload.clone()),
        _ => None,
    }
}

fn is_channel(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Channel" && last.arguments.is_none())
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

/// What to share instead: `dyn Trait` for `impl Trait`.
fn shared(ty: &Type) -> Type {
    match ty {
        Type::ImplTrait(opaque) => {
            let bounds = &opaque.bounds;
            syn::parse_quote!(dyn #bounds)
        }
        other => other.clone(),
    }
}
