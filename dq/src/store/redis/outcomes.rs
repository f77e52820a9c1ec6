//! Puts the outcomes of a settle into the order that its script wants: acks without new metadata first, by their tokens. Most
//! outcomes are such acks, and they need only id and token.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::packed::list_of;
use super::record_notes::RecordNotes;
use super::scripts::ScriptCall;
use super::{metadata_bytes, micros, millis_of};
use crate::job::Value;
use crate::schedule::TickJob;
use crate::store::step::{Change, Ending, Outcome, RejoinDue, Tick, Verdict};
use crate::store::{FollowUpBatches, LinkOptions};

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
pub(super) fn sort(mut call: ScriptCall, outcomes: &[Outcome], options: LinkOptions) -> Sorted {
    let mut verdicts = vec![Verdict::Done; outcomes.len()];
    let mut named = HashSet::with_capacity_and_hasher(outcomes.len(), FixedState::default());
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
    call.push((acks.len(), acks.chunk_by(same_token).count()));
    for place in &acks {
        call.push(outcomes[*place].id.as_str());
    }
    for group in acks.chunk_by(same_token) {
        call.push((outcomes[group[0]].token.to_string(), group.len()));
    }
    // Ticks add jobs, so they come behind the outcomes of others.
    others.sort_by_key(|place| matches!(outcomes[*place].change, Change::Tick(_)));
    let mut places = acks;
    places.extend(&others);
    for place in others {
        let Outcome { id, token, change, metadata } = &outcomes[place];
        call.push((id.as_str(), token.to_string()));
        let (code, argument) = code_of(change);
        if options.keeps_seat(change) {
            call.push(format!("{code}+"));
        } else {
            call.push(code);
        }
        match argument {
            Argument::Number(number) => call.push(number),
            Argument::Packed(bytes) => call.push(bytes),
        };
        call.push(metadata.clone().map(metadata_bytes).unwrap_or_default());
    }
    Sorted { call, places, verdicts }
}

/// The argument of an outcome.
enum Argument {
    Number(u64),
    Packed(Vec<u8>),
}

/// The code of an outcome in the script (`lua/parts/leave.lua`), and its argument.
fn code_of(change: &Change) -> (&'static str, Argument) {
    let (code, number) = match change {
        Change::Then(ending, follow_ups) => {
            let code = if *ending == Ending::Ack { "a" } else { "x" };
            return (code, Argument::Packed(follow_ups_of(follow_ups)));
        }
        Change::Ack => ("a", 0),
        Change::Rejoin(RejoinDue::AsAdded) => ("j", 0),
        Change::Rejoin(RejoinDue::After(delay)) => ("J", micros(*delay)),
        Change::Rejoin(RejoinDue::At(at)) => ("t", millis_of(*at)),
        Change::Rejoin(RejoinDue::BackOff(delay)) => ("o", micros(*delay)),
        Change::Retry(after) => ("r", micros(*after)),
        Change::Rollback => ("b", 0),
        Change::Park => ("p", 0),
        Change::Dead => ("x", 0),
        Change::Drop => ("d", 0),
        Change::Tick(tick) => return ("n", Argument::Packed(packed(tick))),
    };
    (code, Argument::Number(number))
}

/// Follow-ups as the part `put_outbox` reads them: target and entry in turn.
fn follow_ups_of(follow_ups: &FollowUpBatches) -> Vec<u8> {
    let texts = follow_ups.parts().iter().flat_map(|(target, batch)| [target.as_str().as_bytes(), batch.as_bytes()]);
    list_of(&texts.map(Value::Text).collect::<Vec<_>>())
}

/// A tick as `put_jobs_of_tick` in `lua/parts/leave.lua` reads it: eight fields, then four of each job.
fn packed(tick: &Tick) -> Vec<u8> {
    let notes = RecordNotes::of(tick.jobs.iter().map(|job| &job.record));
    let longest = notes.longest.max(tick.schedule.as_bytes().len()) as u64;
    let (unless, skipped) =
        tick.unless.as_ref().map_or((&b""[..], &b""[..]), |(id, record)| (id.as_str().as_bytes(), record.as_bytes()));
    let flags = [notes.retains, notes.has_priorities, notes.has_groups].map(Value::Flag);
    // Zero is no time: the schedule ends.
    let mut fields = vec![Value::Number(tick.next.map_or(0, |next| millis_of(next).max(1)))];
    fields.extend(flags.into_iter().chain([Value::Number(longest)]));
    fields.extend([unless, skipped, tick.schedule.as_bytes()].map(Value::Text));
    for TickJob { id, due, deliver, record } in &tick.jobs {
        let [id, deliver] = [id.as_str(), deliver.letter()].map(|text| Value::Text(text.as_bytes()));
        fields.extend([id, deliver, Value::Number(millis_of(*due)), Value::Text(record.as_bytes())]);
    }
    list_of(&fields)
}
