//! Names of locals in generated code.

use proc_macro2::{Ident, Span};

/// A local that nothing of the user's can mean, and that cannot mean anything of the user's.
///
/// Hygiene keeps a function listener apart from a local of its name. A constant of that name would still turn the
/// local's pattern into a comparison, hence the underscores.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(&format!("__{name}"), Span::mixed_site())
}
