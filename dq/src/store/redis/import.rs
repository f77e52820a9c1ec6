//! The step `import` as its script takes it (rule 27).

use std::collections::HashSet;

use foldhash::fast::FixedState;
use redis::Value;

use super::record_notes::{RecordNotes, letters};
use super::reply::{Reply, codes, malformed, state};
use super::scripts::ScriptCall;
use super::topic_state::full;
use crate::job::{GroupName, JobId};
use crate::store::{
    BatchAnswer, CopyPlace, Import, ImportOutcome, JobCopy, OnDuplicate, StoreError, TooHeavy, rate_in,
};

/// Which copies of a batch are not sent, because an earlier one has their id.
pub(super) struct Repeats(Vec<bool>);

impl Repeats {
    fn of(copies: &[JobCopy]) -> Self {
        let mut named = HashSet::with_hasher(FixedState::default());
        let is_repeated = |copy: &JobCopy| !named.insert((copy.place == CopyPlace::Broadcast, copy.id.clone()));
        Self(copies.iter().map(is_repeated).collect())
    }
}

/// Whether a copy enters the index of schedules.
pub(super) fn is_schedule(copy: &JobCopy) -> bool {
    copy.place != CopyPlace::Broadcast && copy.id.schedule_name().is_some()
}

/// Adds the arguments of an import to a call that has its keys.
pub(super) fn write(mut call: ScriptCall, number: u64, import: Import) -> (ScriptCall, Repeats) {
    let repeats = Repeats::of(&import.copies);
    let sent = import.copies.into_iter().zip(&repeats.0).filter(|(_, is_repeated)| !**is_repeated);
    let copies: Vec<_> = sent.map(|(copy, _)| copy.into_sound()).collect();
    let notes = RecordNotes::of(copies.iter().map(|copy| &copy.record));
    call.push(number);
    call.push(match import.on_duplicate {
        OnDuplicate::Reject => "r",
        OnDuplicate::Keep | OnDuplicate::Extend { .. } => "k",
        OnDuplicate::Replace => "p",
    });
    let has_schedules = copies.iter().any(is_schedule);
    let takes_ids = copies.iter().any(|copy| copy.taken_until.is_some());
    call.push(letters(notes.letters().into_iter().chain([(has_schedules, 'h'), (takes_ids, 'u')])));
    call.push(notes.longest.next_power_of_two());
    call.push(import.fence.0);
    for copy in &copies {
        call.push(copy.place.letter());
        call.push(copy.id.as_str());
        call.push(copy.at.as_millis());
        call.push(copy.crashes);
        call.push(copy.record.as_bytes().as_ref());
        call.push(copy.taken_until.map(|until| until.as_millis().to_string()).unwrap_or_default());
    }
    (call, repeats)
}

/// Reads the answer.
pub(super) fn imported(answer: Value, repeats: &Repeats) -> Result<BatchAnswer<ImportOutcome>, StoreError> {
    let mut reply = Reply::list("import", answer)?;
    let how = reply.text()?;
    if how == "late" {
        return Ok(BatchAnswer::Late);
    }
    let text = reply.text()?;
    if how == "full" {
        let full = full(&text).ok_or_else(|| malformed("import", "it does not say how many jobs wait"))?;
        return Err(match GroupName::new(reply.text()?) {
            Ok(group) => StoreError::GroupFull { group, full },
            Err(_) => StoreError::TopicFull(full),
        });
    }
    if how == "heavy" {
        return Err(too_heavy(&text, &mut reply)?);
    }
    let mut letters = codes(&text, 'i', "import")?.chars();
    let mut outcomes = Vec::with_capacity(repeats.0.len());
    for is_repeated in &repeats.0 {
        outcomes.push(match is_repeated {
            true => ImportOutcome::Repeated,
            false => letters.next().and_then(outcome).ok_or_else(|| malformed("import", "an outcome is missing"))?,
        });
    }
    Ok(BatchAnswer::Done(outcomes))
}

/// The error of a copy that is too heavy: the rate, its id, its weight, and the group whose rate it is, or nothing.
fn too_heavy(rate: &str, reply: &mut Reply) -> Result<StoreError, StoreError> {
    let (id, weight, group) = (reply.text()?, reply.text()?, reply.text()?);
    let heavy = || {
        let (weight, rate) = (weight.parse().ok()?, rate_in(rate)?);
        let heavy = TooHeavy { weight, rate, group: GroupName::new(group).ok() };
        Some(StoreError::TooHeavy { id: JobId::new(id).ok()?, heavy })
    };
    heavy().ok_or_else(|| malformed("import", "it does not say which job is too heavy"))
}

fn outcome(letter: char) -> Option<ImportOutcome> {
    Some(match letter {
        'A' => ImportOutcome::Added,
        '-' => ImportOutcome::NotDone,
        letter if letter.is_ascii_uppercase() => ImportOutcome::Replaced(state(letter.to_ascii_lowercase())?),
        letter => ImportOutcome::Exists(state(letter)?),
    })
}
