//! Job sets (rule 18): how the scripts get what changes them, and how they tell of them.

use super::keys::Key;
use super::reply::{Reply, malformed};
use super::scripts::{ScriptCall, Step, TopicScripts};
use super::{RedisStore, millis};
use crate::job::{JobId, TopicKey, TopicName};
use crate::store::{
    BatchAnswer, CANCELLED_AT_ONCE, MOST_MEMBERS, MOST_SETS, Membership, SET_KEPT, SetChange, SetCounts, SetOutcome,
    SetRefusal, SetSeen, SetState, SetVerb, SetsRequest, StoreError, packed_job,
};
use crate::time::Timestamp;

/// A member, as `members` keeps it.
pub(super) fn member_of(Membership { home, set, on_dead }: &Membership) -> String {
    format!("{home}\0{set}\0{}", char::from(on_dead.letter()))
}

/// A call of a script about a set.
fn call(scripts: &TopicScripts, step: Step, set: &str) -> ScriptCall {
    let name = |key: &Key| scripts.keys.name(*key, if *key == Key::Set { set } else { &scripts.owner });
    scripts.call_on(step, step.keys().iter().map(name).collect())
}

pub(super) fn write(
    scripts: &TopicScripts,
    number: impl redis::ToRedisArgs,
    SetChange { set, what }: &SetChange,
) -> ScriptCall {
    let mut call = call(scripts, Step::JobSet, set.as_str()).arg(number);
    let verb = match what {
        SetVerb::Add(..) => "a",
        SetVerb::Close(_) => "c",
        SetVerb::End(..) => "e",
    };
    call.push(verb);
    call.push(set.as_str());
    call.push(scripts.keys.topic().topic.as_str());
    call.push(MOST_MEMBERS);
    call.push(MOST_SETS);
    call.push(millis(SET_KEPT));
    call.push(CANCELLED_AT_ONCE);
    match what {
        SetVerb::Add(on_dead, jobs) => {
            call.push([on_dead.letter()].as_slice());
            for (topic, job) in jobs {
                call.push(topic.as_str());
                call.push(job.id.as_str());
                call.push(packed_job(job));
            }
        }
        SetVerb::Close(then) => call.push(packed_job(then)),
        SetVerb::End(topic, ends) => {
            call.push(topic.as_str());
            for (id, end) in ends {
                call.push(id.as_str());
                call.push([end.letter()].as_slice());
            }
        }
    }
    call
}

/// Reads the answer to a change.
pub(super) fn changed(reply: Reply, set: &JobId) -> Result<BatchAnswer<SetOutcome>, StoreError> {
    let outcome = |codes: &str| {
        let (letter, row) = codes.split_at_checked(1)?;
        Some(match letter {
            "D" => SetOutcome::Done(seen(set.clone(), row)?),
            letter => SetOutcome::Refused(SetRefusal::of_letter(letter.as_bytes()[0])?),
        })
    };
    reply.batch('j', |codes, _| {
        outcome(codes).map(|outcome| vec![outcome]).ok_or_else(|| malformed("job_set", "its outcome is unknown"))
    })
}

/// A set, as `sets` keeps it.
fn seen(set: JobId, row: &str) -> Option<SetSeen> {
    let mut parts = row.split(',');
    let state = SetState::of_letter(*parts.next()?.as_bytes().first()?)?;
    let mut number = || parts.next()?.parse().ok();
    let counts = SetCounts { members: number()?, acked: number()?, dead: number()?, left: number()? };
    Some(SetSeen { set, state, counts, since: Timestamp::from_millis(number()?), waits_for: Vec::new() })
}

impl RedisStore {
    pub(super) async fn sets_of(&self, topic: &TopicKey, request: &SetsRequest) -> Result<Vec<SetSeen>, StoreError> {
        let (name, from, limit) = match request {
            SetsRequest::One(name, most) => (name.as_str(), 0, *most),
            SetsRequest::Page { from, limit } => ("", *from, *limit),
        };
        let call = call(&self.scripts_of(topic), Step::JobSets, name);
        let mut reply = self.shards.ask_list(call.arg(name).arg(from).arg(limit)).await?;
        let bad = || malformed("job_sets", "another program wrote into the sets");
        let mut sets = Vec::new();
        while reply.len() > 0 {
            let set = JobId::new(reply.text()?).map_err(|_| bad())?;
            let mut set = seen(set, &reply.text()?).ok_or_else(bad)?;
            while !name.is_empty() && reply.len() > 0 {
                let member = reply.text()?;
                let (topic, id) = member.split_once('\0').ok_or_else(bad)?;
                let (topic, id) = (TopicName::stored(topic).map_err(|_| bad())?, JobId::new(id).map_err(|_| bad())?);
                set.waits_for.push((topic, id));
            }
            sets.push(set);
        }
        Ok(sets)
    }
}
