//! The steps of a producer, each a script over its ordered connection.

use std::collections::{BTreeSet, HashSet};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::FixedState;
use redis::Cmd;

use super::audit::{TRIES, nodes_of, too_many_nodes};
use super::connection::OrderedConnection;
use super::keys::Keys;
use super::reply::{Reply, malformed};
use super::scripts::{ScriptCall, Scripts, Step};
use super::{LAST_MS, micros, millis, within};
use crate::job::{Deliver, NodeId, ProducerId, Record, State};
use crate::store::{
    AddOutcome, BatchAnswer, Command, CommandKind, CommandOutcome, Due, NewJob, Numbered, OnDuplicate, Pending,
    Producer, StoreError,
};
use crate::time::Timestamp;

/// One producer of one topic.
#[derive(Debug)]
pub(super) struct RedisProducer {
    pub(super) connection: OrderedConnection,
    pub(super) scripts: Arc<Scripts>,
    pub(super) keys: Keys,
    pub(super) producer: ProducerId,
    /// The nodes that held jobs when an add last met a running one.
    pub(super) nodes: Arc<Mutex<BTreeSet<NodeId>>>,
    /// Enters the topic into the directory.
    pub(super) entry: Arc<Cmd>,
}

fn lock(nodes: &Mutex<BTreeSet<NodeId>>) -> MutexGuard<'_, BTreeSet<NodeId>> {
    nodes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn known_nodes(nodes: &Mutex<BTreeSet<NodeId>>) -> BTreeSet<NodeId> {
    lock(nodes).clone()
}

impl RedisProducer {
    fn call(&self, step: Step, number: u64) -> ScriptCall {
        self.scripts.call(step, &self.keys, self.producer.as_str()).arg(number)
    }
}

impl Producer for RedisProducer {
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        if let Err(error) = within("the number of jobs to add", batch.items.len()) {
            return Box::pin(ready(Err(error)));
        }
        let mut outcomes = Vec::with_capacity(batch.items.len());
        let mut named = HashSet::with_capacity_and_hasher(batch.items.len(), FixedState::default());
        let mut sent = Vec::with_capacity(batch.items.len());
        let mut retains = false;
        for job in &batch.items {
            if !named.insert(&job.id) {
                outcomes.push(Some(AddOutcome::Repeated));
                continue;
            }
            retains |= !job.record.fixed().retain.is_zero();
            match ready_to_stamp(&job.record, job.expires_after) {
                Ok(record) => {
                    outcomes.push(None);
                    sent.push((job, record));
                }
                Err(reason) => outcomes.push(Some(AddOutcome::Refused(reason))),
            }
        }
        // Rounded up, so that the store seldom has a new largest record to note.
        let longest =
            sent.iter().map(|(_, record)| record.as_bytes().len()).max().unwrap_or_default().next_power_of_two();
        let special = sent.iter().filter(|(job, _)| !is_plain(job)).count();
        let arguments: Vec<_> =
            sent.into_iter().map(|(job, record)| (job.id.clone(), options_of(job), record)).collect();
        let (connection, scripts, keys) = (self.connection.clone(), Arc::clone(&self.scripts), self.keys.clone());
        let (producer, known, number) = (self.producer.clone(), Arc::clone(&self.nodes), batch.number);
        let entry = Arc::clone(&self.entry);
        let call = move |nodes: &BTreeSet<NodeId>| {
            let call = scripts.call_with_nodes(Step::Add, &keys, producer.as_str(), nodes).arg(number);
            let mut call = call.arg(u8::from(retains)).arg(special).arg(longest).arg(nodes.len());
            nodes.iter().for_each(|node| call.push(node.as_str()));
            for (id, options, record) in &arguments {
                call.push(id.as_str());
                call.push(options);
                call.push(record.as_bytes().as_ref());
            }
            call.behind = Some(Arc::clone(&entry));
            call
        };
        let mut answer = Box::pin(connection.ask_list(call(&known_nodes(&known))));
        Box::pin(async move {
            for _ in 0..TRIES {
                let mut reply = answer.await?;
                let form = reply.text()?;
                if form != "again" {
                    return added(&form, reply, outcomes);
                }
                // A job of the batch runs, or its place was removed: the next try reads the rows of these nodes too.
                let nodes = nodes_of(&mut reply)?;
                answer = Box::pin(connection.ask_list(call(&nodes)));
                *lock(&known) = nodes;
            }
            Err(too_many_nodes("add"))
        })
    }

    fn command(&self, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>> {
        if let Err(error) = within("the number of commands", batch.items.len()) {
            return Box::pin(ready(Err(error)));
        }
        let mut call = self.call(Step::Command, batch.number);
        for Command { verb, id, fence } in &batch.items {
            call.push(match verb {
                CommandKind::Delete => "d",
                CommandKind::Cancel => "c",
                CommandKind::Ack => "a",
                CommandKind::Requeue => "q",
            });
            call.push(id.as_str());
            call.push(fence.map(|fence| fence.to_string()).unwrap_or_default());
        }
        let answer = self.connection.ask_list(call);
        Box::pin(async move { commanded(answer.await?) })
    }

    fn take_back(&self) -> bool {
        self.connection.take_back()
    }

    fn silent_for(&self) -> Option<Duration> {
        Some(self.connection.silent_for())
    }
}

/// The record with a field for its expiry, which the script writes by position, and without a parking fence.
fn ready_to_stamp(record: &Record, expires_after: Option<Duration>) -> Result<Record, String> {
    if expires_after.is_none() && record.fixed().parked_by.is_none() {
        return Ok(record.clone());
    }
    let mut metadata = record.metadata().map_err(|bad| bad.to_string())?;
    metadata.parked_by = None;
    if expires_after.is_some() {
        metadata.expires_at = Some(Timestamp::EPOCH);
    }
    Ok(record.with_metadata(&metadata))
}

/// Whether the job concerns only the queue and its id is new for certain.
fn is_plain(job: &NewJob) -> bool {
    job.generated && job.deliver == Deliver::Queue && job.expires_after.is_none()
}

/// The options of a job, as the header of `add.lua` describes them.
fn options_of(job: &NewJob) -> String {
    let duplicate = match job.on_duplicate {
        _ if job.generated => 'g',
        OnDuplicate::Reject => 'r',
        OnDuplicate::Keep => 'k',
        OnDuplicate::Replace => 'p',
    };
    let deliver = match job.deliver {
        Deliver::Queue => 'q',
        Deliver::Broadcast => 'b',
        Deliver::Both => 't',
    };
    let (kind, time) = match job.due {
        Due::After(delay) => ('+', micros(delay)),
        Due::At(at) => ('@', at.as_millis().min(LAST_MS)),
    };
    let expiry = job.expires_after.map(|after| format!(",{}", millis(after))).unwrap_or_default();
    format!("{duplicate}{deliver}{kind}{time}{expiry}")
}

/// The codes of the answer, or `None` if the batch is late.
fn codes(form: &str, reply: &mut Reply, kind: char, operation: &'static str) -> Result<Option<String>, StoreError> {
    if form == "late" {
        return Ok(None);
    }
    let text = reply.text()?;
    match text.strip_prefix(kind) {
        Some(codes) => Ok(Some(codes.to_owned())),
        None => Err(StoreError::Other {
            operation,
            source: "the number of the batch was used for a batch of another kind".into(),
        }),
    }
}

fn added(
    form: &str,
    mut reply: Reply,
    outcomes: Vec<Option<AddOutcome>>,
) -> Result<BatchAnswer<AddOutcome>, StoreError> {
    let Some(codes) = codes(form, &mut reply, 'a', "add")? else { return Ok(BatchAnswer::Late) };
    let mut codes = codes.chars();
    let all = codes.as_str() == "*";
    let mut next = || if all { Some('A') } else { codes.next() };
    let outcomes = outcomes.into_iter().map(|known| match known {
        Some(known) => Ok(known),
        None => next().and_then(outcome).ok_or_else(|| malformed("add", "it has another number of outcomes")),
    });
    outcomes.collect::<Result<_, _>>().map(BatchAnswer::Done)
}

fn outcome(code: char) -> Option<AddOutcome> {
    Some(match code {
        'A' => AddOutcome::Added,
        'W' => AddOutcome::ReplacementWaits,
        'I' => AddOutcome::ReplacementIfEnds,
        code if code.is_ascii_uppercase() => AddOutcome::Replaced(state(code.to_ascii_lowercase())?),
        code => AddOutcome::Exists(state(code)?),
    })
}

fn commanded(mut reply: Reply) -> Result<BatchAnswer<CommandOutcome>, StoreError> {
    let form = reply.text()?;
    let Some(codes) = codes(&form, &mut reply, 'c', "command")? else { return Ok(BatchAnswer::Late) };
    let mut removed = if reply.len() > 0 { Some(reply.nested()?) } else { None };
    let mut outcomes = Vec::with_capacity(codes.len() / 2);
    for pair in codes.as_bytes().chunks_exact(2) {
        let removed = match &mut removed {
            Some(records) => match records.nested_or_nothing()? {
                Some(mut parts) => Some(parts.record()?.under(&parts.bytes()?)),
                None => None,
            },
            None => None,
        };
        outcomes.push(CommandOutcome { found: state(pair[0].into()), changed: pair[1] == b'+', removed });
    }
    Ok(BatchAnswer::Done(outcomes))
}

/// The state that a letter stands for in the scripts.
pub(super) const fn state(code: char) -> Option<State> {
    match code {
        'd' => Some(State::Delayed),
        'r' => Some(State::Running),
        'u' => Some(State::Unacked),
        'x' => Some(State::Dead),
        'f' => Some(State::Done),
        _ => None,
    }
}
