//! The job sets that live in a topic (rule 18).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::kept::Touches;
use super::now::Now;
use super::places::bytes_of_row;
use crate::job::{JobId, TopicName};
use crate::store::{
    CANCELLED_AT_ONCE, JobSetSummary, MAX_MEMBERS, MemberEnd, NewJob, Packed, SET_KEPT, SetCounts, SetRefusal,
    SetState, SetsRequest, last_job_of_set, packed_job,
};
use crate::time::Timestamp;

/// How many sets that have ended a step forgets at most.
const FORGOTTEN: usize = 10;

/// A member, as its set knows it.
pub(super) type Member = (TopicName, JobId);

/// Members that are new in their set, with their jobs.
pub(super) type NewMembers = BTreeMap<Member, NewJob>;

/// How far a member has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum MemberState {
    /// It has not ended.
    Waits,
    /// It has not ended, and its delete is on its way.
    Cancelled,
    /// It has ended.
    Ended,
}

impl MemberState {
    pub(super) const ALL: [Self; 3] = [Self::Waits, Self::Cancelled, Self::Ended];
}

/// What a set has beside its members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetRow {
    pub(super) state: SetState,
    pub(super) counts: SetCounts,
    pub(super) since: Timestamp,
    pub(super) cancels: bool,
}

/// A job set.
#[derive(Debug, Clone, Default)]
pub(super) struct JobSet {
    pub(super) row: SetRow,
    /// The last job, packed as in an outbox.
    pub(super) then: Option<Packed>,
    /// The members, by [`MemberState`].
    members: [BTreeSet<Member>; 3],
}

/// The sets of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct JobSets {
    by_name: BTreeMap<JobId, JobSet>,
    /// Those that have ended, by the end of the time for which they are kept.
    by_end: BTreeSet<(Timestamp, JobId)>,
    /// What they take in memory, about.
    pub(super) bytes: u64,
    /// What the step has changed.
    pub(super) touched: Touches<Touched>,
}

/// What a step has changed, for the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Touched {
    /// A set, but not its members, or that it is gone.
    Row(JobId),
    /// A member of a set.
    Member(JobId, Member),
}

fn bytes_of(member: &Member) -> u64 {
    bytes_of_row(&member.1, member.0.as_str().len())
}

impl JobSet {
    pub(super) fn member(&self, member: &Member) -> Option<MemberState> {
        MemberState::ALL.into_iter().find(|state| self.members[*state as usize].contains(member))
    }

    /// The members behind this one, in order of their states.
    fn members_after(&self, after: Option<(MemberState, Member)>) -> impl Iterator<Item = (MemberState, &Member)> {
        let first = after.as_ref().map_or(MemberState::Waits, |(state, _)| *state);
        MemberState::ALL.into_iter().skip(first as usize).flat_map(move |state| {
            let last = after.as_ref().filter(|(of, _)| *of == state).map(|(_, member)| member.clone());
            let behind = (last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
            self.members[state as usize].range(behind).map(move |member| (state, member))
        })
    }

    pub(super) fn seen(&self, name: &JobId, most: usize) -> JobSetSummary {
        let waits = self.members[0].iter().chain(&self.members[1]).take(most).cloned().collect();
        let SetRow { state, counts, since, .. } = self.row;
        JobSetSummary { set: name.clone(), state, counts, since, waits_for: waits }
    }
}

impl JobSets {
    /// How many have not ended.
    pub(super) fn waiting(&self) -> usize {
        self.by_name.len() - self.by_end.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn get(&self, name: &JobId) -> Option<&JobSet> {
        self.by_name.get(name)
    }

    /// Those behind a name, in order.
    pub(super) fn after(&self, after: Option<JobId>) -> impl Iterator<Item = (&JobId, &JobSet)> {
        self.by_name.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
    }

    /// The members of all sets behind this one.
    pub(super) fn members_after(
        &self,
        after: Option<(JobId, MemberState, Member)>,
    ) -> impl Iterator<Item = (&JobId, MemberState, &Member)> {
        let from = after.as_ref().map_or(Bound::Unbounded, |(name, ..)| Bound::Included(name.clone()));
        self.by_name.range((from, Bound::Unbounded)).flat_map(move |(name, set)| {
            let last = after.as_ref().filter(|(of, ..)| of == name);
            let last = last.map(|(_, state, member)| (*state, member.clone()));
            set.members_after(last).map(move |(state, member)| (name, state, member))
        })
    }

    /// Puts a set without its members. One that has ended has none.
    pub(super) fn put(&mut self, name: &JobId, row: SetRow) {
        self.touched.add(|| Touched::Row(name.clone()));
        let set = self.by_name.entry(name.clone()).or_insert_with(|| {
            self.bytes += bytes_of_row(name, 128);
            JobSet::default()
        });
        if set.row.state == SetState::Ended {
            self.by_end.remove(&(set.row.since, name.clone()));
        }
        if row.state == SetState::Ended {
            let gone = std::mem::take(&mut set.members);
            self.bytes -= gone.iter().flatten().map(bytes_of).sum::<u64>();
            self.bytes -= set.then.take().map_or(0, |then| then.as_bytes().len() as u64);
            self.by_end.insert((row.since, name.clone()));
        }
        set.row = row;
    }

    /// Keeps the last job of a set.
    pub(super) fn put_last(&mut self, name: &JobId, then: Packed) {
        self.touched.add(|| Touched::Row(name.clone()));
        if let Some(set) = self.by_name.get_mut(name) {
            self.bytes += then.as_bytes().len() as u64;
            self.bytes -= set.then.replace(then).map_or(0, |old| old.as_bytes().len() as u64);
        }
    }

    /// Puts a member of a set that is there.
    pub(super) fn put_member(&mut self, name: &JobId, member: Member, state: MemberState) {
        self.touched.add(|| Touched::Member(name.clone(), member.clone()));
        let Some(set) = self.by_name.get_mut(name) else { return };
        let is_known = set.members.iter_mut().any(|members| members.remove(&member));
        self.bytes += if is_known { 0 } else { bytes_of(&member) };
        set.members[state as usize].insert(member);
    }

    pub(super) fn remove(&mut self, name: &JobId) {
        let Some(set) = self.by_name.remove(name) else { return };
        self.touched.add(|| Touched::Row(name.clone()));
        self.by_end.remove(&(set.row.since, name.clone()));
        let of_members = set.members.iter().flatten().map(bytes_of).sum::<u64>();
        self.bytes -= bytes_of_row(name, 128) + of_members + set.then.map_or(0, |then| then.as_bytes().len() as u64);
    }

    pub(super) fn forget(&mut self, now: Now) {
        for _ in 0..FORGOTTEN {
            let first = self.by_end.first().filter(|(ended, _)| ended.after(SET_KEPT) <= now.floor());
            let Some(name) = first.map(|(_, name)| name.clone()) else { return };
            self.remove(&name);
        }
    }

    /// What the query asks for.
    pub(super) fn seen(&self, request: &SetsRequest) -> Vec<JobSetSummary> {
        match request {
            SetsRequest::One(name, most) => self.get(name).map(|set| set.seen(name, *most)).into_iter().collect(),
            SetsRequest::Page { from, limit } => {
                let waits = self.by_name.iter().filter(|(_, set)| set.row.state != SetState::Ended);
                let ended = self.by_end.iter().filter_map(|(_, name)| self.by_name.get_key_value(name));
                waits.chain(ended).skip(*from).take(*limit).map(|(name, set)| set.seen(name, 0)).collect()
            }
        }
    }

    /// Registers members; these jobs are new ones.
    pub(super) fn register(
        &mut self,
        now: Now,
        name: &JobId,
        jobs: Vec<(TopicName, NewJob)>,
    ) -> Result<NewMembers, SetRefusal> {
        let old = self.get(name);
        let mut new: BTreeMap<Member, NewJob> = BTreeMap::new();
        for (topic, job) in jobs {
            let member = (topic, job.id.clone());
            if old.is_none_or(|set| set.member(&member).is_none()) {
                new.entry(member).or_insert(job);
            }
        }
        let mut row = old.map_or_else(|| SetRow { since: now.floor(), ..SetRow::default() }, |set| set.row.clone());
        row.counts.members = row.counts.members.saturating_add(new.len() as u64);
        if row.counts.members > MAX_MEMBERS {
            return Err(SetRefusal::TooManyMembers);
        }
        self.put(name, row);
        new.keys().for_each(|member| self.put_member(name, member.clone(), MemberState::Waits));
        Ok(new)
    }

    pub(super) fn close(&mut self, now: Now, name: &JobId, then: &NewJob) {
        let row = self.get(name).map(|set| set.row.clone());
        let row = row.unwrap_or_else(|| SetRow { since: now.floor(), ..SetRow::default() });
        if row.state == SetState::Open {
            self.put(name, SetRow { state: SetState::Closed, ..row });
            self.put_last(name, Packed::from_bytes(packed_job(then).into()));
        }
    }

    pub(super) fn end(&mut self, name: &JobId, topic: &TopicName, ends: Vec<(JobId, MemberEnd)>) {
        let Some(mut row) = self.get(name).map(|set| set.row.clone()) else { return };
        for (id, end) in ends {
            let member = (topic.clone(), id);
            if self.get(name).and_then(|set| set.member(&member)).is_some_and(|state| state != MemberState::Ended) {
                row.counts.count(end);
                row.cancels |= end == MemberEnd::DeadCancels;
                self.put_member(name, member, MemberState::Ended);
            }
        }
        self.put(name, row);
    }

    /// Some of the members that a set deletes because it cancels the rest.
    pub(super) fn cancel(&mut self, name: &JobId) -> Vec<Member> {
        let set = self.get(name).filter(|set| set.row.cancels);
        let some: Vec<_> = set.into_iter().flat_map(|set| &set.members[0]).take(CANCELLED_AT_ONCE).cloned().collect();
        some.iter().for_each(|member| self.put_member(name, member.clone(), MemberState::Cancelled));
        some
    }

    /// Ends a set that waits for nothing more. Returns its last job.
    pub(super) fn complete(&mut self, now: Now, name: &JobId) -> Option<Packed> {
        let set = self.get(name)?;
        if set.row.state != SetState::Closed || set.row.counts.waits_for() > 0 {
            return None;
        }
        let then = last_job_of_set(&set.row.counts, set.then.as_ref()?.as_bytes());
        let row = SetRow { state: SetState::Ended, since: now.floor(), ..set.row.clone() };
        self.put(name, row);
        Some(then)
    }
}
