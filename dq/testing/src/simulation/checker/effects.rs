//! A step did exactly what its answer says.

use super::super::version::version;
use super::record::{Checker, Did};
use dq::config::NodeSettings;
use dq::job::{Deliver, Isolation, JobId, NodeId, State, Token};
use dq::store::step::{NoteVerdict, Verdict};
use dq::store::{AddOutcome, Command, CommandKind, CommandOutcome, Due, NewJob};
use dq::testing::seam::{JobView, View};
use dq::time::Timestamp;

impl Checker {
    pub(super) fn check_effects(&mut self, did: &Did, before: &View, after: &View, micros: u64) {
        let floor = Timestamp::floor_micros(micros);
        match did {
            Did::Add { jobs } => {
                for (job, outcome) in jobs {
                    self.check_added(job, outcome, after.jobs.get(&job.id));
                    if matches!(outcome, AddOutcome::Extended { .. }) {
                        self.check_extended(job, before.jobs.get(&job.id), after.jobs.get(&job.id));
                    }
                }
            }
            Did::Command { items } => {
                for (item, outcome) in items {
                    let alone = items.iter().filter(|(other, _)| other.id == item.id).count() == 1;
                    if alone && !before.broadcasts.contains_key(&item.id) {
                        let (was, is) = (before.jobs.get(&item.id), after.jobs.get(&item.id));
                        self.check_commanded(item, outcome, was, is);
                    }
                }
            }
            Did::Change { items } => self.check_changes(items, before, after),
            Did::Settle { node, outcomes } => {
                for (nth, (outcome, verdict)) in outcomes.iter().enumerate() {
                    let again = outcomes[..nth].iter().any(|(other, _)| other.id == outcome.id);
                    let ran =
                        before.jobs.get(&outcome.id).is_some_and(|job| is_run(job, node, outcome.token)) && !again;
                    let runs = after.jobs.get(&outcome.id).is_some_and(|job| is_run(job, node, outcome.token));
                    if *verdict == Verdict::Done && runs || *verdict == Verdict::Stale && ran {
                        self.bad(format!(
                            "[10] {} gets {verdict:?} for {}: it ran {ran}, runs {runs}",
                            node, outcome.id
                        ));
                    }
                }
            }
            Did::Claim { node, claims, .. } => {
                for claim in claims {
                    if !after.jobs.get(&claim.id).is_some_and(|job| is_run(job, node, claim.token)) {
                        self.bad(format!("[7] {node} is given {}, but has no row of it", claim.id));
                    }
                }
                let end = floor.after(NodeSettings::default().lease);
                if self.caps.is_some() && !claims.is_empty() && after.leases.get(node) != Some(&end) {
                    self.bad(format!("[8] {node} claims, and its lease is {:?}, not {end}", after.leases.get(node)));
                }
            }
            Did::Reclaim { from, seen, .. } => {
                let lease = before.leases.get(from).copied();
                if lease != Some(*seen) || *seen > floor {
                    self.bad(format!("[20] jobs of {from} are reclaimed at {floor}: lease {lease:?}, seen {seen}"));
                }
            }
            Did::Note { node, runs, isolation } => {
                for (id, token, note) in runs {
                    self.check_note(node, (id, *token), *isolation, *note, (before.jobs.get(id), after.jobs.get(id)));
                }
            }
            Did::Nothing | Did::Release { .. } | Did::Publish { .. } | Did::Set { .. } | Did::RefuseAdd => {}
        }
    }

    fn check_note(
        &mut self,
        node: &NodeId,
        (id, token): (&JobId, Token),
        isolation: Option<Isolation>,
        note: NoteVerdict,
        (was, is): (Option<&JobView>, Option<&JobView>),
    ) {
        let held = was.filter(|job| is_run(job, node, token));
        let ended = held.is_some_and(|job| self.is_ended_for_certain(job));
        let noted = is.is_some_and(|job| match isolation {
            Some(_) => job.row.as_ref().is_some_and(|row| row.isolation == isolation),
            None => job.record.fixed().exhausted,
        });
        let fits = match note {
            NoteVerdict::Done => held.is_some() && !ended && noted,
            NoteVerdict::Ended => ended && was == is,
            NoteVerdict::Stale => held.is_none() && was == is,
        };
        if !fits {
            self.bad(format!("[15] {node} notes {id}: {note:?}; held {}, noted {noted}", held.is_some()));
        }
    }

    fn check_added(&mut self, job: &NewJob, outcome: &AddOutcome, is: Option<&JobView>) {
        let new = version(&job.record);
        let there = match outcome {
            AddOutcome::Added | AddOutcome::Replaced(_) if job.deliver == Deliver::Broadcast => true,
            AddOutcome::Added | AddOutcome::Replaced(_) => {
                let delay = match job.due {
                    Due::Usual(_) => self.usual(job.record.fixed().delay),
                    Due::After(_) | Due::At(_) => job.record.fixed().delay,
                };
                let expires = |at: Timestamp| job.expires_after.map(|after| at.after(after));
                is.is_some_and(|is| {
                    let fits = is.record.fixed().expires_at == is.at.and_then(expires);
                    is.state == State::Delayed && version(&is.record) == new && fits && is.record.fixed().delay == delay
                })
            }
            AddOutcome::ReplacementWaits | AddOutcome::ReplacementIfEnds => {
                let conditional = *outcome == AddOutcome::ReplacementIfEnds;
                let waits = is.and_then(|is| is.replacement.as_ref());
                waits.is_some_and(|(record, only_if)| version(record) == new && *only_if == conditional)
            }
            AddOutcome::Extended { due, .. } => is.is_none_or(|is| match &is.replacement {
                Some((record, only_if)) => version(record) == new && !only_if,
                None => is.at == Some(*due) && version(&is.record) == new || is.state == State::Done,
            }),
            AddOutcome::Exists(_) | AddOutcome::Repeated | AddOutcome::Later | AddOutcome::Refused(_) => true,
        };
        if !there {
            self.bad(format!("[18] LOST: the add of {new} ({}) is answered {outcome:?}: {is:?}", job.id));
        }
    }

    /// Checks a command for a job that no other command of its batch names, and that has no broadcast beside it.
    fn check_commanded(
        &mut self,
        item: &Command,
        outcome: &CommandOutcome,
        was: Option<&JobView>,
        is: Option<&JobView>,
    ) {
        let Some(job) = was else { return };
        let parked_by = job.record.fixed().parked_by;
        let named = item.fence.is_none() || item.fence == parked_by;
        let gone = is.is_none_or(|is| version(&is.record) != version(&job.record));
        let fits = match (item.verb, job.state) {
            (CommandKind::Delete | CommandKind::Cancel, State::Running) => {
                is.is_some_and(|is| is.replacement.is_none())
            }
            (CommandKind::Delete | CommandKind::Cancel, _) => gone && outcome.changed,
            (CommandKind::Ack, State::Running) => true,
            (CommandKind::Ack, State::Delayed) if item.fence.is_none() => gone || is_at(is, State::Done),
            (CommandKind::Ack, State::Unacked) if named => gone || is_at(is, State::Done),
            (CommandKind::Requeue, State::Unacked) if named => is_at(is, State::Delayed),
            (CommandKind::Requeue, State::Dead) if named => is_at(is, State::Delayed) && is.is_some_and(is_afresh),
            (CommandKind::Ack | CommandKind::Requeue, _) => was == is && !outcome.changed,
        };
        if !fits {
            self.bad(format!("[13] {item:?} for a job that is {} is answered {outcome:?}: {is:?}", job.state));
        }
    }

    /// Returns whether an end was promised for whatever run the job has.
    fn is_ended_for_certain(&self, job: &JobView) -> bool {
        let promised = self.expected.promised.get(&version(&job.record));
        promised.is_some_and(|ends| ends.iter().any(|(_, fence)| fence.is_none()))
    }
}

fn is_run(job: &JobView, node: &NodeId, token: Token) -> bool {
    job.row.as_ref().is_some_and(|row| row.node == *node && row.token == token)
}

fn is_at(is: Option<&JobView>, state: State) -> bool {
    is.is_some_and(|is| is.state == state)
}

/// Returns whether the job is as if it was just added.
fn is_afresh(job: &JobView) -> bool {
    job.record
        .metadata()
        .is_ok_and(|metadata| metadata.attempts == 0 && !metadata.exhausted && metadata.expires_at.is_none())
}
