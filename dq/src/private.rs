//! Everything that generated code uses. It is not part of the public interface and changes without notice.

use std::marker::PhantomData;
pub use std::vec::Vec;

pub use dq_grammar::{InvalidName, InvalidValue};
pub use inventory;

pub use crate::broadcast::{BroadcastListener, Declared as BroadcastDeclared};
pub use crate::job::{DelayJob, Delivery, GroupName, JobDefaults, JobId, Payload, Priority, ToJobId, Weight};
pub use crate::listener::{
    Batch, BatchListener, Channel, Decided, Declared, DelayListener, Dependency, Failure, Injectable, Injector, Job,
    JobError, Missing, Registration,
};

pub use crate::schedule::{
    HasSchedules, Made, OnMissed, Overlap, PayloadOf, Periodic, PeriodicSet, PeriodicTimes, encoded, made,
};

pub mod keys;
mod parameter;
mod returned;

pub use parameter::{Acking, Call, Deciding, Parameter, assert_one_channel, dependencies};
pub use returned::{Acks, Concludes, Decides};

/// The value of a stand-in that a macro emits after a mistake, so that one mistake gives one error. It is never called.
pub fn stand_in<T>() -> T {
    unreachable!("a program with a mistake in an attribute does not compile")
}

// The payload of a schedule above a listener: that of `Default`, if there is one.

/// Asks whether a payload has a default. `DefaultPayload::<P>::MAKE` is the constant of the type itself if `P: Default`, otherwise the
/// one of [`NoDefault`], because the compiler prefers what belongs to a type.
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
