//! What adds, commands and changes do to jobs.

use std::collections::BTreeSet;

use super::super::cluster::metadata;
use super::super::queries::same;
use super::runs::{placed, written};
use super::{Change, Invariants};
use dq::job::state::Event;
use dq::job::{Deliver, JobId, Metadata, Record, State};
use dq::store::{
    AddOutcome, ChangeKind, ChangeOutcome, ChangeVerdict, Command, CommandKind, CommandOutcome, Due, JobChange, NewJob,
    OnDuplicate, TopicFull,
};
use dq::testing::seam::JobView;

/// Whether two records have the same payload.
fn same_payload(expected: &Record, found: &Record) -> Result<(), String> {
    let bare = |record: &Record| record.with_metadata(&Metadata::default());
    same("the payload", &bare(expected), &bare(found))
}

impl Invariants {
    pub(super) fn check_adds<'a>(
        &mut self,
        outcomes: impl Iterator<Item = (&'a NewJob, &'a AddOutcome)>,
        change: Change<'_>,
        touched: &mut BTreeSet<JobId>,
    ) -> Result<(), String> {
        for (new, outcome) in outcomes {
            let is = change.is(&new.id);
            if touched.contains(&new.id) {
                same("the outcome of a repeated id", &AddOutcome::Repeated, outcome)?;
                continue;
            }
            self.check_taken(new, outcome, change)?;
            match outcome {
                AddOutcome::Added | AddOutcome::Replaced(_) => {
                    let (due, record) = match is.filter(|_| new.deliver != Deliver::Broadcast) {
                        Some(is) => (is.at, &is.record),
                        None => {
                            let broadcast = change.after.view.broadcasts.get(&new.id);
                            broadcast.map(|(due, record)| (Some(*due), record)).ok_or("the broadcast is not there")?
                        }
                    };
                    let was = change.before.view.jobs.get(&new.id);
                    if let Some(was) = was {
                        placed(was, Event::Replaced, due.unwrap_or_default())?;
                        same("whether the job that is replaced runs", &false, &was.row.is_some())?;
                    }
                    let expected = match new.due {
                        Due::After(delay) => Some(change.after.after(delay)),
                        Due::At(at) => Some(at.max(change.after.after(std::time::Duration::ZERO))),
                        // The usual delay of the topic may be another one.
                        Due::Usual(_) => due,
                    };
                    same("the due time of a new job", &expected, &due)?;
                    same_payload(&new.record, record)?;
                    let state = is.map(|is| (is.state, is.crashes, &is.row, &is.replacement));
                    let queued = (new.deliver != Deliver::Broadcast).then_some((State::Delayed, 0, &None, &None));
                    same("the new job", &queued, &state)?;
                }
                AddOutcome::ReplacementWaits | AddOutcome::ReplacementIfEnds => {
                    let conditional = *outcome == AddOutcome::ReplacementIfEnds;
                    let replacement = is.and_then(|is| is.replacement.clone());
                    let (record, is_conditional) = replacement.clone().ok_or("no replacement waits")?;
                    same_payload(&new.record, &record)?;
                    same("whether the replacement is conditional", &conditional, &is_conditional)?;
                    change.becomes(&new.id, Some(&JobView { replacement, ..change.was(&new.id)?.clone() }))?;
                }
                AddOutcome::Extended { due, version } => {
                    let job = is.filter(|is| is.state != State::Done);
                    let replacement = job.and_then(|is| is.replacement.as_ref()).map(|(record, _)| record);
                    let broadcast = change.after.view.broadcasts.get(&new.id).map(|(_, record)| record);
                    let record =
                        replacement.or(job.map(|is| &is.record)).or(broadcast).ok_or("the job is not there")?;
                    same("the version of an extended job", version, &metadata(record).version)?;
                    same_payload(&new.record, record)?;
                    let at = job.map_or(Some(*due), |is| is.at.or(Some(*due)));
                    same("the due time of an extended job", &Some(*due), &at)?;
                }
                AddOutcome::TopicFull(TopicFull { waiting, limit }) => {
                    let is_known = change.was(&new.id).is_ok_and(|was| was.state != State::Done);
                    same(
                        "whether a job that is refused is new, and there is no room",
                        &(false, true),
                        &(is_known, waiting >= limit),
                    )?;
                    change.stays(&new.id)?;
                }
                _ => change.stays(&new.id)?,
            }
            touched.insert(new.id.clone());
        }
        Ok(())
    }

    /// An id that stays taken counts as existing, and no other does whose job is gone.
    fn check_taken(&mut self, new: &NewJob, outcome: &AddOutcome, change: Change<'_>) -> Result<(), String> {
        let now = change.after.now();
        let taken = self.taken.get(&new.id).copied().filter(|(until, _)| *until > now);
        let waits = change.before.view.broadcasts.contains_key(&new.id);
        let state = match change.before.view.jobs.get(&new.id).map(|job| job.state) {
            None | Some(State::Done) if waits => Some(State::Delayed),
            state => state,
        };
        let keeps = matches!(new.on_duplicate, OnDuplicate::Reject | OnDuplicate::Keep);
        match (taken, state) {
            (Some((_, was_deleted)), None | Some(State::Done)) if keeps => {
                let expected = if was_deleted { AddOutcome::Deleted } else { AddOutcome::Exists(State::Done) };
                same("the outcome of an id that stays taken", &expected, outcome)?;
            }
            (Some(_), Some(state)) if keeps => {
                same("the outcome of an id that is taken", &AddOutcome::Exists(state), outcome)?;
            }
            _ => {
                let is_free = !matches!(outcome, AddOutcome::Deleted | AddOutcome::Exists(State::Done));
                same("whether an id counts as existing that is free", &true, &is_free)?;
            }
        }
        let until = new.unique_for.map(|time| change.after.after(time)).max(taken.map(|(until, _)| until));
        if let Some(until) = until.filter(|_| outcome.is_taken()) {
            self.taken.insert(new.id.clone(), (until, false));
        }
        Ok(())
    }

    pub(super) fn check_commands<'a>(
        &mut self,
        outcomes: impl Iterator<Item = (&'a Command, &'a CommandOutcome)>,
        change: Change<'_>,
        touched: &mut BTreeSet<JobId>,
    ) -> Result<(), String> {
        for (Command { id, verb, fence, if_version, .. }, CommandOutcome { changed, other_version, .. }) in outcomes {
            let was = change.before.view.jobs.get(id);
            let deletes = matches!(verb, CommandKind::Delete | CommandKind::Cancel);
            touched.insert(id.clone());
            if let Some(version) = other_version {
                same("whether a command of another version names another", &true, &(*if_version != Some(*version)))?;
                change.stays(id)?;
                continue;
            }
            if deletes && *changed {
                self.taken.entry(id.clone()).and_modify(|(_, was_deleted)| *was_deleted = true);
            }
            let Some(was) = was else {
                change.becomes(id, None)?;
                continue;
            };
            if was.state == State::Running {
                if deletes || *verb == CommandKind::Ack && *changed {
                    self.ends.insert(id.clone(), (*verb, fence.filter(|_| !deletes)));
                }
                // A delete takes the replacement away, and an unfenced ack makes it unconditional.
                let ends_all = deletes || *verb == CommandKind::Ack && *changed && fence.is_none();
                let mut expected = was.clone();
                expected.replacement =
                    expected.replacement.filter(|_| !deletes).map(|(record, c)| (record, c && !ends_all));
                change.becomes(id, Some(&expected))?;
                continue;
            }
            let fixed = was.record.fixed();
            if !changed || *verb == CommandKind::Ack && was.state == State::Done {
                change.stays(id)?;
                continue;
            }
            same(
                "whether a command that names another run has an effect",
                &true,
                &(deletes || fence.is_none() || *fence == fixed.parked_by),
            )?;
            let (now, record) = (change.after.now(), written(&was.record, None, None));
            let expected = match verb {
                CommandKind::Delete | CommandKind::Cancel => placed(was, Event::Deleted, now)?,
                CommandKind::Ack => {
                    placed(was, Event::AckedFromOutside { retain: !fixed.retain.is_zero() }, now.after(fixed.retain))?
                }
                CommandKind::Requeue => {
                    let fresh = Metadata { attempts: 0, exhausted: false, expires_at: None, ..metadata(&record) };
                    let record = if was.state == State::Dead { written(&record, Some(&fresh), None) } else { record };
                    let at = change.after.after(std::time::Duration::ZERO);
                    placed(was, Event::Requeued, at)?.map(|back| JobView { record, ..back })
                }
                CommandKind::Pass => Some(was.clone()),
            };
            change.becomes(id, expected.as_ref())?;
        }
        Ok(())
    }
}

pub(super) fn check_changes(
    outcomes: &[(&JobChange, &ChangeOutcome)],
    change: Change<'_>,
    touched: &mut BTreeSet<JobId>,
) -> Result<(), String> {
    for (item, outcome) in outcomes {
        let was = change.before.view.jobs.get(&item.id).filter(|was| was.state != State::Done);
        let once = outcomes.iter().filter(|(other, _)| other.id == item.id).count() == 1;
        let (Some(was), true, ChangeVerdict::Changed) = (was, once, outcome.verdict) else { continue };
        touched.insert(item.id.clone());
        let is = change.is(&item.id).ok_or("a change has removed its job")?;
        let fixed = metadata(&is.record);
        same("the version", &(metadata(&was.record).version + 1), &fixed.version)?;
        let now = change.after.after(std::time::Duration::ZERO);
        let at = match &item.what {
            _ if was.state != State::Delayed => was.at,
            ChangeKind::Reschedule(Due::After(delay) | Due::Usual(delay)) => Some(change.after.after(*delay)),
            ChangeKind::Reschedule(Due::At(at)) => Some(now.max(*at)),
            ChangeKind::ExtendBy(delay) => was.at.map(|at| at.after(*delay)),
            ChangeKind::RunNow => was.at.map(|at| at.min(now)),
            ChangeKind::Update(_) | ChangeKind::Options(_) => was.at,
        };
        let event = if let ChangeKind::Update(new) = &item.what {
            same_payload(new, &is.record)?;
            Event::Updated
        } else if let ChangeKind::Options(options) = &item.what {
            same_payload(&was.record, &is.record)?;
            let found = (fixed.retry, options.headers.as_ref().map(|_| fixed.headers));
            same("the options", &(options.retry.clone(), options.headers.clone()), &found)?;
            Event::Updated
        } else {
            same_payload(&was.record, &is.record)?;
            Event::Rescheduled
        };
        let state = super::moved(was, event)?.unwrap_or(State::Done);
        change.becomes(&item.id, Some(&JobView { state, at, record: is.record.clone(), ..was.clone() }))?;
    }
    // Two changes of one job follow each other, and are judged by the comparison with other stores.
    let changed = outcomes.iter().filter(|(_, outcome)| outcome.verdict == ChangeVerdict::Changed);
    touched.extend(changed.map(|(item, _)| item.id.clone()));
    Ok(())
}
