//! The state of a topic as a whole, and what it keeps of histories ↔ bytes. Each setting is written as it is, the missing ones too.

use std::borrow::Cow;
use std::time::Duration;

use smol_str::SmolStr;

use super::kind;
use super::read::{BadChanges, Damage, Reader};
use super::write::Groups;
use crate::store::{
    Drain, HistorySetting, LONGEST_AUTHOR, LONGEST_REASON, LimitKind, Pause, TopicDelay, TopicLimit, TopicState,
};
use crate::time::{Timestamp, millis_ceil};

const PAUSE: &str = "pause";
/// With the name of a group behind it: its pause.
const PAUSE_OF: &str = "pause:";
const DRAIN: &str = "drain";
const DELAY: &str = "delay";

/// The setting is there.
const IS_SET: u8 = 1;
/// A number follows: the end of a pause, or the delay.
const HAS_NUMBER: u8 = 1 << 1;
/// A text follows: the value of a limit.
const HAS_VALUE: u8 = 1 << 2;

/// The longest value of a limit, in bytes.
const LONGEST_VALUE: usize = 64;

/// A setting, as it is written.
struct Entry<'a> {
    since: Timestamp,
    number: Option<u64>,
    value: Option<Cow<'a, str>>,
    by: &'a str,
    reason: &'a str,
}

impl<'a> Entry<'a> {
    fn of_pause(Pause { reason, until, by, since }: &'a Pause) -> Self {
        Self { since: *since, number: until.map(Timestamp::as_millis), value: None, by, reason }
    }

    fn pause(self) -> Pause {
        Pause {
            reason: self.reason.to_owned(),
            until: self.number.map(Timestamp::from_millis),
            by: self.by.to_owned(),
            since: self.since,
        }
    }
}

impl Groups<'_> {
    /// The pause of a group, or that it has none.
    pub(super) fn pause_of_group(&mut self, name: &str, pause: Option<&Pause>) {
        self.named(kind::STATE, &format!("{PAUSE_OF}{name}"));
        self.entry(pause.map(Entry::of_pause).as_ref());
    }

    pub(super) fn state(&mut self, state: &TopicState) {
        let TopicState { pause, drain, delay, limits: _ } = state;
        let pause = pause.as_ref().map(Entry::of_pause);
        let drain = drain.as_ref().map(|Drain { reason, by, since }| Entry {
            since: *since,
            number: None,
            value: None,
            by,
            reason,
        });
        let delay = delay.as_ref().map(|TopicDelay { delay, by, since }| Entry {
            since: *since,
            number: Some(millis_ceil(*delay)),
            value: None,
            by,
            reason: "",
        });
        self.cut();
        self.start(kind::STATE);
        for (name, entry) in [(PAUSE, &pause), (DRAIN, &drain), (DELAY, &delay)] {
            self.text(name);
            self.entry(entry.as_ref());
        }
        for kind in LimitKind::ALL {
            let set = state.limit(kind).map(|TopicLimit { limit, reason, by, since }| Entry {
                since: *since,
                number: None,
                value: Some(limit.stored().into()),
                by,
                reason,
            });
            self.text(kind.name());
            self.entry(set.as_ref());
        }
    }

    pub(super) fn history_setting(&mut self, setting: HistorySetting) {
        self.cut();
        self.start(kind::HISTORY_SETTING);
        self.number(setting.moves as u64);
        self.number(millis_ceil(setting.after));
    }

    fn entry(&mut self, entry: Option<&Entry<'_>>) {
        let Some(&Entry { since, number, ref value, by, reason }) = entry else { return self.into.push(0) };
        self.into.push(IS_SET | number.map_or(0, |_| HAS_NUMBER) | value.as_ref().map_or(0, |_| HAS_VALUE));
        self.number(since.as_millis());
        if let Some(number) = number {
            self.number(number);
        }
        if let Some(value) = value {
            self.text(value);
        }
        self.text(by);
        self.text(reason);
    }
}

impl<'a> Reader<'a> {
    /// Reads the settings of a group into `state`, and the pauses of groups of jobs.
    pub(super) fn state(
        &mut self,
        state: &mut TopicState,
        mut pause_of_group: impl FnMut(SmolStr, Option<Pause>),
    ) -> Result<(), BadChanges> {
        loop {
            match self.bytes()? {
                b"" => return Ok(()),
                name if name == PAUSE.as_bytes() => state.pause = self.entry()?.map(Entry::pause),
                name if name.starts_with(PAUSE_OF.as_bytes()) => {
                    let name = std::str::from_utf8(&name[PAUSE_OF.len()..]).map_err(|_| self.bad(Damage::Name))?;
                    pause_of_group(name.into(), self.entry()?.map(Entry::pause));
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
                name => {
                    let kind = LimitKind::ALL.into_iter().find(|kind| name == kind.name().as_bytes());
                    let kind = kind.ok_or_else(|| self.bad(Damage::Name))?;
                    let set = match self.entry()? {
                        None => None,
                        Some(Entry { since, value, by, reason, .. }) => {
                            let limit = value.and_then(|value| kind.stored(&value));
                            let limit = limit.ok_or_else(|| self.bad(Damage::Number))?;
                            Some(TopicLimit { limit, reason: reason.to_owned(), by: by.to_owned(), since })
                        }
                    };
                    state.replace_limit(kind, set);
                }
            }
        }
    }

    fn entry(&mut self) -> Result<Option<Entry<'a>>, BadChanges> {
        let flags = self.byte()?;
        if flags == 0 {
            return Ok(None);
        }
        if flags & !(HAS_NUMBER | HAS_VALUE) != IS_SET {
            return Err(self.bad(Damage::Flags(flags)));
        }
        let since = Timestamp::from_millis(self.number()?);
        let number = if flags & HAS_NUMBER == 0 { None } else { Some(self.number()?) };
        let value = if flags & HAS_VALUE == 0 { None } else { Some(self.short(LONGEST_VALUE)?.into()) };
        let (by, reason) = (self.short(LONGEST_AUTHOR)?, self.short(LONGEST_REASON)?);
        Ok(Some(Entry { since, number, value, by, reason }))
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
