//! The state of a topic as a whole, as the scripts keep it (rule 29).
//!
//! Each setting is one field of `meta`, and the pause of a group is a text in `grouped`: `SINCE:VALUE:BY:REASON`. SINCE is a time in ms. VALUE is the end of a pause in ms, the
//! default delay in ms, or the value of a limit, whose name the field has; without it the field is empty. In BY and REASON `%` and two hexadecimal digits stand for a byte that would
//! disturb a script, an error or a kept answer: a control character, a blank, `%`, `:` or `;`; or for one that is not ASCII.

use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::reply::{Reply, Text, malformed};
use super::scripts::ScriptCall;
use super::{due_text, millis};
use crate::job::GroupName;
use crate::store::{
    BatchAnswer, Drain, LimitKind, Pause, SetTopic, StoreError, TopicChange, TopicDelay, TopicLimit, TopicSet,
    TopicState,
};
use crate::time::Timestamp;

const DISTURBING: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b':').add(b';');

/// A setting, as a field of `meta` has it.
#[derive(Default)]
struct SettingEntry {
    since: Timestamp,
    value: String,
    by: String,
    reason: String,
}

impl SettingEntry {
    /// The setting in this text; `None` if the text is empty. What another program wrote counts as a reason, because a script
    /// obeys it.
    fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let mut parts = text.splitn(4, ':');
        let mut next = || parts.next().unwrap_or_default();
        let (since, value, by, reason) = (next(), next(), next(), next());
        let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Some(Self {
            since: Timestamp::from_millis(since.parse().unwrap_or_default()),
            value: value.into(),
            by: decoded(by),
            reason: decoded(if reason.is_empty() && by.is_empty() { text } else { reason }),
        })
    }

    fn number(&self) -> Option<u64> {
        self.value.parse().ok()
    }
}

pub(super) fn pause(text: &str) -> Option<Pause> {
    let entry = SettingEntry::read(text)?;
    let until = entry.number().map(Timestamp::from_millis);
    Some(Pause { reason: entry.reason, until, by: entry.by, since: entry.since })
}

fn drain(text: &str) -> Option<Drain> {
    let SettingEntry { since, by, reason, .. } = SettingEntry::read(text)?;
    Some(Drain { reason, by, since })
}

fn delay(text: &str) -> Option<TopicDelay> {
    let entry = SettingEntry::read(text)?;
    let delay = Duration::from_millis(entry.number().unwrap_or_default());
    Some(TopicDelay { delay, by: entry.by, since: entry.since })
}

fn limit(kind: LimitKind, text: &str) -> Option<TopicLimit> {
    let SettingEntry { since, value, by, reason } = SettingEntry::read(text)?;
    Some(TopicLimit { limit: kind.stored(&value)?, reason, by, since })
}

/// The settings in an answer, each empty if it is missing: pause, drain, delay, and the limits in the order of their kinds.
pub(super) type Settings = [Text; 3 + LimitKind::ALL.len()];

/// The state with these settings. A pause that has ended by itself is none.
pub(super) fn state_of(
    [Text(paused), Text(draining), Text(usual), limits @ ..]: Settings,
    clock: Timestamp,
) -> TopicState {
    let limits = LimitKind::ALL.into_iter().zip(limits).filter_map(|(kind, Text(text))| limit(kind, &text)).collect();
    TopicState { pause: pause(&paused), drain: drain(&draining), delay: delay(&usual), limits }.at(clock)
}

/// Reads what `transfer`, `sweep` and `scan` answer: the settings, or nothing where there are none. The number after them is
/// that of the jobs that a draining topic still runs.
pub(super) fn told(reply: &mut Reply, clock: Timestamp) -> Result<(Option<Box<TopicState>>, usize), StoreError> {
    let Some((settings, left)) = reply.read::<Option<_>>()? else { return Ok((None, 0)) };
    let state = state_of(settings, clock);
    Ok(((!state.is_default()).then(|| Box::new(state)), left))
}

/// The error of an add or import that a draining topic refuses; `field` is what the script answers.
pub(super) fn draining(field: &str) -> StoreError {
    let SettingEntry { by, reason, .. } = SettingEntry::read(field).unwrap_or_default();
    StoreError::Draining { reason, by }
}

/// Adds the arguments of a `set` to a call that has its keys.
pub(super) fn write(call: ScriptCall, number: u64, set: &SetTopic) -> ScriptCall {
    let (field, value, reason) = match &set.change {
        TopicChange::Pause { reason, until, .. } => {
            ("paused", until.map(due_text).unwrap_or_default(), reason.as_str())
        }
        TopicChange::Resume { .. } => ("paused", "-".into(), ""),
        TopicChange::Drain { reason } => ("draining", String::new(), reason.as_str()),
        TopicChange::Undrain => ("draining", "-".into(), ""),
        TopicChange::Delay(None) => ("delay", "-".into(), ""),
        TopicChange::Delay(Some(delay)) => ("delay", format!("={}", millis(*delay)), ""),
        TopicChange::ClearLimit(kind) => (kind.name(), "-".into(), ""),
        TopicChange::Limit { limit, reason } => (limit.kind().name(), format!("={}", limit.stored()), reason.as_str()),
    };
    let encoded = |text| utf8_percent_encode(text, DISTURBING);
    let author = format!("{}:{}", encoded(&set.by), encoded(reason));
    call.arg((number, field, value, author, set.change.group().map_or("", GroupName::as_str)))
}

/// Reads the answer of a `set`.
pub(super) fn set(reply: Reply, change: &TopicChange) -> Result<BatchAnswer<TopicSet>, StoreError> {
    let state = |text: &str| {
        let mut state = TopicState::default();
        match change {
            TopicChange::Pause { .. } | TopicChange::Resume { .. } => state.pause = pause(text),
            TopicChange::Drain { .. } | TopicChange::Undrain => state.drain = drain(text),
            TopicChange::Delay(_) => state.delay = delay(text),
            TopicChange::Limit { limit: set, .. } => state.limits.extend(limit(set.kind(), text)),
            TopicChange::ClearLimit(kind) => state.limits.extend(limit(*kind, text)),
        }
        state
    };
    reply.batch('s', |codes, _| {
        let both = codes.split_once(';').ok_or_else(|| malformed("set", "it does not say what was there before"));
        both.map(|(before, now)| vec![TopicSet { before: state(before), now: state(now) }])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_comes_back_and_disturbs_no_script() {
        for text in ["", "plain", "100 % off: a;b\r\n\t\0\u{7f}", "%", "%2", "%zz", "预订系统 – übermorgen", "%20"]
        {
            let encoded = utf8_percent_encode(text, DISTURBING).to_string();
            assert!(!encoded.contains(|c: char| c.is_ascii_control() || " :;".contains(c)), "{encoded}");
            assert_eq!(pause(&format!("1::x:{encoded}")).unwrap().reason, text);
        }
    }

    #[test]
    fn what_another_program_wrote_is_read_without_a_panic() {
        for text in ["", "x", ":", "::", ":::", "1", "%", "%é", "9999999999999999999999:x:y:z", "1:2:3:4:5"] {
            assert_eq!(pause(text).is_some(), !text.is_empty(), "{text}");
        }
        assert_eq!(pause("by hand").unwrap().reason, "by hand");
    }
}
