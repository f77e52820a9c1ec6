//! The step `change` as its script takes it (rule 28).

use super::record_notes::letters;
use super::reply::Reply;
use super::scripts::ScriptCall;
use super::told::Told;
use super::{due_text, metadata_bytes, millis};
use crate::job::{Metadata, State};
use crate::store::{
    BatchAnswer, ChangeKind, ChangeOutcome, ChangeVerdict, JobChange, Numbered, OptionChange, StoreError, escaped,
};

/// Adds the arguments of a batch to a call that has its keys.
pub(super) fn write(mut call: ScriptCall, batch: &Numbered<JobChange>) -> ScriptCall {
    let grows = |item: &JobChange| matches!(item.what, ChangeKind::Update(_) | ChangeKind::Options(_));
    let retains = |item: &JobChange| matches!(&item.what, ChangeKind::Options(options) if options.retain.is_some_and(|retain| !retain.is_zero()));
    call.push((batch.number, letters([(batch.items.iter().any(grows), 'u'), (batch.items.iter().any(retains), 'r')])));
    for JobChange { id, what, if_version, by } in &batch.items {
        let (verb, argument) = match what {
            ChangeKind::Reschedule(due) => ("r", due_text(*due).into_bytes()),
            ChangeKind::ExtendBy(delay) => ("e", millis(*delay).to_string().into_bytes()),
            ChangeKind::RunNow => ("n", Vec::new()),
            ChangeKind::Update(record) => ("u", record.payload_bytes().to_vec()),
            ChangeKind::Options(options) => ("o", written(options)),
        };
        let version = if_version.map(|version| version.to_string()).unwrap_or_default();
        call.push((verb, id.as_str(), version, escaped(by.as_deref().unwrap_or_default()), argument));
    }
    call
}

/// Which options change, as letters and a colon, then metadata that have them.
fn written(options: &OptionChange) -> Vec<u8> {
    let changed = [(options.retry.is_some(), 'r'), (options.headers.is_some(), 'h'), (options.retain.is_some(), 'k')];
    let mut text = (letters(changed) + ":").into_bytes();
    text.extend(metadata_bytes(options.of(Metadata::default())));
    text
}

/// Reads the answer.
pub(super) fn changed(reply: Reply, count: usize) -> Result<BatchAnswer<ChangeOutcome>, StoreError> {
    reply.batch('g', |codes, _| Told::new(codes).of_batch("change", count, outcome))
}

fn outcome(told: &mut Told<'_>) -> Option<ChangeOutcome> {
    let found = match told.letter()? {
        '-' => None,
        letter => Some(State::of_letter(letter)?),
    };
    let verdict = match told.letter()? {
        '+' => ChangeVerdict::Changed,
        '-' => ChangeVerdict::Refused,
        'v' => ChangeVerdict::OtherVersion,
        'm' => ChangeVerdict::LastVersion,
        'l' => ChangeVerdict::Later,
        _ => return None,
    };
    let (version, due) = told.version_and_due()?;
    Some(ChangeOutcome { found, verdict, version, due })
}
