//! The changes of Rust sources.

mod body;
mod configured;
mod expression;
mod files;
mod finder;

pub(crate) use files::of_crate;
pub(crate) use finder::find;
