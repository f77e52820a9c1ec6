//! The group of a job: of its jobs only so many run at a time.

use std::fmt;

use smol_str::{SmolStr, ToSmolStr};

/// The longest name of a group, in bytes.
const LONGEST_GROUP: usize = 128;

/// The name of a group of jobs of one topic, such as `customer-42`: 1 to 128 bytes without control characters.
///
/// Of a group no more jobs run at a time, over all nodes, than the setting `group_concurrency` of the topic allows; without it groups
/// have no effect. Its jobs start in the order of their due times.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName(SmolStr);

/// Not the name of a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a name of a group: write 1 to {LONGEST_GROUP} bytes without control characters")]
pub struct BadGroup(String);

impl GroupName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`BadGroup`] if it is empty, too long, or has a control character.
    pub fn new(name: impl Into<SmolStr>) -> Result<Self, BadGroup> {
        let name = name.into();
        if Self::is_valid(&name) { Ok(Self(name)) } else { Err(BadGroup(name.into())) }
    }

    /// Whether this is a name of a group.
    pub(super) fn is_valid(name: &str) -> bool {
        (1..=LONGEST_GROUP).contains(&name.len()) && !name.chars().any(char::is_control)
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

/// What can be the group of a job: every value that displays as the name of one.
#[doc(hidden)]
pub trait ToGroup {
    /// The group.
    ///
    /// # Errors
    /// [`BadGroup`] if the text is not the name of one.
    fn to_group(&self) -> Result<GroupName, BadGroup>;
}

impl<T: fmt::Display + ?Sized> ToGroup for T {
    fn to_group(&self) -> Result<GroupName, BadGroup> {
        GroupName::new(self.to_smolstr())
    }
}
