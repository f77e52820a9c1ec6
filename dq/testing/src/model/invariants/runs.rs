//! How jobs leave RUNNING: by outcomes, by a reclaim, and under the pending commands that come first.

use std::collections::BTreeSet;

use super::super::cluster::{Topic, metadata};
use super::super::queries::same;
use super::{Change, Invariants, moved};
use dq::job::state::Event;
use dq::job::{Fence, JobId, Metadata, NodeId, Record, State};
use dq::store::CommandKind;
use dq::store::step::{self, Outcome, Reclaim, Reclaimed, RejoinDue, Verdict};
use dq::testing::seam::JobView;
use dq::time::Timestamp;

/// The record with this metadata, if there is new, and with the parking fence, which only the store sets.
pub(super) fn written(record: &Record, new: Option<&Metadata>, parked_by: Option<Fence>) -> Record {
    let new = new.cloned().unwrap_or_else(|| metadata(record));
    record.with_metadata(&Metadata { parked_by, ..new })
}

/// The job in a place that it may be moved to by `event`. `None`: it is gone.
pub(super) fn placed(was: &JobView, event: Event, at: Timestamp) -> Result<Option<JobView>, String> {
    let at = Some(at);
    Ok(moved(was, event)?.map(|state| JobView { state, at, row: None, replacement: None, crashes: 0, ..was.clone() }))
}

impl Invariants {
    pub(super) fn check_settle<'a>(
        &mut self,
        node: &NodeId,
        outcomes: impl Iterator<Item = (&'a Outcome, &'a Verdict)> + Clone,
        change: Change<'_>,
        touched: &mut BTreeSet<JobId>,
    ) -> Result<(), String> {
        let ticks = outcomes.clone().filter_map(|(outcome, verdict)| match &outcome.change {
            step::Change::Tick(tick) if *verdict == Verdict::Done => Some(tick),
            _ => None,
        });
        let added: BTreeSet<_> = ticks.flat_map(|tick| &tick.jobs).map(|job| job.id.clone()).collect();
        for (outcome, verdict) in outcomes {
            let row = change.before.row(&outcome.id);
            let holds = row.is_some_and(|row| row.node == *node && row.token == outcome.token);
            same("the verdict", &if holds { Verdict::Done } else { Verdict::Stale }, verdict)?;
            if holds && added.contains(&outcome.id) {
                self.ends.remove(&outcome.id);
            } else if holds {
                let decided = decided(change.was(&outcome.id)?, outcome, change.after)?;
                self.check_left(&outcome.id, decided.as_ref(), change)?;
                touched.insert(outcome.id.clone());
            }
        }
        // A tick adds its jobs unless their ids are known.
        for id in added {
            let was = change.before.view.jobs.get(&id).map(|job| job.state);
            if matches!(was, None | Some(State::Done | State::Running)) {
                touched.insert(id);
            }
        }
        Ok(())
    }

    pub(super) fn check_reclaim(
        &mut self,
        (request, answer): (&Reclaim, &Reclaimed),
        change: Change<'_>,
        touched: &mut BTreeSet<JobId>,
    ) -> Result<(), String> {
        let held = change.before.view.jobs.iter().filter_map(|(id, job)| Some((id, job, job.row.as_ref()?)));
        let rows: Vec<_> = held.filter(|(_, _, row)| row.node == request.node).collect();
        let ended = change.before.view.leases.get(&request.node) == Some(&request.seen);
        let expected = if ended && request.seen <= change.after.now() {
            let moved = rows.len().min(request.limit);
            Reclaimed { moved, left: rows.len() - moved }
        } else {
            Reclaimed { moved: 0, left: 0 }
        };
        same("the answer of a reclaim", &expected, answer)?;
        let taken: Vec<_> = rows.into_iter().filter(|(id, was, _)| change.is(id) != Some(was)).collect();
        same("how many jobs a reclaim moves", &expected.moved, &taken.len())?;
        for (id, was, row) in taken {
            let parked = was.record.fixed().parked_by.is_some();
            let final_isolated = change.is(id).is_some_and(|is| is.state == State::Dead);
            let at = if final_isolated { change.after.now() } else { row.token.due };
            let back = placed(was, Event::Reclaimed { parked, final_isolated }, at)?;
            // A crash is charged at most once; a job that was convicted has its last crash, and its record says so.
            let is = change.is(id).cloned().unwrap_or_else(|| was.clone());
            let convicted = is.record.fixed().exhausted && is.crashes == request.max_crashes.max(1) + 2;
            let charged = is.crashes == was.crashes + 1 || final_isolated || convicted;
            let may = is.crashes == was.crashes || request.seen != Timestamp::EPOCH && charged;
            if self.end(id, row, was.record.fixed().parked_by).is_none() && was.replacement.is_none() {
                same("whether a reclaim may charge these crashes", &true, &may)?;
            }
            let record = if convicted || final_isolated { is.record } else { was.record.clone() };
            let back = back.map(|back| JobView { crashes: is.crashes, record, ..back });
            self.check_left(id, back.as_ref(), change)?;
            touched.insert(id.clone());
        }
        Ok(())
    }

    /// A run is over: a pending command is obeyed, and otherwise the job is where it was decided.
    fn check_left(&mut self, id: &JobId, decided: Option<&JobView>, change: Change<'_>) -> Result<(), String> {
        let was = change.was(id)?;
        let fixed = was.record.fixed();
        let end = was.row.as_ref().and_then(|row| self.end(id, row, fixed.parked_by));
        self.ends.remove(id);
        match (&was.replacement, end) {
            (Some((record, conditional)), _) if end.is_some() || !conditional => {
                let waits =
                    change.is(id).filter(|job| job.state == State::Delayed && job.crashes == 0).map(|job| &job.record);
                let broadcast = change.after.view.broadcasts.get(id).map(|(_, record)| record);
                same(&format!("the replacement of {id}"), &Some(record), &waits.or(broadcast))
            }
            (_, Some(end)) => {
                let retain = end == CommandKind::Ack && !fixed.retain.is_zero();
                let ended = placed(was, Event::EndedByCommand { retain }, change.after.now().after(fixed.retain))?;
                change.becomes(id, ended.as_ref())
            }
            (_, None) => change.becomes(id, decided),
        }
    }
}

/// The job after its own outcome, if no pending command applies.
fn decided(was: &JobView, outcome: &Outcome, topic: &Topic) -> Result<Option<JobView>, String> {
    use step::Change as C;
    let (now, fixed) = (topic.now(), was.record.fixed());
    let parked_by = fixed.parked_by;
    // An ack with a result may bring a retention.
    let retain = outcome.metadata.as_ref().map_or(fixed.retain, |metadata| metadata.retain);
    let token = was.row.as_ref().map(|row| row.token).unwrap_or(outcome.token);
    let delay = outcome.metadata.as_ref().map_or(fixed.delay, |metadata| metadata.delay);
    let (event, at, parked_by) = match outcome.change.alone() {
        C::Ack => (Event::Acked { retain: !retain.is_zero() }, now.after(retain), parked_by),
        C::Drop => (Event::Dropped, now, parked_by),
        C::Rejoin(RejoinDue::At(at)) if *at > now => (Event::Rejoined, *at, None),
        C::Rejoin(RejoinDue::After(wait) | RejoinDue::BackOff(wait)) => (Event::Rejoined, topic.after(*wait), None),
        C::Rejoin(_) => (Event::Rejoined, topic.after(delay), None),
        C::Retry(wait) => (Event::Retried, topic.after(*wait), None),
        C::Rollback => (Event::RolledBack { parked: parked_by.is_some() }, token.due, parked_by),
        C::Park => (Event::Parked, now, parked_by.or(Some(token.fence))),
        C::Dead | C::Then(..) => (Event::Died, now, None),
        C::Tick(tick) => {
            let next = tick.next.map(|next| next.max(Timestamp::from_millis(token.due.as_millis() + 1)));
            let ticked = placed(was, Event::Ticked { ended: next.is_none() }, next.unwrap_or(now))?;
            // With `unless` the tick may be skipped, if that job has not ended.
            let skipped = tick.unless.as_ref().filter(|(last, skipped)| {
                let state = topic.view.jobs.get(last).map(|job| job.state);
                let waits = matches!(state, Some(State::Delayed | State::Running | State::Unacked))
                    || topic.view.broadcasts.contains_key(last);
                waits && topic.view.jobs.get(&outcome.id).is_some_and(|is| is.record == *skipped)
            });
            let record = skipped.map_or(&tick.schedule, |(_, skipped)| skipped).clone();
            return Ok(ticked.map(|ticked| JobView { record, ..ticked }));
        }
    };
    let crashes = if matches!(outcome.change, C::Rollback) { was.crashes } else { 0 };
    let record = written(&was.record, outcome.metadata.as_ref(), parked_by);
    Ok(placed(was, event, at)?.map(|left| JobView { record, crashes, ..left }))
}
