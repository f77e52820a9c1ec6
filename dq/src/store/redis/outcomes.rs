//! Puts the outcomes of a settle into the order that its script wants: acks without new metadata first, by their tokens. Most
//! outcomes are such acks, and they need only id and token.

use std::collections::HashSet;

use super::scripts::ScriptCall;
use super::{metadata_bytes, micros};
use crate::store::step::{Change, Outcome, RejoinDue, Verdict};

/// The call of a settle, and what its answer needs to be matched with the request.
pub(super) struct Sorted {
    pub(super) call: ScriptCall,
    /// For each outcome in the call, its position in the request.
    pub(super) places: Vec<usize>,
    /// The verdicts in the order of the request. An outcome in the call is done unless the script says otherwise.
    pub(super) verdicts: Vec<Verdict>,
}

/// Adds the outcomes to the call. A second outcome for the same run would find its row gone, so it is stale and not
/// sent.
pub(super) fn sort(mut call: ScriptCall, outcomes: Vec<Outcome>) -> Sorted {
    let mut verdicts = vec![Verdict::Done; outcomes.len()];
    let mut named = HashSet::with_capacity(outcomes.len());
    let (mut acks, mut others) = (Vec::with_capacity(outcomes.len()), Vec::new());
    for (place, outcome) in outcomes.iter().enumerate() {
        if !named.insert((outcome.id.as_str(), outcome.token)) {
            verdicts[place] = Verdict::Stale;
        } else if outcome.change == Change::Ack && outcome.metadata.is_none() {
            acks.push(place);
        } else {
            others.push(place);
        }
    }
    // Jobs that were claimed together share a token, which is sent once.
    acks.sort_by_key(|place| outcomes[*place].token);
    let same_token = |a: &usize, b: &usize| outcomes[*a].token == outcomes[*b].token;
    call.push(acks.len());
    call.push(acks.chunk_by(same_token).count());
    for place in &acks {
        call.push(outcomes[*place].id.as_str());
    }
    for group in acks.chunk_by(same_token) {
        call.push(outcomes[group[0]].token.to_string());
        call.push(group.len());
    }
    let mut places = acks;
    places.extend(&others);
    for place in others {
        let Outcome { id, token, change, metadata } = &outcomes[place];
        call.push(id.as_str());
        call.push(token.to_string());
        let (code, argument) = code_of(change);
        call.push(code);
        call.push(argument);
        call.push(metadata.clone().map(metadata_bytes).unwrap_or_default());
    }
    Sorted { call, places, verdicts }
}

/// The code of an outcome in the script (`lua/parts/leave.lua`), and its argument.
fn code_of(change: &Change) -> (&'static str, u64) {
    match *change {
        Change::Ack => ("a", 0),
        Change::Rejoin(RejoinDue::AsAdded) => ("j", 0),
        Change::Rejoin(RejoinDue::After(delay)) => ("J", micros(delay)),
        Change::Rejoin(RejoinDue::At(at)) => ("t", at.as_millis().min(super::LAST_MS)),
        Change::Retry(after) => ("r", micros(after)),
        Change::Rollback => ("b", 0),
        Change::Park => ("p", 0),
        Change::Dead => ("x", 0),
        Change::Drop => ("d", 0),
    }
}
