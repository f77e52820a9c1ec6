//! The attributes and the derive of dq.

mod arguments;
mod broadcast;
mod completion;
mod constants;
mod delay;
mod errors;
mod injection;
mod job;
mod listener;

use proc_macro::TokenStream;

/// Binds a payload to its topic.
#[proc_macro_derive(DelayJob, attributes(job))]
pub fn derive_delay_job(item: TokenStream) -> TokenStream {
    job::expand(item.into()).into()
}

/// Makes a struct or an async function the listener of a topic.
#[proc_macro_attribute]
pub fn delay_listener(arguments: TokenStream, item: TokenStream) -> TokenStream {
    listener::expand(arguments.into(), item.into()).into()
}

/// Makes a struct a listener of broadcasts.
#[proc_macro_attribute]
pub fn broadcast_listener(arguments: TokenStream, item: TokenStream) -> TokenStream {
    broadcast::expand(arguments.into(), item.into()).into()
}

/// A delay that the compiler checks.
#[proc_macro]
pub fn delay(input: TokenStream) -> TokenStream {
    delay::expand(input.into()).into()
}
