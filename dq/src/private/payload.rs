//! The payload of a schedule above a listener: that of `Default`, if there is one.

use std::marker::PhantomData;

use crate::job::DelayJob;
use crate::schedule::{Made, encoded};

/// Asks whether a payload has a default. `DefaultPayload::<P>::MAKE` is that of the type itself if `P: Default`, otherwise that of
/// [`NoDefault`], because the compiler prefers what belongs to a type.
#[derive(Debug)]
pub struct DefaultPayload<P>(PhantomData<P>);

/// What a payload without a default has.
pub trait NoDefault {
    /// No payload.
    const MAKE: Option<fn() -> Made> = None;
}

impl<P> NoDefault for DefaultPayload<P> {}

impl<P: DelayJob + Default> DefaultPayload<P> {
    /// The default as bytes.
    pub const MAKE: Option<fn() -> Made> = Some(|| encoded(&P::default()));
}
