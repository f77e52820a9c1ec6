//! A run of the journal with everything in it, whose state after each step is known.
//!
//! The state is a set of keys and the number of the last step. Steps put and remove keys; while a snapshot is being taken, steps
//! go on. What is recovered must be the state after some step, from the last one that was confirmed on.

use std::collections::BTreeMap;
use std::sync::Arc;

use dq::store::file::journal::{
    Frame, Journal, JournalError, OpenError, Options, Position, Recovered, SnapshotError, TopicNumber,
};
use dq_testing::disk::SimulatedDisk;

use crate::fixture::{UNIT, options};
use crate::random::Random;
use crate::watcher::Watcher;

const PUT: u8 = 1;
const REMOVE: u8 = 2;
const LAST: u8 = 3;

/// What frames add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    keys: BTreeMap<u64, u64>,
    pub last: u64,
}

impl State {
    pub fn apply(&mut self, frame: &Frame<'_>) {
        let number = |at: usize| u64::from_le_bytes(frame.bytes[at..at + 8].try_into().unwrap());
        match frame.kind {
            PUT => {
                self.keys.insert(number(0), number(8));
                self.last = number(8);
            }
            REMOVE => {
                self.keys.remove(&number(0));
                self.last = number(8);
            }
            LAST => self.last = number(0),
            kind => panic!("kind {kind}"),
        }
    }
}

/// Small segments, so that a short run has many.
pub fn small() -> Options {
    Options { segment_bytes: 6 * UNIT as u64, ahead_bytes: 2 * UNIT as u64, ..options() }
}

/// Opens the journal of a disk and returns its state.
pub fn reopen(disk: &SimulatedDisk) -> Result<(Arc<Journal>, Recovered, State), OpenError> {
    let mut state = State::default();
    let (journal, recovered) = Journal::open(Arc::new(disk.clone()), &small(), |_: Position, frame: Frame<'_>| {
        state.apply(&frame);
        Ok::<_, std::io::Error>(())
    })?;
    Ok((Arc::new(journal), recovered, state))
}

/// Writes the step after those that were recovered, and returns the state then.
pub fn step_after(journal: &Journal, state: &State) -> State {
    let after = State { last: state.last + 1, ..state.clone() };
    journal.append(TopicNumber::NONE, LAST, &after.last.to_le_bytes()).unwrap();
    journal.commit().unwrap();
    after
}

/// What a run did.
#[derive(Debug, Default)]
pub struct History {
    disk: SimulatedDisk,
    /// Who looks at the files after each commit.
    pub watcher: Watcher,
    /// The state after each step, from 0 on.
    states: Vec<State>,
    /// The last step that a commit confirmed.
    pub confirmed: u64,
    /// The last reservation that a commit confirmed.
    reserved: u64,
    pub snapshots: usize,
    pub is_sealed: bool,
    /// The error that ended the run.
    pub error: Option<JournalError>,
}

impl History {
    /// Runs on a disk until the end or the first error of the journal.
    pub fn run(disk: &SimulatedDisk, steps: u64) -> Self {
        let mut history = Self { disk: disk.clone(), states: vec![State::default()], ..Self::default() };
        if let Ok((journal, ..)) = reopen(disk) {
            history.error = history.go_on(&journal, steps).err();
        }
        history
    }

    fn go_on(&mut self, journal: &Arc<Journal>, steps: u64) -> Result<(), JournalError> {
        let random = Random::new(11);
        for part in 0..3 {
            for _ in 0..steps {
                self.step(journal, &random)?;
                if random.below(4) == 0 {
                    self.commit(journal)?;
                }
            }
            journal.reserve(1_000 * (part + 1))?;
            self.commit(journal)?;
            self.reserved = 1_000 * (part + 1);
            if part < 2 {
                self.snapshot(journal, &random)?;
            }
        }
        journal.seal()?;
        self.is_sealed = true;
        self.confirmed = self.last();
        Ok(())
    }

    pub fn last(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    fn step(&mut self, journal: &Journal, random: &Random) -> Result<(), JournalError> {
        let (key, step) = (random.below(40) as u64, self.last() + 1);
        let topic = journal.topic(["orders", "mails", "a topic that is rare"][random.below(21) / 10])?;
        let mut state = self.states.last().unwrap().clone();
        state.last = step;
        let mut bytes = [key.to_le_bytes(), step.to_le_bytes()].concat();
        let kind = if random.below(3) == 0 { REMOVE } else { PUT };
        if kind == PUT {
            bytes.resize(16 + random.below(200), 0x5A);
            state.keys.insert(key, step);
        } else {
            state.keys.remove(&key);
        }
        journal.append(topic, kind, &bytes)?;
        self.states.push(state);
        Ok(())
    }

    pub fn commit(&mut self, journal: &Journal) -> Result<(), JournalError> {
        journal.commit()?;
        self.confirmed = self.last();
        let seen = self.watcher.check(&self.disk, "after a commit");
        assert_eq!(Some(&seen), self.states.last());
        Ok(())
    }

    /// Takes a snapshot, with steps in between: each key is dumped as it is at that moment. Errors of the snapshot end only it.
    fn snapshot(&mut self, journal: &Arc<Journal>, random: &Random) -> Result<(), JournalError> {
        let mut writer = match journal.snapshot() {
            Ok(writer) => writer,
            Err(error) => return of_journal(error),
        };
        let topic = journal.topic("orders")?;
        let last = self.last();
        for key in 0..40 {
            if key % 8 == 0 {
                self.step(journal, random)?;
            }
            if key % 16 == 0 {
                self.commit(journal)?;
            }
            let Some(step) = self.states.last().unwrap().keys.get(&key) else { continue };
            let bytes = [key.to_le_bytes(), step.to_le_bytes()].concat();
            if let Err(error) = writer.append(topic, PUT, &bytes) {
                return of_journal(error);
            }
        }
        if let Err(error) = writer.append(TopicNumber::NONE, LAST, &last.to_le_bytes()) {
            return of_journal(error);
        }
        // The snapshot ends behind this step, which is not committed.
        self.step(journal, random)?;
        match writer.finish() {
            Ok(_) => {
                self.confirmed = self.last();
                self.snapshots += 1;
                Ok(())
            }
            Err(error) => of_journal(error),
        }
    }

    /// Checks what was recovered: the state after a step that was confirmed, or later.
    pub fn check(&self, recovered: &Recovered, state: &State) {
        assert!(state.last >= self.confirmed, "step {} is confirmed, and {} recovered", self.confirmed, state.last);
        let expected = self.states.get(state.last as usize).expect("no step that was never made");
        assert_eq!(state, expected);
        assert!(recovered.reserved >= self.reserved, "{} is reserved, {} recovered", self.reserved, recovered.reserved);
    }
}

/// The journal goes on after an error of the snapshot's own files.
fn of_journal(error: SnapshotError) -> Result<(), JournalError> {
    match error {
        SnapshotError::Journal(error) => Err(error),
        SnapshotError::Io { .. } | SnapshotError::Left { .. } => Ok(()),
        other => panic!("{other}"),
    }
}
