//! The `file:` store of a run, on a simulated disk. One process owns a directory, so all nodes and callers of the run are in it,
//! and a crash of one is a crash of all of them that loses what was not synced.
//!
//! Steps are judged when they are done; their answers wait for a commit, as in production. After each step the run keeps what the
//! checker expects and the rows. After a crash the rows must be those after one of the steps, and no step before the last one
//! whose answer somebody has seen.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::FutureExt;

use super::checker::Checker;
use super::files::{After, Files, open, rows_of};
use super::process::Process;
use super::random::RandomSource;
use super::rules::without;
use super::sim::Sim;
use super::sync::lock;
use super::units::{MS, SECOND};
use crate::disk::{Fate, SimulatedDisk};
use dq::environment::StoreClock as _;
use dq::job::{NodeId, ProducerId, TopicKey};
use dq::store::file::disk::Disk as _;
use dq::store::{Answer, Batch, BatchReply, Link, LinkOptions, Pending, Producer, Request, StoreError};

impl Sim {
    /// Returns whether the run is on a `file:` store.
    pub(super) fn is_file(&self) -> bool {
        lock(&self.files).is_some()
    }

    /// A step was checked: keeps what a crash may come back to.
    pub(super) fn keep_step(self: &Arc<Self>, key: &TopicKey, checker: &Checker) {
        let mut files = lock(&self.files);
        let Some(files) = &mut *files else { return };
        let Ok(rows) = rows_of(&self.store(), key) else { return };
        let history = files.history(key);
        history.last += 1;
        let step = history.last;
        history.steps.push(After { step, expected: checker.expected.clone(), rows });
        files.stepped = Some((key.clone(), step));
        if !files.is_commit_planned {
            self.plan_commit(files);
        }
    }

    /// The next commit ends soon, rarely after seconds: then the disk is slow.
    fn plan_commit(self: &Arc<Self>, files: &mut Files) {
        (files.is_commit_planned, files.commits) = (true, files.commits + 1);
        let random = self.cluster.random("commit", files.commits);
        let after = match random.below(20) {
            0..15 => random.between(100, 5 * MS),
            15..19 => random.between(5 * MS, 100 * MS),
            _ => random.between(SECOND / 2, 3 * SECOND),
        };
        let (sim, life) = (Arc::clone(self), files.life);
        self.cluster.at(self.cluster.now() + after, move || sim.commit(life));
    }

    fn commit(self: &Arc<Self>, life: u64) {
        let mut all = lock(&self.files);
        let Some(files) = all.as_mut().filter(|files| files.life == life) else { return };
        files.is_commit_planned = false;
        match files.store.commit() {
            Ok(()) => {
                for history in files.histories.values_mut() {
                    history.steps.drain(..history.steps.len() - 1);
                }
            }
            Err(StoreError::Full { .. }) => self.plan_commit(files),
            Err(error) => {
                drop(all);
                return self.bad(format!("[sync] the store stops, though its disk is sound: {error}"));
            }
        }
        let mut done = Vec::new();
        for (mut confirm, then) in std::mem::take(&mut files.waiting) {
            match (&mut confirm).now_or_never() {
                Some(confirmed) => done.push((confirmed, then)),
                None => files.waiting.push((confirm, then)),
            }
        }
        drop(all);
        self.cluster.log(|| format!("a commit confirms {} answers", done.len()));
        done.into_iter().for_each(|(confirmed, then)| then(confirmed));
    }

    /// What the step waits for that was just executed, and which it was.
    pub(super) fn take_stepped(&self) -> (Option<Pending<()>>, Option<(TopicKey, u64)>) {
        lock(&self.files).as_mut().map_or((None, None), |files| (files.confirm.take(), files.stepped.take()))
    }

    /// An answer waits for a commit.
    pub(super) fn hold(&self, confirm: Pending<()>, then: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        if let Some(files) = &mut *lock(&self.files) {
            files.waiting.push((confirm, Box::new(then)));
        }
    }

    /// Somebody sees the answer of a step that promises something.
    pub(super) fn step_is_seen(&self, (key, step): (TopicKey, u64)) {
        if let Some(files) = &mut *lock(&self.files) {
            let history = files.history(&key);
            history.confirmed = history.confirmed.max(step);
        }
    }

    /// Notes what the answer of a step waits for. Without `sync` an add waits for nothing, without `reserve` no claim does.
    fn waits_for(&self, operation: &str, confirm: Option<Pending<()>>) {
        let is_away = operation == "add" && without("sync") || operation == "transfer" && without("reserve");
        if let Some(files) = lock(&self.files).as_mut().filter(|_| !is_away) {
            files.confirm = confirm;
        }
    }

    /// The disk is full until the end of this time.
    pub(super) fn fill_disk(self: &Arc<Self>, until: u64) {
        let Some(disk) = lock(&self.files).as_ref().map(|files| files.disk.clone()) else { return };
        let used = disk.list().expect("it lists").iter().map(|entry| entry.bytes).sum();
        disk.set_room(Some(used));
        self.cluster.at(until, move || disk.set_room(None));
    }

    /// The process dies with all nodes and callers, mostly by a power cut, and starts again.
    pub(super) fn crash(self: &Arc<Self>) {
        let mut all = lock(&self.files);
        let Some(files) = &mut *all else { return };
        files.life += 1;
        let (life, random) = (files.life, self.cluster.random("crash", files.life));
        let cut = Self::cut(files, &random);
        (files.confirm, files.stepped, files.is_commit_planned) = (None, None, false);
        let waiting = std::mem::take(&mut files.waiting);
        drop(all);
        drop(waiting);
        self.cluster.log(|| format!("CRASH {life} of the whole process"));
        self.kill_all();
        if !self.is_calm() && random.chance(0.25) {
            // A machine that starts again may have another time.
            self.jump(&random);
        }
        match open(&cut, &self.clock) {
            Ok((store, rows)) => {
                *lock(&self.store) = rows;
                if let Some(files) = &mut *lock(&self.files) {
                    (files.disk, files.store) = (cut, store);
                }
            }
            Err(error) => return self.bad(format!("[sync] the directory does not open after a crash: {error}")),
        }
        self.recover();
        let count = lock(&self.callers).len();
        let callers = (0..count).map(|_| self.start_caller()).collect();
        let dead = std::mem::replace(&mut *lock(&self.callers), callers);
        drop(dead);
        let (sim, after) = (Arc::clone(self), random.between(SECOND, 6 * SECOND));
        self.cluster.at(self.cluster.now() + after, move || {
            let is_last = lock(&sim.files).as_ref().is_some_and(|files| files.life == life);
            if is_last {
                (0..sim.settings().nodes).for_each(|_| sim.start_node());
            }
        });
    }

    /// The disk as the next process finds it.
    fn cut(files: &Files, random: &RandomSource) -> SimulatedDisk {
        if random.chance(0.2) {
            return files.disk.copy();
        }
        if random.chance(0.6) {
            // The power fails while a group is written. What the store says then reaches nobody.
            files.disk.off_at(random.below(4));
            let _ = files.store.commit();
        }
        let mode = random.below(4);
        files.disk.cut(|_| match (mode, random.below(3)) {
            (0, _) | (2 | 3, 0) => Fate::Lost,
            (1, _) | (2 | 3, 1) => Fate::Kept,
            (2, _) => Fate::Garbled,
            _ => Fate::Lost,
        })
    }

    fn kill_all(self: &Arc<Self>) {
        let (now, micros) = (self.cluster.now(), self.clock.micros());
        let nodes = lock(&self.nodes).clone();
        for node in nodes.iter().filter(|node| !node.process.is_dead()) {
            self.for_checkers(|checker| checker.node_dies(&node.id, now, micros));
            node.process.kill();
        }
        let callers: Vec<Arc<Process>> = lock(&self.callers).iter().map(|(process, _)| Arc::clone(process)).collect();
        callers.iter().for_each(|process| process.kill());
        lock(&self.subscribers).clear();
        self.faults.fetch_add(1, Relaxed);
    }

    /// The rows must be those after a step, and no step that somebody has seen the answer of may be missing.
    fn recover(&self) {
        let (store, now) = (self.store(), self.cluster.now());
        let mut wrong = None;
        self.for_topics(|key, checker| {
            let (Ok(rows), mut all) = (rows_of(&store, key), lock(&self.files)) else { return };
            let Some(files) = &mut *all else { return };
            let history = files.history(key);
            let confirmed = history.confirmed;
            let Some(found) = history.steps.iter().rposition(|after| after.rows == rows) else {
                wrong = Some(format!("[sync] the rows of {} after a crash are those after no step", key.topic));
                return;
            };
            let after = history.steps.swap_remove(found);
            if after.step < confirmed {
                let (topic, step) = (&key.topic, after.step);
                wrong = Some(format!("[sync] {topic} is back at step {step}, but step {confirmed} was confirmed"));
            }
            checker.expected = after.expected.clone();
            checker.forget_turns();
            checker.before = store.view(key);
            checker.forget_unseen_fences();
            checker.unsettle(now);
            history.confirmed = 0;
            history.steps = vec![after];
        });
        if let Some(wrong) = wrong {
            self.bad(wrong);
        }
    }
}

/// A link of a node to the `file:` store.
#[derive(Debug)]
pub(super) struct FileLink {
    pub(super) sim: Arc<Sim>,
    pub(super) key: TopicKey,
    pub(super) node: NodeId,
    pub(super) options: LinkOptions,
}

impl Link for FileLink {
    fn ask(&self, request: Request) -> Pending<Answer> {
        let operation = request.kind().name();
        let (answer, confirm) = self.sim.store().ask_in_parts(&self.key, &self.node, self.options, request);
        self.sim.waits_for(operation, confirm);
        Box::pin(ready(answer))
    }
}

/// A producer of the `file:` store.
#[derive(Debug)]
pub(super) struct FileProducer {
    pub(super) sim: Arc<Sim>,
    pub(super) key: TopicKey,
    pub(super) producer: ProducerId,
}

impl Producer for FileProducer {
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        let operation = batch.name();
        let (answer, confirm) = self.sim.store().execute_in_parts(&self.key, &self.producer, batch);
        self.sim.waits_for(operation, confirm);
        Box::pin(ready(answer))
    }
}
