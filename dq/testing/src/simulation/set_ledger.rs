//! The ledger of job sets: what was registered, which jobs are members in their topics, and how they have ended (rule 18).

use std::collections::{BTreeMap, BTreeSet};

use dq::job::{JobId, TopicName};
use dq::store::OnDead;

/// A job in its topic.
pub(super) type Member = (TopicName, JobId);

/// A set in its home.
pub(super) type SetName = (TopicName, JobId);

/// How a member has ended; the place of its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Acked,
    Dead,
    Left,
}

/// A set.
#[derive(Debug, Clone, Default)]
struct SetRecord {
    members: BTreeMap<Member, Option<Ended>>,
    is_closed: bool,
    has_come: bool,
}

/// All sets of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct SetLedger {
    sets: BTreeMap<SetName, SetRecord>,
    /// The jobs that are members now, and those of them that are DEAD while their set waits for them.
    present: BTreeMap<Member, (SetName, OnDead)>,
    waiting: BTreeSet<Member>,
    /// Members that a run has added with its ack, and that their home does not know yet.
    promised: BTreeSet<(SetName, Member)>,
}

impl SetLedger {
    /// Home has registered these members.
    pub(super) fn registers(&mut self, set: &SetName, members: impl Iterator<Item = Member>) {
        let record = self.sets.entry(set.clone()).or_default();
        members.for_each(|member| _ = record.members.entry(member).or_default());
    }

    pub(super) fn closes(&mut self, set: &SetName) {
        self.sets.entry(set.clone()).or_default().is_closed = true;
    }

    pub(super) fn has_come(&self, set: &SetName) -> bool {
        self.sets.get(set).is_some_and(|record| record.has_come)
    }

    /// An ack has brought members for this set.
    pub(super) fn promises(&mut self, set: &SetName, members: impl Iterator<Item = Member>) {
        self.promised.extend(members.map(|member| (set.clone(), member)));
    }

    /// These members have reached the home of this set.
    pub(super) fn keeps_promise(&mut self, set: &SetName, members: impl Iterator<Item = Member>) {
        members.for_each(|member| _ = self.promised.remove(&(set.clone(), member)));
    }

    /// A member has come to its topic, or was refused there. It leaves the set that it was in.
    pub(super) fn comes(&mut self, member: &Member, set: &SetName, on_dead: OnDead, is_taken: bool) {
        if !is_taken {
            return self.ends_in(set, member, Ended::Left);
        }
        self.waiting.remove(member);
        let old = self.present.insert(member.clone(), (set.clone(), on_dead));
        if let Some((old, _)) = old.filter(|(old, _)| old != set) {
            self.ends_in(&old, member, Ended::Left);
        }
    }

    /// The members in a topic.
    pub(super) fn present_in(&self, topic: &TopicName) -> Vec<(JobId, OnDead)> {
        let here = self.present.iter().filter(|((of, _), _)| of == topic);
        here.map(|((_, id), (_, on_dead))| (id.clone(), *on_dead)).collect()
    }

    /// The set waits for this DEAD member, or does no more.
    pub(super) fn waits(&mut self, member: Member, is_dead: bool) {
        if is_dead {
            self.waiting.insert(member);
        } else {
            self.waiting.remove(&member);
        }
    }

    pub(super) fn ends(&mut self, member: &Member, ended: Ended) {
        self.waiting.remove(member);
        if let Some((set, _)) = self.present.remove(member) {
            self.ends_in(&set, member, ended);
        }
    }

    fn ends_in(&mut self, set: &SetName, member: &Member, ended: Ended) {
        if let Some(record) = self.sets.get_mut(set) {
            record.members.entry(member.clone()).or_default().get_or_insert(ended);
        }
    }

    /// The last job of a set has come, with these counts. Returns what is wrong with that; nothing of a store that has fallen back, to
    /// which an entry of a lost part of its history may come.
    pub(super) fn last_comes(&mut self, set: &SetName, counts: [u64; 3], fell: bool) -> Option<String> {
        let name = &set.1;
        if fell {
            self.sets.get_mut(set).into_iter().for_each(|record| record.has_come |= record.is_closed);
            return None;
        }
        let Some(record) = self.sets.get_mut(set).filter(|record| record.is_closed) else {
            return Some(format!("[18] the last job of the set {name} has come, and the set was not closed"));
        };
        if std::mem::replace(&mut record.has_come, true) {
            return Some(format!("[18] the last job of the set {name} has come twice"));
        }
        if let Some((member, _)) = record.members.iter().find(|(_, ended)| ended.is_none()) {
            return Some(format!("[18] the last job of the set {name} has come before the end of {member:?}"));
        }
        let mut wanted = [0; 3];
        record.members.values().flatten().for_each(|ended| wanted[*ended as usize] += 1);
        (wanted != counts)
            .then(|| format!("[18] the set {name} counts {counts:?} of its members, which are {wanted:?}"))
    }

    /// The closed sets whose last jobs have not come, though they wait for no DEAD member, and members that homes do not know.
    pub(super) fn missing(&self) -> Option<String> {
        let waits = |member: &Member, ended: Option<Ended>| ended.is_none() && self.waiting.contains(member);
        let is_stuck = |record: &SetRecord| !record.members.iter().any(|(member, ended)| waits(member, *ended));
        let closed = self.sets.iter().filter(|(_, record)| record.is_closed && !record.has_come);
        let stuck = closed.filter(|(_, record)| is_stuck(record)).map(|((_, name), record)| {
            let left = record.members.iter().filter(|(_, ended)| ended.is_none()).map(|(member, _)| member);
            format!("the last job of the set {name} has not come; not ended: {:?}", left.collect::<Vec<_>>())
        });
        let lost = self.promised.iter().map(|((_, set), member)| format!("the set {set} does not know {member:?}"));
        let all: Vec<_> = stuck.chain(lost).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}
