//! The topics that users have added to. An add makes its topic, so a user who may only add reaches a bounded number of them: too many
//! topics hide the others, and no export lists more than 10,000.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::user::User;

/// The most topics to which a user who may only add can add while this process runs.
pub(crate) const MOST_TOPICS: usize = 1_000;

/// The most users whose topics are counted. Users beyond them share a count.
const MOST_USERS: usize = 100;

/// The topics of each user. Where users share a count, the topics have no names.
type Topics = HashMap<Option<Arc<str>>, HashSet<Box<str>>>;

/// The topics of each user.
#[derive(Debug, Default)]
pub(crate) struct Reached(Mutex<Topics>);

impl Reached {
    /// Notes that a user adds to a topic. `false`: it would be one too many.
    pub(crate) fn has_room(&self, user: &User, topic: &str) -> bool {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = Some(Arc::clone(&user.name));
        let key = if users.contains_key(&name) || users.len() < MOST_USERS { name } else { None };
        let topics = users.entry(key).or_default();
        topics.contains(topic) || (topics.len() < MOST_TOPICS && topics.insert(topic.into()))
    }
}
