//! What a parameter of a function listener is: its type decides, not its name.
//!
//! dq's `Channel` cannot be cloned, and every injected type can. That lets one trait tell them apart.

use std::marker::PhantomData;

use super::{Acks, Decides};
use crate::listener::{Channel, Decided, Dependency, Injectable, Injector, JobError, Missing};

/// A parameter whose type may be dq's channel: the channel itself, or an injected value of another type of that name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be injected into a listener",
    label = "must be `Clone + Send + Sync + 'static`",
    note = "share it: take `&Arc<{Self}>`, or `&Arc<Mutex<{Self}>>` if it is not `Sync`, and call `.provide(Arc::new(..))`"
)]
pub trait Parameter: Sized {
    /// The type of the call after this parameter, if its type was `Before`.
    type After<Before>;

    /// Whether it is dq's channel.
    const IS_CHANNEL: bool;

    /// The dependency that it is, if it is one.
    fn dependency(name: &'static str, written: &'static str) -> Option<Dependency>;

    /// The field of the listener's struct for it: a dependency's value, nothing for the channel.
    ///
    /// # Errors
    /// [`Missing`] when it is a dependency that the program did not provide.
    fn inject(injector: &Injector) -> Result<Option<Self>, Missing>;

    /// Its value for one call.
    fn give<Before>(field: &Option<Self>, call: Call<Before>) -> (Self, Call<Self::After<Before>>);
}

#[diagnostic::do_not_recommend]
impl<T: Injectable> Parameter for T {
    type After<Before> = Before;

    const IS_CHANNEL: bool = false;

    fn dependency(name: &'static str, written: &'static str) -> Option<Dependency> {
        Some(Dependency::of::<T>(name, written))
    }

    fn inject(injector: &Injector) -> Result<Option<T>, Missing> {
        injector.get().map(Some)
    }

    fn give<Before>(field: &Option<T>, call: Call<Before>) -> (T, Call<Before>) {
        (field.clone().expect("`inject` gave it a value"), call)
    }
}

impl Parameter for Channel {
    type After<Before> = Deciding;

    const IS_CHANNEL: bool = true;

    fn dependency(_: &'static str, _: &'static str) -> Option<Dependency> {
        None
    }

    fn inject(_: &Injector) -> Result<Option<Self>, Missing> {
        Ok(None)
    }

    fn give<Before>(_: &Option<Self>, call: Call<Before>) -> (Self, Call<Deciding>) {
        let channel = call.channel.expect("every function with two such parameters calls `assert_one_channel`");
        (channel, Call { channel: None, returns: PhantomData })
    }
}

/// A call of a function listener, and what the function returns: [`Acking`] or [`Deciding`].
#[derive(Debug)]
pub struct Call<Returns> {
    channel: Option<Channel>,
    returns: PhantomData<Returns>,
}

/// The function got no channel: its `Ok(())` is the ack.
#[derive(Debug)]
pub struct Acking;

/// The function got the channel and returns its decision.
#[derive(Debug)]
pub struct Deciding;

impl Call<Acking> {
    /// A call that still has the channel for a parameter.
    pub fn new(channel: Channel) -> Self {
        Self { channel: Some(channel), returns: PhantomData }
    }

    /// The handler's result.
    ///
    /// # Errors
    /// That of the function.
    pub fn finish<R: Acks>(self, returned: R) -> Result<Decided, JobError> {
        returned.acked(self.channel.expect("no parameter took the channel"))
    }
}

impl Call<Deciding> {
    /// The handler's result.
    ///
    /// # Errors
    /// That of the function.
    pub fn finish<R: Decides>(self, returned: R) -> Result<Decided, JobError> {
        returned.decided()
    }
}

/// Refuses a function with two channels. Evaluate it in a constant: then the compiler reports it.
///
/// # Panics
/// When more than one parameter is dq's channel.
#[track_caller]
pub const fn assert_one_channel(is_channel: &[bool]) {
    let (mut index, mut channels) = (0, 0);
    while index < is_channel.len() {
        channels += is_channel[index] as usize;
        index += 1;
    }
    assert!(channels <= 1, "a job gets one decision: keep one `Channel`");
}

/// The dependencies of a listener: a parameter that is dq's channel is none.
pub fn dependencies<const N: usize>(parameters: [Option<Dependency>; N]) -> Vec<Dependency> {
    parameters.into_iter().flatten().collect()
}
