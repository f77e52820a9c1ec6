//! One run of the program: its options, its output, and the store when a verb asks for it.

use dq::Provider;

use crate::failure::Failure;
use crate::frame::Common;
use crate::open::administrator;
use crate::screen::Screen;

/// One run of the program.
#[derive(Debug)]
pub struct Session<'a> {
    /// What all verbs have.
    pub common: Common,
    /// Where it writes.
    pub screen: Screen<'a>,
}

impl Session<'_> {
    /// Opens the app that the command line names. What it changes carries the name of its user.
    ///
    /// # Errors
    /// As [`administrator`].
    pub async fn provider(&self) -> Result<Provider, Failure> {
        Ok(administrator(&self.common).await?.by(self.common.author()))
    }
}
