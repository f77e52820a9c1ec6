//! The step `import` as its script takes it (rule 27).

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::record_notes::{RecordNotes, letters};
use super::reply::{Reply, malformed};
use super::scripts::ScriptCall;
use crate::job::State;
use crate::store::limits::highest_order;
use crate::store::{BatchAnswer, Import, ImportOutcome, JobCopy, OnDuplicate, StoreError};

/// Which copies of a batch are not sent, because an earlier one has their id.
pub(super) struct Repeats(Vec<bool>);

impl Repeats {
    fn of(copies: &[JobCopy]) -> Self {
        let mut named = HashSet::with_hasher(FixedState::default());
        let is_repeated = |copy: &JobCopy| !named.insert((copy.is_broadcast, copy.id.clone()));
        Self(copies.iter().map(is_repeated).collect())
    }
}

/// Whether a copy enters the index of schedules.
pub(super) fn is_schedule(copy: &JobCopy) -> bool {
    !copy.is_broadcast && copy.id.schedule_name().is_some()
}

/// Adds the arguments of an import to a call that has its keys.
pub(super) fn write(mut call: ScriptCall, number: u64, import: Import) -> (ScriptCall, Repeats) {
    let repeats = Repeats::of(&import.copies);
    let sent = import.copies.into_iter().zip(&repeats.0).filter(|(_, is_repeated)| !**is_repeated);
    let copies: Vec<_> = sent.map(|(copy, _)| copy.into_sound()).collect();
    let notes = RecordNotes::of(copies.iter().map(|copy| &copy.record));
    let on_duplicate = match import.on_duplicate {
        OnDuplicate::Reject => "r",
        OnDuplicate::Keep | OnDuplicate::Extend { .. } => "k",
        OnDuplicate::Replace => "p",
    };
    let has_schedules = copies.iter().any(is_schedule);
    let takes_ids = copies.iter().any(|copy| copy.taken_until.is_some());
    let flags = letters(notes.letters().into_iter().chain([(has_schedules, 'h'), (takes_ids, 'u')]));
    let longest = notes.longest.next_power_of_two();
    call.push((number, on_duplicate, flags, longest, import.fence.0, highest_order(&copies)));
    for JobCopy { state, is_broadcast, id, at, crashes, record, taken_until } in &copies {
        let letter = if *is_broadcast { "b" } else { state.letter() };
        let taken = taken_until.map(|until| until.as_millis().to_string()).unwrap_or_default();
        call.push((letter, id.as_str(), at.as_millis(), crashes, record.as_bytes().as_ref(), taken));
    }
    (call, repeats)
}

/// Reads the answer.
pub(super) fn imported(reply: Reply, repeats: &Repeats) -> Result<BatchAnswer<ImportOutcome>, StoreError> {
    reply.batch('i', |codes, _| {
        let mut letters = codes.chars();
        let next = |is_repeated: &bool| match is_repeated {
            true => Ok(ImportOutcome::Repeated),
            false => letters.next().and_then(outcome).ok_or_else(|| malformed("import", "an outcome is missing")),
        };
        repeats.0.iter().map(next).collect()
    })
}

fn outcome(letter: char) -> Option<ImportOutcome> {
    Some(match letter {
        'A' => ImportOutcome::Added,
        '-' => ImportOutcome::NotDone,
        letter if letter.is_ascii_uppercase() => {
            ImportOutcome::Replaced(State::of_letter(letter.to_ascii_lowercase())?)
        }
        letter => ImportOutcome::Exists(State::of_letter(letter)?),
    })
}
