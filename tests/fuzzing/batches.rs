//! What follow-ups do in their topics, as an outbox, a journal and an export have it: the grammar of `dq/src/store/follow_up.rs`.

use std::time::Duration;

use dq::job::{Deliver, JobId, Record, TopicName};
use dq::store::{Due, MaxWaiting, NewJob, OnDuplicate};
use dq::time::Timestamp;

use crate::draw::Draw;
use crate::grammar;

/// The topics that follow-ups are for.
pub const TARGETS: [&str; 3] = ["t", "u", "home"];

/// What an entry does, by the letter that it begins with; `a` is drawn most.
const KINDS: [u8; 9] = *b"aaadscemt";
/// What a member that becomes DEAD does to its set, and how a member ended.
const ON_DEAD: [u8; 3] = *b"cwr";
const ENDS: [u8; 4] = *b"axrl";

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
            0 => Deliver::Broadcast,
            1 => Deliver::Both,
            _ => Deliver::Queue,
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

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_topic(draw: &Draw, out: &mut Vec<u8>) {
    let topic = if draw.one_in(12) { draw.text() } else { draw.pick(&TARGETS).to_owned() };
    put_text(out, TopicName::new(&topic).map_or("t", |_| topic.as_str()));
}

/// What an entry does: mostly what dq can read.
pub fn packed(draw: &Draw) -> Vec<u8> {
    let kind = KINDS[draw.below(9) as usize];
    let kind = if draw.one_in(60) { draw.below(256) as u8 } else { kind };
    let mut out = vec![kind];
    let some = 1 + draw.below(3);
    let on_dead = ON_DEAD[draw.below(3) as usize];
    match kind {
        b'd' => (0..some).for_each(|_| put_text(&mut out, name(draw).as_str())),
        b's' => {
            put_text(&mut out, name(draw).as_str());
            out.push(on_dead);
            for _ in 0..some {
                put_topic(draw, &mut out);
                out.extend(packed_job(draw));
            }
        }
        b'c' => {
            put_text(&mut out, name(draw).as_str());
            out.extend(packed_job(draw));
        }
        b'e' => {
            put_text(&mut out, name(draw).as_str());
            put_topic(draw, &mut out);
            for _ in 0..some {
                out.push(ENDS[draw.below(4) as usize]);
                put_text(&mut out, name(draw).as_str());
            }
        }
        b'm' => {
            put_topic(draw, &mut out);
            put_text(&mut out, name(draw).as_str());
            out.push(on_dead);
            (0..some).for_each(|_| out.extend(packed_job(draw)));
        }
        b't' => {
            (0..3).for_each(|_| out.extend(draw.number().to_le_bytes()));
            out.extend(packed_job(draw));
        }
        _ => (0..some).for_each(|_| out.extend(packed_job(draw))),
    }
    if draw.one_in(60) {
        out.truncate(draw.below(out.len() as u64) as usize);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const FOLLOW_UP: &str = include_str!("../../dq/src/store/follow_up.rs");
    const JOB_SET: &str = include_str!("../../dq/src/store/job_set.rs");

    /// The letters in the body that follows this text.
    fn letters(source: &str, after: &str) -> BTreeSet<u8> {
        let (_, rest) = source.split_once(after).unwrap_or_else(|| panic!("there is no `{after}`"));
        let body = rest.lines().skip(1).take_while(|line| !line.starts_with('}') && *line != "    }");
        let words = body.flat_map(|line| line.split("b'").skip(1));
        words.filter_map(|word| word.bytes().next()).collect()
    }

    #[test]
    fn each_kind_of_follow_up_is_generated() {
        let (_, of_ends) = JOB_SET.split_once("impl MemberEnd {").expect("it is there");
        let (_, of_dead) = JOB_SET.split_once("impl OnDead {").expect("it is there");
        for (what, known, written) in [
            ("follow-ups", letters(FOLLOW_UP, "fn read("), &KINDS[..]),
            ("ends of members", letters(of_ends, "fn letter("), &ENDS[..]),
            ("what a DEAD member does", letters(of_dead, "fn letter("), &ON_DEAD[..]),
        ] {
            assert_eq!(known, written.iter().copied().collect(), "the grammar of {what} is not as dq reads them");
        }
    }
}
