//! What follow-ups do in their topics, as an outbox, a journal and an export have it.

use std::time::Duration;

use dq::job::{Delivery, JobId, Record, TopicName};
use dq::store::{
    Due, FollowUpBatch, FollowUpBatches, MaxWaiting, MemberEnd, Membership, NewJob, OnDead, OnDuplicate, SetChange,
    SetVerb,
};
use dq::time::Timestamp;

use crate::draw::Draw;
use crate::grammar;

/// The topics that follow-ups are for.
pub const TARGETS: [&str; 3] = ["t", "u", "home"];

fn name(draw: &Draw) -> JobId {
    let id = JobId::new(grammar::id(draw)).unwrap_or_else(|_| JobId::new(draw.word()).expect("a word is an id"));
    draw.follows(&id);
    id
}

fn period(draw: &Draw) -> Duration {
    Duration::from_millis(if draw.one_in(4) { draw.number() } else { draw.below(10_000) })
}

/// A job to add.
fn job(draw: &Draw) -> NewJob {
    let often = |times| draw.one_in(times);
    NewJob {
        id: name(draw),
        generated: often(4),
        due: match draw.below(4) {
            0 => Due::At(Timestamp::from_millis(draw.number())),
            1 => Due::Usual(period(draw)),
            _ => Due::After(period(draw)),
        },
        expires_after: often(6).then(|| period(draw)),
        record: Record::from_bytes(grammar::record(draw).into()),
        on_duplicate: match draw.below(5) {
            0 => OnDuplicate::Replace,
            1 => OnDuplicate::Extend { at_most: often(2).then(|| period(draw)) },
            2 => OnDuplicate::Reject,
            _ => OnDuplicate::Keep,
        },
        deliver: match draw.below(6) {
            0 => Delivery::Broadcast,
            1 => Delivery::Both,
            _ => Delivery::Queue,
        },
        max_waiting: often(6).then(|| MaxWaiting { topic: Some(draw.below(1_000) as usize), group: None }),
        unique_for: often(6).then(|| period(draw)),
    }
}

/// The same as a set keeps its last job.
pub fn packed_job(draw: &Draw) -> Vec<u8> {
    if draw.one_in(30) {
        return draw.bytes(40);
    }
    postcard::to_extend(&job(draw), Vec::new()).expect("every job has an encoding")
}

fn topic(draw: &Draw) -> TopicName {
    let topic = if draw.one_in(12) { draw.text() } else { draw.pick(&TARGETS).to_owned() };
    TopicName::new(topic).unwrap_or_else(|_| TopicName::new("t").expect("it is a name"))
}

fn some<T>(draw: &Draw, one: impl Fn() -> T) -> Vec<T> {
    (0..1 + draw.below(3)).map(|_| one()).collect()
}

/// What an entry does.
fn batch(draw: &Draw) -> FollowUpBatch {
    let on_dead = [OnDead::Count, OnDead::Wait, OnDead::CancelRest][draw.below(3) as usize];
    let ends = [MemberEnd::Acked, MemberEnd::Dead, MemberEnd::DeadCancels, MemberEnd::Left];
    let end = || (name(draw), ends[draw.below(4) as usize]);
    let what = match draw.below(8) {
        0 => return FollowUpBatch::Delete(some(draw, || name(draw))),
        1 => {
            let membership = Membership { home: topic(draw), set: name(draw), on_dead };
            return FollowUpBatch::Members(membership, some(draw, || job(draw)));
        }
        2 => SetVerb::Add(on_dead, some(draw, || (topic(draw), job(draw)))),
        3 => SetVerb::Close(Box::new(job(draw))),
        4 => SetVerb::End(topic(draw), some(draw, end)),
        _ => return FollowUpBatch::Add(some(draw, || job(draw))),
    };
    FollowUpBatch::Set(SetChange { set: name(draw), what })
}

/// An entry: mostly what dq can read.
pub fn packed(draw: &Draw) -> Vec<u8> {
    let mut out = if draw.one_in(9) {
        // The last job of a set, with what became of the members.
        let counts = (1_u32, [draw.number(), draw.number(), draw.number()]);
        let mut last = postcard::to_extend(&counts, Vec::new()).expect("numbers have an encoding");
        last.extend(packed_job(draw));
        last
    } else {
        let mut entry = FollowUpBatches::default();
        entry.push(topic(draw), &batch(draw));
        entry.parts()[0].1.as_bytes().to_vec()
    };
    if draw.one_in(60) {
        let place = draw.below(out.len() as u64) as usize;
        out[place] = draw.below(256) as u8;
    }
    if draw.one_in(60) {
        out.truncate(draw.below(out.len() as u64) as usize);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dq::store::{ACKED_HEADER, Packed};

    use super::*;

    /// What an entry has, by the variants of its types: another one does not compile.
    fn kinds(seed: u64) -> Vec<&'static str> {
        let on_dead = |on_dead: OnDead| match on_dead {
            OnDead::Count => "counts",
            OnDead::Wait => "waits",
            OnDead::CancelRest => "cancels",
        };
        let end = |(_, end)| match end {
            MemberEnd::Acked => "acked",
            MemberEnd::Dead => "dead",
            MemberEnd::DeadCancels => "dead, cancels",
            MemberEnd::Left => "left",
        };
        let is_last = |job: &NewJob| {
            let headers = job.record.metadata().map(|metadata| metadata.headers).unwrap_or_default();
            headers.iter().any(|(name, _)| name == ACKED_HEADER)
        };
        match Packed::from_bytes(packed(&Draw::new(seed)).into()).batch() {
            Ok(FollowUpBatch::Add(jobs)) if jobs.iter().any(is_last) => vec!["last job of a set"],
            Ok(FollowUpBatch::Add(_)) => vec!["add"],
            Ok(FollowUpBatch::Delete(_)) => vec!["delete"],
            Ok(FollowUpBatch::Members(of, _)) => vec!["members", on_dead(of.on_dead)],
            Ok(FollowUpBatch::Set(SetChange { what, .. })) => match what {
                SetVerb::Add(what, _) => vec!["add to a set", on_dead(what)],
                SetVerb::Close(_) => vec!["close a set"],
                SetVerb::End(_, ends) => ends.into_iter().map(end).collect(),
            },
            Err(_) => vec!["unreadable"],
        }
    }

    #[test]
    fn each_kind_of_follow_up_is_generated() {
        let found: BTreeSet<_> = (0..1_000).flat_map(kinds).collect();
        assert_eq!(found.len(), 14, "{found:?}");
    }
}
