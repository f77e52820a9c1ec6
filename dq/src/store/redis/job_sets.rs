//! Job sets (rule 18): how the scripts get what changes them, and how they tell of them.

use bytes::Bytes;

use super::keys::Key;
use super::reply::{Reply, malformed, parsed};
use super::scripts::{ScriptCall, Step, TopicScripts};
use super::unreadable::unreadable;
use super::{RedisStore, millis};
use crate::job::{JobId, TopicKey, TopicName};
use crate::store::{
    BatchAnswer, CANCELLED_AT_ONCE, JobSetSummary, MAX_MEMBERS, MAX_SETS, Membership, SET_KEPT, SetChange, SetCounts,
    SetOutcome, SetRefusal, SetState, SetVerb, SetsRequest, StoreError, packed_job,
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
    call.push((verb, set.as_str(), scripts.keys.topic().topic.as_str(), MAX_MEMBERS, MAX_SETS));
    call.push((millis(SET_KEPT), CANCELLED_AT_ONCE));
    match what {
        SetVerb::Add(on_dead, jobs) => {
            call.push([*on_dead as u8].as_slice());
            jobs.iter().for_each(|(topic, job)| call.push((topic.as_str(), job.id.as_str(), packed_job(job))));
        }
        SetVerb::Close(then) => call.push(packed_job(then)),
        SetVerb::End(topic, ends) => {
            call.push(topic.as_str());
            ends.iter().for_each(|(id, end)| call.push((id.as_str(), [end.letter()].as_slice())));
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

/// The numbers with which a script calculates exactly.
const MAX_COUNTED: u64 = 1 << 53;

/// A set, as `sets` keeps it.
pub(super) fn seen(set: JobId, row: &str) -> Option<JobSetSummary> {
    let mut parts = row.split(',');
    let state = SetState::of_letter(*parts.next().filter(|state| state.len() == 1)?.as_bytes().first()?)?;
    let mut number = || parts.next()?.parse().ok().filter(|number| *number <= MAX_COUNTED);
    let counts = SetCounts { members: number()?, acked: number()?, dead: number()?, left: number()? };
    let since = Timestamp::from_millis(number()?);
    number()?;
    parts.next().is_none().then(|| JobSetSummary { set, state, counts, since, waits_for: Vec::new() })
}

/// A member, as the key of its set keeps it.
pub(super) fn waits_for(member: &[u8]) -> Option<(TopicName, JobId)> {
    let (topic, id) = std::str::from_utf8(member).ok()?.split_once('\0')?;
    Some((TopicName::stored(topic).ok()?, JobId::new(id).ok()?))
}

impl RedisStore {
    /// What another program wrote is no set, and the others follow. The one set that a request names is an error then.
    pub(super) async fn sets_of(
        &self,
        topic: &TopicKey,
        request: &SetsRequest,
    ) -> Result<Vec<JobSetSummary>, StoreError> {
        let (name, from, limit) = match request {
            SetsRequest::One(name, most) => (name.as_str(), 0, *most),
            SetsRequest::Page { from, limit } => ("", *from, *limit),
        };
        let call = call(&self.scripts_of(topic), Step::JobSets, name);
        let found: Vec<(Bytes, Bytes, Vec<Bytes>)> = self.shards.ask(call.arg((name, from, limit))).await?;
        let mut sets = Vec::new();
        for (set, row, members) in found {
            let read = parsed(&set).zip(std::str::from_utf8(&row).ok());
            let Some(mut read) = read.and_then(|(set, row)| seen(set, row)) else {
                if !name.is_empty() {
                    return Err(unreadable("job_sets", Key::Sets, &set));
                }
                self.skips(topic, Key::Sets, &set);
                continue;
            };
            for member in members {
                match waits_for(&member) {
                    Some(member) => read.waits_for.push(member),
                    None => self.skips(topic, Key::Set, &member),
                }
            }
            sets.push(read);
        }
        Ok(sets)
    }
}
