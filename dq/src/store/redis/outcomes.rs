//! Puts the outcomes of a settle into the order that its script wants: acks without new metadata first, by their tokens. Most
//! outcomes are such acks, and they need only id and token.

use std::collections::HashSet;

use bytes::BufMut;
use foldhash::fast::FixedState;

use super::record_notes::RecordNotes;
use super::scripts::ScriptCall;
use super::{metadata_bytes, micros, millis_of};
use crate::store::step::{Change, Ending, Outcome, RejoinDue, Tick, Verdict};
use crate::store::{FollowUps, LinkOptions};

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
    call.push(acks.len());
    call.push(acks.chunk_by(same_token).count());
    for place in &acks {
        call.push(outcomes[*place].id.as_str());
    }
    for group in acks.chunk_by(same_token) {
        call.push(outcomes[group[0]].token.to_string());
        call.push(group.len());
    }
    // Ticks add jobs, so they come behind the outcomes of others.
    others.sort_by_key(|place| matches!(outcomes[*place].change, Change::Tick(_)));
    let mut places = acks;
    places.extend(&others);
    for place in others {
        let Outcome { id, token, change, metadata } = &outcomes[place];
        call.push(id.as_str());
        call.push(token.to_string());
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

/// Follow-ups as the part `put_outbox` reads them: little-endian numbers, and texts after their lengths.
fn follow_ups_of(follow_ups: &FollowUps) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(follow_ups.size() + 8 * follow_ups.parts().len() + 2);
    bytes.put_u16_le(follow_ups.parts().len() as u16);
    for (target, batch) in follow_ups.parts() {
        for text in [target.as_str().as_bytes(), batch.as_bytes()] {
            bytes.put_u32_le(u32::try_from(text.len()).expect("follow-ups are bounded"));
            bytes.put_slice(text);
        }
    }
    bytes
}

/// A tick as `put_tick` in `lua/parts/leave.lua` reads it: little-endian numbers, and texts behind their lengths.
fn packed(tick: &Tick) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(tick.size() + 64 * (tick.jobs.len() + 1));
    let text = |bytes: &mut Vec<u8>, text: &[u8]| {
        bytes.put_u32_le(u32::try_from(text.len()).expect("a record is bounded by the payload limit"));
        bytes.put_slice(text);
    };
    let notes = RecordNotes::of(tick.jobs.iter().map(|job| &job.record));
    // Zero is no time: the schedule ends.
    bytes.put_uint_le(tick.next.map_or(0, |next| millis_of(next).max(1)), 6);
    bytes.put_u8(u8::from(notes.retains) | u8::from(notes.has_priorities) << 1 | u8::from(notes.has_groups) << 2);
    bytes.put_u32_le(u32::try_from(notes.longest.max(tick.schedule.as_bytes().len())).unwrap_or(u32::MAX));
    let (unless, skipped) =
        tick.unless.as_ref().map_or((&b""[..], &b""[..]), |(id, record)| (id.as_str().as_bytes(), record.as_bytes()));
    text(&mut bytes, unless);
    text(&mut bytes, skipped);
    text(&mut bytes, tick.schedule.as_bytes());
    bytes.put_u16_le(tick.jobs.len() as u16);
    for job in &tick.jobs {
        bytes.put_u8(job.deliver.letter() as u8);
        bytes.put_uint_le(millis_of(job.due), 6);
        text(&mut bytes, job.id.as_str().as_bytes());
        text(&mut bytes, job.record.as_bytes());
    }
    bytes
}
