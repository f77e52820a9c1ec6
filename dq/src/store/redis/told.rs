//! Reads what the scripts tell of versions and due times: the texts of `lua/parts/edit.lua`.

use std::str::Chars;

use super::reply::malformed;
use crate::store::{Rate, StoreError, TopicFull, rate_in};
use crate::time::Timestamp;

/// The codes of a batch: letters, and behind some of them a version and a due time.
pub(super) struct Told<'a> {
    codes: Chars<'a>,
    last_due: Option<Timestamp>,
}

impl<'a> Told<'a> {
    pub(super) fn new(codes: &'a str) -> Self {
        Self { codes: codes.chars(), last_due: None }
    }

    /// What `read` makes of each outcome, to the end of the codes; `None` if it cannot read one.
    pub(super) fn all<T>(mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut outcomes = Vec::new();
        while !self.codes.as_str().is_empty() {
            outcomes.push(read(&mut self)?);
        }
        Some(outcomes)
    }

    /// The same for a batch of so many items.
    pub(super) fn of_batch<T>(
        self,
        operation: &'static str,
        count: usize,
        read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<Vec<T>, StoreError> {
        let outcomes = self.all(read).filter(|outcomes| outcomes.len() == count);
        outcomes.ok_or_else(|| malformed(operation, "its outcomes do not match the batch"))
    }

    pub(super) fn letter(&mut self) -> Option<char> {
        self.codes.next()
    }

    /// What ends with a semicolon.
    fn field(&mut self) -> Option<&'a str> {
        let (text, rest) = self.codes.as_str().split_once(';')?;
        self.codes = rest.chars();
        Some(text)
    }

    /// `WAITING,LIMIT;`
    pub(super) fn full(&mut self) -> Option<TopicFull> {
        let (waiting, limit) = self.field()?.split_once(',')?;
        Some(TopicFull { waiting: waiting.parse().ok()?, limit: limit.parse().ok()? })
    }

    /// `JOBS/MS/BURST;`
    pub(super) fn rate(&mut self) -> Option<Rate> {
        rate_in(self.field()?)
    }

    /// `VERSION;`, `VERSION,DUE;`, or `VERSION,;`, which means the due time of the last outcome that had one.
    pub(super) fn version_and_due(&mut self) -> Option<(u32, Option<Timestamp>)> {
        let text = self.field()?;
        let (version, due) = text.split_once(',').map_or((text, None), |(version, due)| (version, Some(due)));
        let version = if version.is_empty() { 0 } else { u32::from_str_radix(version, 16).ok()? };
        let due = match due {
            None => None,
            Some("") => Some(self.last_due?),
            Some(due) => Some(Timestamp::from_millis(u64::from_str_radix(due, 16).ok()?)),
        };
        self.last_due = due.or(self.last_due);
        Some((version, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_time_that_is_not_told_is_the_last_one() {
        let told = Told::new("a1f,10;b;c2,;d0,11;").all(|told| Some((told.letter()?, told.version_and_due()?)));
        let at = |ms| Some(Timestamp::from_millis(ms));
        let expected = vec![('a', (31, at(16))), ('b', (0, None)), ('c', (2, at(16))), ('d', (0, at(17)))];
        assert_eq!(told, Some(expected));
    }

    #[test]
    fn a_text_of_another_form_is_refused() {
        for codes in ["a", "a1", "a,;", "ax;", "a1,x;", "a100000000;"] {
            assert_eq!(Told::new(codes).all(|told| Some((told.letter()?, told.version_and_due()?))), None, "{codes}");
        }
    }
}
