//! The names and numbers of the protocol (section 1).

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use dq_grammar::{InvalidName, check_app, check_topic};
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Makes a name.
            ///
            /// # Errors
            /// [`InvalidName`] if the text is empty, is longer than 128 bytes, has a character that is not allowed, or is `.` or `..`.
            pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidName> {
                let name = name.as_ref();
                $check(name)?;
                Ok(Self(name.into()))
            }

            /// A name that a store has, perhaps since before [`new`](Self::new) refused it.
            pub(crate) fn stored(name: &str) -> Result<Self, InvalidName> {
                Self::new(name).or_else(|bad| if matches!(name, "." | "..") { Ok(Self(name.into())) } else { Err(bad) })
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

name!(
    /// The name of an app: 1 to 128 bytes of `A-Z a-z 0-9 . _ -`.
    // It has no `:`, so that app `a` with topic `b:c` and app `a:b` with topic `c` cannot share their keys.
    AppName, check_app
);
name!(
    /// The name of a topic: 1 to 128 bytes of `A-Z a-z 0-9 . _ : -`.
    TopicName, check_topic
);

/// A topic of an app: a store keeps everything of it together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicKey {
    /// The app.
    pub app: AppName,
    /// The topic.
    pub topic: TopicName,
}

impl fmt::Display for TopicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.app, self.topic)
    }
}

macro_rules! random_name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Makes an identity from a text that was read from a store or drawn from an
            /// [`Environment`](crate::environment::Environment).
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(text.as_ref().into())
            }

            /// The identity as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

random_name!(
    /// A node: a random identity, new for each start. Its text begins with the host, the id of the process, the version of dq and the
    /// time of the start, for people; two nodes may have all that in common.
    NodeId
);
random_name!(
    /// A producer: a random identity for each root provider and topic, new in each process.
    ProducerId
);

/// A number that grows from run to run of a job, even across a failover of the store; see
/// [`Job::fence`](crate::Job::fence).
// It is `max(last + 1, the store's clock in µs)`. All jobs of one transfer have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A sequence number: it counts the claiming steps of a node on a topic (transfer, sweep, reconcile, release).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The next number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names one run: the fence of the claim and the due time of the claimed job, as text `fence:due`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// The fence of the claim.
    pub fence: Fence,
    /// The due time; for a swept UNACKED job, the time it was parked. A rollback restores it.
    pub due: Timestamp,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.fence, self.due.as_millis())
    }
}

/// The text is not a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a token: expected `fence:due`")]
pub struct InvalidToken(String);

impl FromStr for Token {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let bad = || InvalidToken(text.chars().take(100).collect());
        let (fence, due) = text.split_once(':').ok_or_else(bad)?;
        let number = |part: &str| part.parse::<u64>().map_err(|_| bad());
        Ok(Self { fence: Fence(number(fence)?), due: Timestamp::from_millis(number(due)?) })
    }
}

impl Fence {
    /// The fence after this one at `micros`, the clock of the store (rule 9). Fences grow up to their limit. What comes after that follows
    /// the clock, so that runs keep different fences.
    pub(crate) const fn next_at(self, micros: u64) -> Self {
        if self.0 >= micros && self.0 < Self::LAST.0 { Self(self.0 + 1) } else { Self(micros) }
    }

    /// The last fence that a claim gets.
    pub(crate) const LAST: Self = Self(super::limits::FENCE.last());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_store_has_is_read_though_no_door_takes_it() {
        for name in [".", ".."] {
            assert!(TopicName::new(name).is_err() && AppName::new(name).is_err());
            assert_eq!(
                (TopicName::stored(name).unwrap().as_str(), AppName::stored(name).unwrap().as_str()),
                (name, name)
            );
        }
        assert!(TopicName::stored("a b").is_err() && TopicName::stored("").is_err());
    }

    #[test]
    fn a_token_reads_back() {
        let token = Token { fence: Fence(1_763_000_000_000_001), due: Timestamp::from_millis(42) };
        assert_eq!(token.to_string().parse(), Ok(token));
        assert!("12".parse::<Token>().is_err());
    }

    #[test]
    fn fences_grow_up_to_their_limit_and_then_follow_the_clock() {
        let last = 1 << 52;
        let next = |fence, micros| Fence(fence).next_at(micros).0;
        assert_eq!((next(5, 9), next(9, 9), next(1 << 51, 9)), (9, 10, (1 << 51) + 1));
        assert_eq!((next(last - 1, 9), next(last, 9), next(u64::MAX, 9)), (last, 9, 9));
    }
}
