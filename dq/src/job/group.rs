//! The group of a job: of its jobs only so many run at a time.

use std::fmt;

use dq_grammar::InvalidValue;
use smol_str::{SmolStr, ToSmolStr};

/// The longest name of a group, in bytes.
const MAX_GROUP: usize = 128;

/// The name of a group of jobs of one topic, such as `customer-42`: 1 to 128 bytes without control characters.
///
/// Of a group no more jobs run at a time, over all nodes, than the setting `group_concurrency` of the topic allows; without it groups
/// have no effect. Its jobs start in the order of their due times.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName(SmolStr);

impl GroupName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`InvalidValue`] if it is empty, too long, or has a control character.
    pub fn new(name: impl Into<SmolStr>) -> Result<Self, InvalidValue> {
        let name = name.into();
        if Self::is_valid(&name) {
            return Ok(Self(name));
        }
        Err(InvalidValue::new(format!(
            "{name:?} is not a name of a group: write 1 to {MAX_GROUP} bytes without control characters"
        )))
    }

    /// The group whose name a value displays.
    ///
    /// # Errors
    /// [`InvalidValue`] if it displays none.
    #[doc(hidden)]
    pub fn of(name: &(impl fmt::Display + ?Sized)) -> Result<Self, InvalidValue> {
        Self::new(name.to_smolstr())
    }

    /// Whether this is a name of a group.
    pub(super) fn is_valid(name: &str) -> bool {
        (1..=MAX_GROUP).contains(&name.len()) && !name.chars().any(char::is_control)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
