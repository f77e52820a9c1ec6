//! The state of a topic as a whole, and what it keeps of histories ↔ bytes. Each setting is written as it is, the missing ones too.

use std::time::Duration;

use super::kind;
use super::read::{BadChanges, Damage, Reader};
use super::write::Groups;
use crate::store::{
    Drain, HistorySetting, LONGEST_AUTHOR, LONGEST_REASON, Pause, TopicConcurrency, TopicDelay, TopicState,
};
use crate::time::{Timestamp, millis_ceil};

const PAUSE: &str = "pause";
const DRAIN: &str = "drain";
const DELAY: &str = "delay";
const CONCURRENCY: &str = "concurrency";

/// The setting is there.
const IS_SET: u8 = 1;
/// A number follows: the end of a pause, the delay, or how many jobs run at a time.
const HAS_NUMBER: u8 = 1 << 1;

/// A setting, as it is written.
struct Entry<'a> {
    since: Timestamp,
    number: Option<u64>,
    by: &'a str,
    reason: &'a str,
}

impl Groups<'_> {
    pub(super) fn state(&mut self, state: &TopicState) {
        let TopicState { pause, drain, delay, concurrency } = state;
        let pause = pause.as_ref().map(|Pause { reason, until, by, since }| Entry {
            since: *since,
            number: until.map(Timestamp::as_millis),
            by,
            reason,
        });
        let drain = drain.as_ref().map(|Drain { reason, by, since }| Entry { since: *since, number: None, by, reason });
        let delay = delay.as_ref().map(|TopicDelay { delay, by, since }| Entry {
            since: *since,
            number: Some(millis_ceil(*delay)),
            by,
            reason: "",
        });
        let concurrency = concurrency.as_ref().map(|TopicConcurrency { limit, by, since }| Entry {
            since: *since,
            number: Some(*limit as u64),
            by,
            reason: "",
        });
        self.cut();
        self.start(kind::STATE);
        for (name, entry) in [(PAUSE, &pause), (DRAIN, &drain), (DELAY, &delay), (CONCURRENCY, &concurrency)] {
            self.text(name);
            self.entry(entry.as_ref());
        }
    }

    pub(super) fn history_setting(&mut self, setting: HistorySetting) {
        self.cut();
        self.start(kind::HISTORY_SETTING);
        self.number(setting.moves as u64);
        self.number(millis_ceil(setting.after));
    }

    fn entry(&mut self, entry: Option<&Entry<'_>>) {
        let Some(&Entry { since, number, by, reason }) = entry else { return self.into.push(0) };
        self.into.push(IS_SET | number.map_or(0, |_| HAS_NUMBER));
        self.number(since.as_millis());
        if let Some(number) = number {
            self.number(number);
        }
        self.text(by);
        self.text(reason);
    }
}

impl<'a> Reader<'a> {
    /// Reads the settings of a group into `state`.
    pub(super) fn state(&mut self, state: &mut TopicState) -> Result<(), BadChanges> {
        loop {
            match self.bytes()? {
                b"" => return Ok(()),
                name if name == PAUSE.as_bytes() => {
                    state.pause = self.entry()?.map(|Entry { since, number, by, reason }| Pause {
                        reason: reason.to_owned(),
                        until: number.map(Timestamp::from_millis),
                        by: by.to_owned(),
                        since,
                    });
                }
                name if name == DRAIN.as_bytes() => {
                    state.drain = self.entry()?.map(|Entry { since, by, reason, .. }| Drain {
                        reason: reason.to_owned(),
                        by: by.to_owned(),
                        since,
                    });
                }
                name if name == DELAY.as_bytes() => {
                    state.delay = self.entry()?.map(|Entry { since, number, by, .. }| TopicDelay {
                        delay: Duration::from_millis(number.unwrap_or_default()),
                        by: by.to_owned(),
                        since,
                    });
                }
                name if name == CONCURRENCY.as_bytes() => {
                    state.concurrency = self.entry()?.map(|Entry { since, number, by, .. }| TopicConcurrency {
                        limit: usize::try_from(number.unwrap_or_default()).unwrap_or(usize::MAX).max(1),
                        by: by.to_owned(),
                        since,
                    });
                }
                _ => return Err(self.bad(Damage::Name)),
            }
        }
    }

    fn entry(&mut self) -> Result<Option<Entry<'a>>, BadChanges> {
        let flags = self.byte()?;
        if flags == 0 {
            return Ok(None);
        }
        if flags & !HAS_NUMBER != IS_SET {
            return Err(self.bad(Damage::Flags(flags)));
        }
        let since = Timestamp::from_millis(self.number()?);
        let number = if flags & HAS_NUMBER == 0 { None } else { Some(self.number()?) };
        let (by, reason) = (self.short(LONGEST_AUTHOR)?, self.short(LONGEST_REASON)?);
        Ok(Some(Entry { since, number, by, reason }))
    }

    pub(super) fn history_setting(&mut self) -> Result<HistorySetting, BadChanges> {
        let (moves, after) = (self.length()?, Duration::from_millis(self.number()?));
        let setting = HistorySetting { moves, after }.check().map_err(|_| self.bad(Damage::Number))?;
        match self.byte()? {
            0 => Ok(setting),
            other => Err(self.bad(Damage::Flags(other))),
        }
    }

    /// A text of at most so many bytes.
    fn short(&mut self, most: usize) -> Result<&'a str, BadChanges> {
        let text = std::str::from_utf8(self.bytes()?).ok().filter(|text| text.len() <= most);
        text.ok_or_else(|| self.bad(Damage::Name))
    }
}
