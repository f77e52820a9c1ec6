//! The steps of a producer, each a script over its ordered connection.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, TryFutureExt};
use redis::Value;

use super::add_batch::{AddBatch, LATER_KEYS, PLAIN_KEYS, WIDE_KEYS};
use super::all_nodes::{TRIES, nodes_of, too_many_nodes};
use super::change;
use super::connection::OrderedConnection;
use super::directory::DirectoryEntry;
use super::import;
use super::job_sets;
use super::outbox::number_of;
use super::reply::{Reply, codes, malformed, read};
use super::scripts::{ScriptCall, Step, TopicScripts};
use super::told::Told;
use super::topic_state;
use crate::job::{GroupName, JobId, NodeId, OverLimit, Record, State};
use crate::store::{
    AddOutcome, Batch, BatchAnswer, BatchReply, Command, CommandKind, CommandOutcome, FollowUpBatch, FollowUpOutcome,
    LAST_VERSION, Membership, NewJob, OutboxEntry, Pending, Producer, SetChange, SetOutcome, Sifted, StoreError,
    TooHeavy, escaped, with_those_over,
};

/// One producer of one topic.
#[derive(Debug)]
pub(super) struct RedisProducer {
    connection: OrderedConnection,
    calls: Arc<Calls>,
    /// A call of `command` without arguments.
    command: ScriptCall,
}

/// What the calls of an add are made of.
#[derive(Debug)]
struct Calls {
    /// Of the topic and the producer.
    scripts: TopicScripts,
    /// Calls of `add` without arguments, for a plain batch, for one whose jobs may be due much later, and where the topic needs more
    /// keys.
    plain: [ScriptCall; 3],
    /// Whether it does.
    is_wide: AtomicBool,
    /// The nodes that held jobs when an add last met a running one.
    nodes: Mutex<BTreeSet<NodeId>>,
    entry: DirectoryEntry,
}

impl Calls {
    fn nodes(&self) -> MutexGuard<'_, BTreeSet<NodeId>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call of an add. With `renews` the store keeps the answer for an hour from now.
    fn add(&self, batch: &AddBatch, renews: bool) -> ScriptCall {
        if batch.is_plain() {
            let [plain, later, wide] = &self.plain;
            let is_wide = batch.is_wide() || self.is_wide.load(Ordering::Relaxed);
            let mut call = if is_wide {
                wide
            } else if batch.may_be_later() {
                later
            } else {
                plain
            }
            .clone();
            batch.write(&mut call, &BTreeSet::new(), renews);
            call
        } else {
            let nodes = self.nodes().clone();
            let mut call = self.scripts.call_with_nodes(Step::Add, &nodes);
            batch.write(&mut call, &nodes, renews);
            call
        }
    }
}

impl RedisProducer {
    pub(super) fn new(connection: OrderedConnection, scripts: TopicScripts, entry: DirectoryEntry) -> Self {
        let command = scripts.call(Step::Command);
        let plain =
            [PLAIN_KEYS, LATER_KEYS, WIDE_KEYS].map(|count| scripts.call_with_first(Step::Add, count, &scripts.owner));
        let calls = Calls { scripts, plain, is_wide: AtomicBool::default(), nodes: Mutex::default(), entry };
        Self { connection, calls: Arc::new(calls), command }
    }
}

impl Producer for RedisProducer {
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        if let Err(error) = batch.check() {
            return Box::pin(ready(Err(error)));
        }
        let scripts = &self.calls.scripts;
        match batch {
            Batch::Add { batch } => self.add(AddBatch::new(batch.number, batch.items)).map_ok(BatchReply::Add).boxed(),
            Batch::Command { batch } => self.command(batch.number, &batch.items).map_ok(BatchReply::Command).boxed(),
            Batch::Change { batch } => {
                let answer = self.connection.ask_list(change::write(scripts.call(Step::Change), &batch));
                Box::pin(async move { change::changed(answer.await?, batch.items.len()).map(BatchReply::Change) })
            }
            Batch::Import { number, import } => {
                let (call, repeats) = import::write(scripts.call(Step::Import), number, import);
                let (calls, answer) = (Arc::clone(&self.calls), self.connection.ask_list(call));
                Box::pin(async move {
                    import::imported(calls.entry.before(answer.await).await?, &repeats).map(BatchReply::Import)
                })
            }
            Batch::Set { number, set } => {
                let answer = self.connection.ask_list(topic_state::write(scripts.call(Step::Set), number, &set));
                Box::pin(async move { topic_state::set(answer.await?, &set.change).map(BatchReply::Set) })
            }
            Batch::JobSet { number, change } => self.change_set(number, &change).map_ok(BatchReply::JobSet).boxed(),
            Batch::Relay { entry } => self.relay(&entry),
        }
    }

    fn take_back(&self) -> bool {
        self.connection.take_back()
    }

    fn silent_for(&self) -> Option<Duration> {
        Some(self.connection.silent_for().max(self.calls.entry.silent_for()))
    }
}

impl RedisProducer {
    fn add(&self, batch: AddBatch) -> Pending<BatchAnswer<AddOutcome>> {
        let (connection, calls) = (self.connection.clone(), Arc::clone(&self.calls));
        let renews = calls.entry.is_due();
        let answer = connection.ask(calls.add(&batch, renews));
        Box::pin(async move {
            let added = async {
                let (mut answer, mut tries) = (answer.await?, 1);
                loop {
                    match Added::of(answer)? {
                        Added::Late => return Ok(BatchAnswer::Late),
                        // A job of the batch runs, or its place was removed: the next try reads the rows of these nodes too.
                        Added::Again(_) if tries >= TRIES => return Err(too_many_nodes("add")),
                        Added::Again(_) if batch.is_plain() => calls.is_wide.store(true, Ordering::Relaxed),
                        Added::Again(nodes) => *calls.nodes() = nodes,
                        Added::Done(text) => return outcomes(batch, &text),
                    }
                    tries += 1;
                    answer = connection.ask(calls.add(&batch, renews)).await?;
                }
            };
            calls.entry.before(added.await).await
        })
    }

    fn command(&self, number: impl redis::ToRedisArgs, commands: &[Command]) -> Pending<BatchAnswer<CommandOutcome>> {
        let mut call = self.command.clone();
        call.push(number);
        for Command { verb, id, fence, if_version, by } in commands {
            let fence = fence.map(|fence| fence.to_string()).unwrap_or_default();
            let version = if_version.map(|version| version.to_string()).unwrap_or_default();
            call.push((verb.letter(), id.as_str(), fence, version, escaped(by.as_deref().unwrap_or_default())));
        }
        let count = commands.len();
        self.connection.ask_list(call).map(move |answer| commanded(answer?, count)).boxed()
    }

    /// Executes an entry of an outbox, as the add or the deletes that it is; its position is the number.
    fn relay(&self, entry: &OutboxEntry) -> Pending<BatchReply> {
        let Sifted { batch, over } = match entry.sifted() {
            Err(error) => return Box::pin(ready(Err(error))),
            Ok(sifted) => sifted,
        };
        match batch {
            FollowUpBatch::Add(jobs) => self.relay_adds(entry, jobs, None, over),
            FollowUpBatch::Members(of, jobs) => self.relay_adds(entry, jobs, Some(&of), over),
            FollowUpBatch::Set(change) => {
                let changed = self.change_set(number_of(entry), &change);
                relayed(changed, move |outcomes| FollowUpOutcome::of_set(&change, &outcomes))
            }
            FollowUpBatch::Delete(ids) => {
                let deletes: Vec<_> = ids.into_iter().map(|id| Command::new(CommandKind::Delete, id)).collect();
                let deleted = self.command(number_of(entry), &deletes);
                relayed(deleted, |outcomes| FollowUpOutcome::of_deletes(&outcomes))
            }
        }
    }

    fn relay_adds(
        &self,
        entry: &OutboxEntry,
        jobs: Vec<NewJob>,
        of: Option<&Membership>,
        over: Vec<(usize, JobId, OverLimit)>,
    ) -> Pending<BatchReply> {
        let known = jobs.iter().map(|job| (job.id.clone(), job.on_duplicate)).collect();
        let ids = over.iter().map(|(_, id, _)| id.clone()).collect();
        let added = self.add(AddBatch::new(entry.position.at, jobs).relayed(number_of(entry)).of_set(of, ids));
        relayed(added, |outcomes| with_those_over(over, FollowUpOutcome::of_adds(known, outcomes)))
    }

    fn change_set(&self, number: impl redis::ToRedisArgs, change: &SetChange) -> Pending<BatchAnswer<SetOutcome>> {
        let calls = Arc::clone(&self.calls);
        let call = job_sets::write(&calls.scripts, number, change);
        let (answer, set) = (self.connection.ask_list(call), change.set.clone());
        Box::pin(async move { job_sets::changed(calls.entry.before(answer.await).await?, &set) })
    }
}

/// The answer to an entry of an outbox.
fn relayed<T: 'static>(
    answer: Pending<BatchAnswer<T>>,
    outcomes_of: impl FnOnce(Vec<T>) -> Vec<FollowUpOutcome> + Send + 'static,
) -> Pending<BatchReply> {
    answer.map_ok(|answer| BatchReply::Relay(answer.map(outcomes_of))).boxed()
}

/// The answer to an add.
enum Added {
    Done(String),
    Late,
    Again(BTreeSet<NodeId>),
}

impl Added {
    fn of(answer: Value) -> Result<Self, StoreError> {
        if let Value::BulkString(_) = answer {
            return read("add", answer).map(Self::Done);
        }
        let mut reply = Reply::list("add", answer)?;
        match reply.text()?.as_str() {
            "late" => Ok(Self::Late),
            "again" => Ok(Self::Again(nodes_of(&mut reply)?)),
            _ => Ok(Self::Done(reply.text()?)),
        }
    }
}

fn outcomes(batch: AddBatch, text: &str) -> Result<BatchAnswer<AddOutcome>, StoreError> {
    let outcomes = batch.outcomes(codes(text, 'a', "add")?, outcome);
    outcomes.map(BatchAnswer::Done).ok_or_else(|| malformed("add", "it has another number of outcomes"))
}

fn outcome(told: &mut Told<'_>, record: &Record) -> Option<AddOutcome> {
    Some(match told.letter()? {
        'A' => AddOutcome::Added,
        'W' => AddOutcome::ReplacementWaits,
        'I' => AddOutcome::ReplacementIfEnds,
        'E' => {
            let (version, due) = told.version_and_due()?;
            AddOutcome::Extended { due: due?, version }
        }
        'L' => AddOutcome::Later,
        'T' => AddOutcome::TopicFull(told.full()?),
        'G' => {
            let (_, name) = record.group()?;
            AddOutcome::GroupFull { group: GroupName::new(name).ok()?, full: told.full()? }
        }
        'H' => AddOutcome::TooHeavy(TooHeavy { weight: record.weight(), rate: told.rate()?, group: None }),
        'J' => {
            let (_, name) = record.group()?;
            let (weight, group) = (record.weight(), GroupName::new(name).ok()?);
            AddOutcome::TooHeavy(TooHeavy { weight, rate: told.rate()?, group: Some(group) })
        }
        'z' => AddOutcome::Deleted,
        'M' => AddOutcome::Refused(LAST_VERSION.to_owned()),
        code if code.is_ascii_uppercase() => AddOutcome::Replaced(State::of_letter(code.to_ascii_lowercase())?),
        code => AddOutcome::Exists(State::of_letter(code)?),
    })
}

fn commanded(reply: Reply, count: usize) -> Result<BatchAnswer<CommandOutcome>, StoreError> {
    reply.batch('c', |codes, reply| {
        let codes = codes.strip_prefix('*').map_or_else(|| codes.to_owned(), |code| code.repeat(count));
        let mut outcomes = Told::new(&codes).of_batch("command", count, command_outcome)?;
        if reply.len() > 0 {
            let removed: Vec<Option<(Record, Bytes)>> = reply.read()?;
            for (outcome, removed) in outcomes.iter_mut().zip(removed) {
                outcome.removed = removed.map(|(record, metadata)| record.under(&metadata));
            }
        }
        Ok(outcomes)
    })
}

fn command_outcome(told: &mut Told<'_>) -> Option<CommandOutcome> {
    let found = match told.letter()? {
        '-' => None,
        letter => Some(State::of_letter(letter)?),
    };
    let (changed, other_version) = match told.letter()? {
        '+' => (true, None),
        '-' => (false, None),
        'v' => (false, Some(told.version_and_due()?.0)),
        _ => return None,
    };
    Some(CommandOutcome { found, changed, removed: None, other_version })
}
