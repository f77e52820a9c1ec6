//! The return types of function listeners.

use crate::listener::{Channel, Decided, JobError};

/// The return type of a function without a `Channel` parameter. `Ok(())` acks the job.
#[diagnostic::on_unimplemented(
    message = "a function listener without a `Channel` parameter does not return `{Self}`",
    label = "expected `Result<(), JobError>`",
    note = "`Ok(())` is the ack; to decide otherwise take `channel: Channel` and return `Result<Decided, JobError>`",
    note = "the error is a `JobError`, or what `?` makes one of: any error, or a text"
)]
pub trait Acks {
    /// The result of the handler.
    ///
    /// # Errors
    /// The error of the function.
    fn acked(self, channel: Channel) -> Result<Decided, JobError>;
}

#[diagnostic::do_not_recommend]
impl<E: Into<JobError>> Acks for Result<(), E> {
    fn acked(self, channel: Channel) -> Result<Decided, JobError> {
        self.map(|()| channel.ack()).map_err(Into::into)
    }
}

/// The return type of a function with a `Channel` parameter: the decision of the channel.
#[diagnostic::on_unimplemented(
    message = "a function listener with a `Channel` parameter does not return `{Self}`",
    label = "expected `Result<Decided, JobError>`",
    note = "return what the channel gives: `Ok(channel.ack())`; without a `Channel` parameter `Ok(())` is the ack",
    note = "the error is a `JobError`, or what `?` makes one of: any error, or a text"
)]
pub trait Decides {
    /// The result of the handler.
    ///
    /// # Errors
    /// The error of the function.
    fn decided(self) -> Result<Decided, JobError>;
}

#[diagnostic::do_not_recommend]
impl<E: Into<JobError>> Decides for Result<Decided, E> {
    fn decided(self) -> Result<Decided, JobError> {
        self.map_err(Into::into)
    }
}
