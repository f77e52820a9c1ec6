//! Notes: what running handlers save in the store, and how far they say that they have come. A note is a step like any other, in order before
//! the outcome of its run, so its token is its fence.
//!
//! No checkpoint is sent twice: a lost answer, or one that does not come in time, is told to the handler, which goes on or fails. A progress is
//! for people. The handler leaves the newest with its run, and the topic takes it to the store once a second at most.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::Outcomes;
use crate::context::topic::held::Held;
use crate::context::topic::moment::Moment;
use crate::context::topic::run::Checkpoint;
use crate::context::topic::slab::HeldId;
use crate::context::topic::stage::Stage;
use crate::job::{JobId, Progress, Token};
use crate::listener::{CheckpointError, RunControl};
use crate::store::RequestKind;
use crate::store::step::{Note, NoteVerdict, Noting};
use crate::time::micros;

/// How many notes may be in flight.
const MAX_IN_FLIGHT: usize = 32;

/// How often the progress of a run is written at most.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// The notes of a topic.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Each with the time at which its handler has waited for long enough.
    waiting: VecDeque<(Duration, Checkpoint)>,
    /// Runs that have said how far they have come, within the last second or not yet written.
    progressing: BTreeMap<JobId, Progressing>,
    /// In the order of the requests.
    in_flight: VecDeque<Sent>,
    /// The last number.
    number: u64,
}

/// A run that says how far it has come.
#[derive(Debug)]
struct Progressing {
    token: Token,
    run: Arc<RunControl>,
    /// When what it says next may be written.
    next: Duration,
}

/// A note in flight.
#[derive(Debug)]
enum Sent {
    Checkpoint(Checkpoint),
    Progress(JobId, Token, Arc<RunControl>, Progress),
}

impl Outcomes {
    /// A handler wants its state to be saved.
    pub(crate) fn on_checkpoint(&mut self, checkpoint: Checkpoint, now: Duration) {
        self.notes.waiting.push_back((now + self.parts.node.call_timeout, checkpoint));
    }

    /// A handler has said how far it has come.
    pub(crate) fn on_progress(&mut self, id: JobId, token: Token, run: Arc<RunControl>, now: Duration) {
        let next = self.notes.progressing.get(&id).filter(|known| known.token == token).map_or(now, |known| known.next);
        self.notes.progressing.insert(id, Progressing { token, run, next });
    }

    /// Sends what waits, unless its handler has waited for long enough.
    pub(crate) fn note(&mut self, moment: &mut Moment) -> Option<Duration> {
        while self.notes.waiting.front().is_some_and(|(until, _)| *until <= moment.now) {
            let (_, late) = self.notes.waiting.pop_front()?;
            late.answer(Err(CheckpointError::Unconfirmed));
        }
        while moment.can_send_beside(RequestKind::Note, MAX_IN_FLIGHT)
            && let Some((_, checkpoint)) = self.notes.waiting.pop_front()
        {
            self.send_checkpoint(checkpoint, moment);
        }
        let late = self.notes.waiting.front().map(|(until, _)| *until);
        let next = self.note_progress(moment);
        let again = late.into_iter().chain(next).chain(late.and(moment.pause_end(RequestKind::Note)));
        again.min()
    }

    fn send_checkpoint(&mut self, checkpoint: Checkpoint, moment: &mut Moment) {
        let Checkpoint { id, token, state, .. } = &checkpoint;
        let held = running(moment, id, *token);
        let Some(metadata) = held.and_then(|held| moment.held.keep(held, state.clone())) else {
            return checkpoint.answer(Err(CheckpointError::Lost));
        };
        self.send_note(id.clone(), *token, Noting::State(metadata), moment);
        self.notes.in_flight.push_back(Sent::Checkpoint(checkpoint));
    }

    /// The number comes from the clock, so that it grows after a panic of the topic, too.
    fn send_note(&mut self, id: JobId, token: Token, what: Noting, moment: &mut Moment) {
        let (last_seen, lease) = (moment.flight.last_seen(), self.parts.node.lease);
        let now = micros(moment.now);
        self.notes.number = now.max(self.notes.number.saturating_add(1));
        moment.send(Note { last_seen, lease, id, token, number: self.notes.number, what });
    }

    /// Writes the progress of the runs whose second is over, and forgets those that have said nothing since or have ended.
    fn note_progress(&mut self, moment: &mut Moment) -> Option<Duration> {
        if self.notes.progressing.is_empty() {
            return None;
        }
        let due: Vec<_> = self.notes.progressing.iter().filter(|(_, run)| run.next <= moment.now).collect();
        let due: Vec<JobId> = due.into_iter().map(|(id, _)| id.clone()).collect();
        for id in due {
            let Some(Progressing { token, run, .. }) = self.notes.progressing.get(&id) else { continue };
            let (token, run) = (*token, Arc::clone(run));
            if !moment.can_send_beside(RequestKind::Note, MAX_IN_FLIGHT) {
                return moment.pause_end(RequestKind::Note); // or the answers, or the new link, wake the topic
            }
            match run.take_progress().filter(|_| running(moment, &id, token).is_some()) {
                Some(progress) => {
                    self.send_note(id.clone(), token, Noting::Progress(progress.clone()), moment);
                    let next = moment.now + PROGRESS_EVERY;
                    self.notes.progressing.insert(id.clone(), Progressing { token, run: run.clone(), next });
                    self.notes.in_flight.push_back(Sent::Progress(id, token, run, progress));
                }
                None => drop(self.notes.progressing.remove(&id)),
            }
        }
        self.notes.progressing.values().map(|run| run.next).min()
    }

    /// The store has answered the oldest note.
    pub(crate) fn on_noted(&mut self, note: NoteVerdict, held: &mut Held) {
        let Some(Sent::Checkpoint(checkpoint)) = self.notes.in_flight.pop_front() else { return };
        if note == NoteVerdict::Done {
            held.saved(&checkpoint.id, checkpoint.token, &checkpoint.state);
        }
        checkpoint.answer(match note {
            NoteVerdict::Done => Ok(()),
            NoteVerdict::Stale => Err(CheckpointError::Lost),
            NoteVerdict::Ended | NoteVerdict::Cancelled => Err(CheckpointError::Ended),
        });
    }

    /// Requests (of one kind, or all) will not be answered. The store may have done those in flight.
    pub(crate) fn send_again(&mut self, kind: Option<RequestKind>) {
        let unanswered = match kind {
            None => self.notes.in_flight.len(),
            Some(RequestKind::Note) => 1, // the store has refused the oldest
            Some(_) => 0,
        };
        for _ in 0..unanswered {
            match self.notes.in_flight.pop_front() {
                Some(Sent::Checkpoint(checkpoint)) => checkpoint.answer(Err(CheckpointError::Unconfirmed)),
                Some(Sent::Progress(id, token, run, progress)) => {
                    run.return_progress(progress);
                    let returned = Progressing { token, run, next: Duration::ZERO };
                    self.notes.progressing.entry(id).or_insert(returned);
                }
                None => {}
            }
        }
    }
}

/// The job, if a run has it under this token.
fn running(moment: &mut Moment, id: &JobId, token: Token) -> Option<HeldId> {
    moment.held.defects.at(id);
    let held = moment.held.under(id, token)?;
    moment.held.get(held).is_some_and(|job| matches!(job.stage, Stage::Running(_))).then_some(held)
}
