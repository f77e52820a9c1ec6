//! The return types of function listeners.

use crate::listener::{Channel, Decided, JobError};

/// The return type of a function without a `Channel` parameter. `Ok(())` acks the job.
#[diagnostic::on_unimplemented(
    message = "a function listener without a `Channel` parameter does not return `{Self}`",
    label = "expected `Result<(), JobError>`",
    note = "`Ok(())` is the ack; to decide otherwise take `channel: Channel` and return `Result<Decided, JobError>`",
    note = "the error is a `JobError`; `?` converts any error and any string into one"
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
    note = "the error is a `JobError`; `?` converts any error and any string into one"
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

/// The return type of a function with a `Batch` parameter, for all jobs that the batch did not decide.
#[diagnostic::on_unimplemented(
    message = "a function listener with a `Batch` parameter does not return `{Self}`",
    label = "expected `Result<(), JobError>` or `Result<Decided, JobError>`",
    note = "it decides all jobs that the batch did not: `Ok(())` acks them, and so does `Ok(batch.rest().ack())`; an error fails them",
    note = "the error is a `JobError`; `?` converts any error and any string into one"
)]
pub trait Concludes {
    /// The result of the handler.
    ///
    /// # Errors
    /// The error of the function.
    fn concluded(self) -> Result<Decided, JobError>;
}

#[diagnostic::do_not_recommend]
impl<T: Conclusion, E: Into<JobError>> Concludes for Result<T, E> {
    fn concluded(self) -> Result<Decided, JobError> {
        self.map(Conclusion::decided).map_err(Into::into)
    }
}

/// The `Ok` of such a function.
pub trait Conclusion {
    /// What it decides.
    fn decided(self) -> Decided;
}

impl Conclusion for () {
    fn decided(self) -> Decided {
        Channel::new().ack()
    }
}

impl Conclusion for Decided {
    fn decided(self) -> Decided {
        self
    }
}
