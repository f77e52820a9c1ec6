//! Names of locals in generated code.

use proc_macro2::{Ident, Span};

/// A local that no name in the user's code can refer to, and that refers to nothing in the user's code.
///
/// Hygiene keeps a function listener apart from a local of its name. A constant of that name would still turn the
/// local's pattern into a comparison, hence the underscores.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(&format!("__{name}"), Span::mixed_site())
}
