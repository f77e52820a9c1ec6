//! Who makes a request, what they may do, and which topics they have added to.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of a name.
const MAX_NAME: usize = 200;

/// What a user of the dashboard may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// See topics and jobs.
    Look,
    /// Change jobs, topics and schedules, and see them.
    Operate,
    /// Append jobs through the JSON API, and nothing else: `replace` and job sets need [`Operate`](Self::Operate) too, and there is a bound
    /// on the topics.
    Add,
}

impl Role {
    const fn bits(self) -> u8 {
        match self {
            Self::Look => 1,
            Self::Operate => 1 | 2,
            Self::Add => 4,
        }
    }

    /// The role of a word: `look`, `operate` or `add`.
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Look, Self::Operate, Self::Add].into_iter().find(|role| role.as_str() == word)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Operate => "operate",
            Self::Add => "add",
        }
    }
}

/// A person or program that uses the dashboard: a name of at most 200 bytes, and roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub(crate) name: Arc<str>,
    roles: u8,
}

impl User {
    /// A user with all roles. Audit lines, histories, pauses and drains carry the name.
    pub fn new(name: impl AsRef<str>) -> Self {
        let name = name.as_ref();
        let end = (0..=name.len().min(MAX_NAME)).rev().find(|at| name.is_char_boundary(*at)).unwrap_or_default();
        Self { name: name[..end].into(), roles: u8::MAX }
    }

    /// Leaves the user only these roles.
    #[must_use]
    pub fn with_roles(mut self, roles: impl IntoIterator<Item = Role>) -> Self {
        self.roles = roles.into_iter().fold(0, |all, role| all | role.bits());
        self
    }

    pub(crate) const fn may(&self, role: Role) -> bool {
        self.roles & role.bits() == role.bits()
    }

    /// The name that commands, changes and pauses carry.
    pub(crate) fn by(&self) -> String {
        format!("{} (dashboard)", self.name)
    }
}

impl<T: AsRef<str>> From<T> for User {
    fn from(name: T) -> Self {
        Self::new(name)
    }
}

/// The most topics to which a user who may only add can add while this process runs.
pub(crate) const MAX_TOPICS: usize = 1_000;

/// The most users whose topics are counted. Users beyond them share a count.
const MAX_USERS: usize = 100;

/// The topics of each user. Where users share a count, the topics have no names.
type Topics = HashMap<Option<Arc<str>>, HashSet<Box<str>>>;

/// The topics that users have added to. An add makes its topic, so a user who may only add reaches a bounded number of them: too many
/// topics hide the others, and no export lists more than 10,000.
#[derive(Debug, Default)]
pub(crate) struct Reached(Mutex<Topics>);

impl Reached {
    /// Notes that a user adds to a topic. `false`: it would be one too many.
    pub(crate) fn has_room(&self, user: &User, topic: &str) -> bool {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = Some(Arc::clone(&user.name));
        let key = if users.contains_key(&name) || users.len() < MAX_USERS { name } else { None };
        let topics = users.entry(key).or_default();
        topics.contains(topic) || (topics.len() < MAX_TOPICS && topics.insert(topic.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operating_includes_looking_and_adding_includes_nothing() {
        let may = |roles: &[Role]| {
            let user = User::new("ann").with_roles(roles.iter().copied());
            [Role::Look, Role::Operate, Role::Add].map(|role| user.may(role))
        };
        assert_eq!(may(&[Role::Look]), [true, false, false]);
        assert_eq!(may(&[Role::Operate]), [true, true, false]);
        assert_eq!(may(&[Role::Add]), [false, false, true]);
        assert_eq!(may(&[]), [false; 3]);
        assert!([Role::Look, Role::Operate, Role::Add].iter().all(|role| User::new("ann").may(*role)));
    }
}
