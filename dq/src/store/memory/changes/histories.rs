//! The histories of jobs, and what the topic keeps of them ↔ bytes.

use std::time::Duration;

use super::super::histories::History;
use super::super::topic::Topic;
use super::kind;
use super::read::{BadChanges, Damage, Reader};
use super::write::Groups;
use crate::job::JobId;
use crate::store::HistorySetting;
use crate::time::{Timestamp, millis_ceil};

impl Groups<'_> {
    /// A history, whole: until when it is kept, in milliseconds and one more, or 0, and its text.
    pub(super) fn history(&mut self, id: &JobId, history: &History) {
        self.named(kind::HISTORY, id.as_str());
        self.number(history.until.map_or(0, |until| until.as_millis() + 1));
        self.text(&history.text);
    }

    pub(super) fn history_gone(&mut self, id: &JobId) {
        self.named(kind::HISTORY_GONE, id.as_str());
    }

    pub(super) fn history_setting(&mut self, setting: HistorySetting) {
        self.cut();
        self.start(kind::HISTORY_SETTING);
        self.number(setting.moves as u64);
        self.number(millis_ceil(setting.after));
    }
}

impl Topic {
    pub(super) fn take_histories(&mut self, groups: &mut Groups<'_>) {
        if let Some(setting) = self.histories.take_setting() {
            groups.history_setting(setting);
        }
        for id in self.histories.take_touched() {
            match self.histories.get(&id) {
                Some(history) => groups.history(&id, history),
                None => groups.history_gone(&id),
            }
        }
    }

    pub(super) fn apply_histories(&mut self, reader: &mut Reader<'_>) -> Result<(), BadChanges> {
        while let Some(id) = reader.item()? {
            let until = reader.number()?.checked_sub(1).map(Timestamp::from_millis);
            let text = std::str::from_utf8(reader.bytes()?).map_err(|_| reader.bad(Damage::Name))?.to_owned();
            self.histories.restore(id, Some(History { text, until }));
        }
        Ok(())
    }

    pub(super) fn apply_histories_gone(&mut self, reader: &mut Reader<'_>) -> Result<(), BadChanges> {
        while let Some(id) = reader.item()? {
            self.histories.restore(id, None);
        }
        Ok(())
    }

    pub(super) fn apply_history_setting(&mut self, reader: &mut Reader<'_>) -> Result<(), BadChanges> {
        let (moves, after) = (reader.length()?, Duration::from_millis(reader.number()?));
        let setting = HistorySetting { moves, after }.check().map_err(|_| reader.bad(Damage::Number))?;
        self.histories.restore_setting(setting);
        match reader.byte()? {
            0 => Ok(()),
            other => Err(reader.bad(Damage::Flags(other))),
        }
    }
}
