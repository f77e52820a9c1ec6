//! Which jobs of a topic are members of sets, and what the topic tells these when members end (rule 18).

use std::collections::BTreeMap;

use super::kept::{Item, Kept};
use super::places::bytes_of_row;
use crate::job::{JobId, TopicName};
use crate::store::{
    FollowUpBatch, FollowUpBatches, MAX_MEMBERS_AT_ONCE, MemberEnd, Membership, OnDead, SetChange, SetVerb, Transition,
};
use crate::time::Timestamp;

impl Item<JobId> for Membership {
    fn end(&self) -> Option<Timestamp> {
        None
    }

    fn bytes(&self, id: &JobId) -> u64 {
        bytes_of_row(id, self.home.as_str().len() + self.set.as_str().len())
    }
}

/// The members in a topic.
pub(super) type Members = Kept<JobId, Membership>;

/// How a job of this membership has ended by a move; `None`: it has not.
fn end_of(made: &Transition, on_dead: OnDead) -> Option<MemberEnd> {
    match (made, on_dead) {
        (Transition::Done { .. }, _) => Some(MemberEnd::Acked),
        (Transition::Dead { .. }, OnDead::Count) => Some(MemberEnd::Dead),
        (Transition::Dead { .. }, OnDead::CancelRest) => Some(MemberEnd::DeadCancels),
        (Transition::Deleted { .. } | Transition::Dropped | Transition::Published | Transition::Removed, _) => {
            Some(MemberEnd::Left)
        }
        _ => None,
    }
}

impl Members {
    /// What the homes of the sets are told of these moves. A broadcast ends a member whose place it has taken, and not one that is there.
    pub(super) fn ends(
        &mut self,
        topic: &TopicName,
        moves: &[(JobId, Transition)],
        is_there: impl Fn(&JobId) -> bool,
    ) -> FollowUpBatches {
        let mut ends = Ends::default();
        for (id, made) in moves {
            let Some(membership) = self.get(id) else { continue };
            let Some(end) = end_of(made, membership.on_dead) else { continue };
            if matches!(made, Transition::Published | Transition::Removed) && is_there(id) {
                continue;
            }
            let membership = self.put(id, None).expect("it was there just now");
            ends.push(membership, id.clone(), end);
        }
        ends.told(topic)
    }

    /// These jobs have come as members, or were refused: with what each was before. Returns what the homes are told.
    pub(super) fn joined(
        &mut self,
        topic: &TopicName,
        membership: &Membership,
        jobs: impl Iterator<Item = (JobId, bool)>,
    ) -> FollowUpBatches {
        let mut ends = Ends::default();
        for (id, is_taken) in jobs {
            if !is_taken {
                ends.push(membership.clone(), id, MemberEnd::Left);
                continue;
            }
            let old = self.put(&id, Some(membership.clone()));
            if let Some(old) = old.filter(|old| (&old.home, &old.set) != (&membership.home, &membership.set)) {
                ends.push(old, id, MemberEnd::Left);
            }
        }
        ends.told(topic)
    }
}

/// The ends of a step, by home and set.
#[derive(Default)]
struct Ends(BTreeMap<(TopicName, JobId), Vec<(JobId, MemberEnd)>>);

impl Ends {
    fn push(&mut self, membership: Membership, id: JobId, end: MemberEnd) {
        self.0.entry((membership.home, membership.set)).or_default().push((id, end));
    }

    fn told(self, topic: &TopicName) -> FollowUpBatches {
        let mut told = FollowUpBatches::default();
        for ((home, set), ends) in self.0 {
            for some in ends.chunks(MAX_MEMBERS_AT_ONCE) {
                let what = SetVerb::End(topic.clone(), some.to_vec());
                told.push(home.clone(), &FollowUpBatch::Set(SetChange { set: set.clone(), what }));
            }
        }
        told
    }
}
