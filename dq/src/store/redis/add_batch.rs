//! A batch of new jobs as the script of an add takes it: groups of jobs with the same options, then ids and records.

use std::collections::{BTreeSet, HashSet};
use std::iter::repeat_n;
use std::time::Duration;

use foldhash::fast::FixedState;
use redis::RedisWrite;

use super::job_sets::member_of;
use super::record_notes::{RecordNotes, letters};
use super::scripts::{FAR, ScriptCall};
use super::told::Told;
use super::{due_text, millis};
use crate::job::{Delivery, JobId, NodeId, Record};
use crate::store::{AddOutcome, Due, MaxWaiting, Membership, NewJob, OnDuplicate};

/// How many of its keys an add needs if [`AddBatch::is_plain`], if jobs of it may be due much later, and if its topic has groups, keeps
/// histories or limits what waits.
pub(super) const PLAIN_KEYS: usize = 6;
pub(super) const LATER_KEYS: usize = 9;
pub(super) const WIDE_KEYS: usize = 14;

/// The script needs more keys for a larger record (`lua/add.lua`).
const SMALL: usize = 4_096;

/// A job that is due much later and has a larger record waits in `delayed`, so that a step moves few bytes.
const LARGEST_LATER: usize = 1_024;

/// By how many bytes a record grows at most when the script writes its delay, expiry and order in a group.
const MAX_GROWTH: usize = 40;

/// What the jobs of a group share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Options {
    /// `None`: the id is generated.
    on_duplicate: Option<OnDuplicate>,
    deliver: Delivery,
    due: Due,
    expires_after: Option<Duration>,
    max_waiting: Option<MaxWaiting>,
    /// Not of a generated id.
    unique_for: Option<Duration>,
}

impl Options {
    fn may_be_later(&self) -> bool {
        self.deliver == Delivery::Queue && !matches!(self.due, Due::After(delay) | Due::Usual(delay) if delay < FAR)
    }
}

/// A batch that can be sent several times.
#[derive(Debug, Default)]
pub(super) struct AddBatch {
    number: u64,
    /// Of an entry of an outbox: its number as the script takes it.
    relayed: Option<String>,
    /// The set of which the jobs become members, as the script takes it.
    membership: Option<String>,
    /// Jobs that are not sent, because they are refused for certain: the set is told that they have left.
    left: Vec<JobId>,
    /// Neighbours with the same options, and how many they are.
    groups: Vec<(Options, usize)>,
    jobs: Vec<(JobId, Record)>,
    /// The outcomes that the store need not decide, by the position of the job.
    decided: Vec<(usize, AddOutcome)>,
    notes: RecordNotes,
    /// Where the caller had each of the jobs, if another order is sent.
    order: Option<Vec<usize>>,
}

impl AddBatch {
    pub(super) fn new(number: u64, items: Vec<NewJob>) -> Self {
        let mut batch = Self { number, jobs: Vec::with_capacity(items.len()), ..Self::default() };
        let repeated = repeated(&items);
        for (position, job) in items.into_iter().enumerate() {
            if repeated.contains(&position) {
                batch.decided.push((position, AddOutcome::Repeated));
            } else if let Err((id, reason)) = batch.push(job) {
                batch.left.push(id);
                batch.decided.push((position, AddOutcome::Refused(reason)));
            }
        }
        // Rounded up, so that the store seldom has a new largest record to note.
        batch.notes.longest = batch.notes.longest.next_power_of_two();
        if batch.may_be_later() {
            batch.sort_later();
        }
        batch
    }

    /// The batch of an entry of an outbox, whose number is this text.
    pub(super) fn relayed(mut self, number: String) -> Self {
        self.relayed = Some(number);
        self
    }

    /// The jobs are members of this set, if there is one. Of these, which are over a limit, it is told that they have left.
    pub(super) fn of_set(mut self, membership: Option<&Membership>, over: Vec<JobId>) -> Self {
        self.membership = membership.map(member_of);
        self.left.extend(over);
        self
    }

    fn push(&mut self, job: NewJob) -> Result<(), (JobId, String)> {
        let fixed = self.notes.add(&job.record);
        let is_new = (fixed.parked_by, fixed.version, fixed.first_added) == (None, 0, None);
        let record = match job.expires_after.is_none() && is_new {
            true => job.record,
            false => as_new(&job.record).map_err(|reason| (job.id.clone(), reason))?,
        };
        let grows = matches!(job.due, Due::Usual(_)) || job.expires_after.is_some() || self.notes.has_groups;
        let growth = if grows { MAX_GROWTH } else { 0 };
        self.notes.longest = self.notes.longest.max(record.as_bytes().len() + growth);
        let on_duplicate = (!job.generated).then_some(job.on_duplicate);
        let NewJob { deliver, due, expires_after, max_waiting, .. } = job;
        let unique_for = job.unique_for.filter(|_| !job.generated);
        let options = Options { on_duplicate, deliver, due, expires_after, max_waiting, unique_for };
        match self.groups.last_mut() {
            Some((last, count)) if *last == options => *count += 1,
            _ => self.groups.push((options, 1)),
        }
        self.jobs.push((job.id, record));
        Ok(())
    }

    fn has(&self, is_one: impl Fn(&Options) -> bool) -> bool {
        self.groups.iter().any(|(options, _)| is_one(options))
    }

    /// Whether the script looks for jobs that are due much later.
    pub(super) fn may_be_later(&self) -> bool {
        self.notes.longest <= LARGEST_LATER && self.has(Options::may_be_later)
    }

    /// The script needs the ids of such a group in order.
    fn sort_later(&mut self) {
        let (mut order, mut from): (Vec<_>, _) = ((0..self.jobs.len()).collect(), 0);
        for (options, count) in &self.groups {
            if options.may_be_later() {
                order[from..from + count].sort_by(|a, b| self.jobs[*a].0.cmp(&self.jobs[*b].0));
            }
            from += count;
        }
        if !order.is_sorted() {
            let mut jobs: Vec<_> = std::mem::take(&mut self.jobs).into_iter().map(Some).collect();
            self.jobs = order.iter().filter_map(|position| jobs[*position].take()).collect();
            self.order = Some(order);
        }
    }

    fn is_special(&self) -> bool {
        self.has(|options| options.deliver != Delivery::Queue || options.expires_after.is_some())
            || self.notes.has_groups
            || self.takes_ids()
            || self.extends()
            || self.has_schedules()
            || self.membership.is_some()
    }

    /// Whether ids stay taken for a time.
    fn takes_ids(&self) -> bool {
        self.has(|options| options.unique_for.is_some())
    }

    fn extends(&self) -> bool {
        self.has(|options| matches!(options.on_duplicate, Some(OnDuplicate::Extend { .. })))
    }

    /// Whether a job is a schedule, which enters their index.
    fn has_schedules(&self) -> bool {
        self.has_chosen_ids() && self.jobs.iter().any(|(id, _)| id.schedule_name().is_some())
    }

    /// Whether its caller says how many jobs may wait.
    fn is_bounded(&self) -> bool {
        self.has(|options| options.max_waiting.is_some())
    }

    /// Whether a plain batch needs the keys of a topic with groups, histories and limits: because its caller bounds it, or because it is an entry of
    /// an outbox. If the script asked for these keys, the entries that were sent behind this one would be refused.
    pub(super) fn is_wide(&self) -> bool {
        self.is_bounded() || self.relayed.is_some()
    }

    fn has_chosen_ids(&self) -> bool {
        self.has(|options| options.on_duplicate.is_some())
    }

    /// Whether the jobs concern only the queue, their ids are new for certain, no rate is too low for them, and their records small.
    pub(super) fn is_plain(&self) -> bool {
        let is_special = self.is_special() || self.has_chosen_ids() || self.notes.has_weights;
        !self.jobs.is_empty() && self.notes.longest <= SMALL && !is_special
    }

    /// Adds the arguments to a call that has its keys, among them the rows of `nodes`. `renews`: the store keeps the answer for
    /// an hour from now.
    pub(super) fn write(&self, call: &mut ScriptCall, nodes: &BTreeSet<NodeId>, renews: bool) {
        let flags = [
            (self.is_special(), 's'),
            (self.has_chosen_ids(), 'c'),
            (self.extends(), 'e'),
            (self.takes_ids(), 'u'),
            (renews, 'x'),
            (self.may_be_later(), 'f'),
            (self.has_schedules(), 'h'),
            (self.membership.is_some(), 'm'),
            (self.is_bounded(), 'w'),
        ];
        let of_jobs = self.jobs.iter().flat_map(|(id, record)| [id.as_str().len(), record.as_bytes().len()]);
        let others = repeat_n(32, 5 + 2 * self.groups.len() + nodes.len());
        call.cmd.reserve_space_for_args(of_jobs.chain(others));
        match &self.relayed {
            None => call.cmd.arg(self.number),
            Some(number) => call.cmd.arg(number),
        };
        let flags = letters(self.notes.letters().into_iter().chain(flags));
        call.push((flags, self.notes.longest, self.groups.len(), nodes.len()));
        self.groups.iter().for_each(|(options, count)| call.push((options.text(), *count)));
        nodes.iter().for_each(|node| call.push(node.as_str()));
        self.jobs.iter().for_each(|(id, record)| call.push((id.as_str(), record.as_bytes().as_ref())));
        if let Some(membership) = &self.membership {
            call.cmd.arg(self.left.iter().map(JobId::as_str).collect::<Vec<_>>()).arg(membership);
        }
    }

    /// The outcomes of all jobs, in order, from the codes of those that were sent; `None` if their number is another one.
    pub(super) fn outcomes(
        self,
        codes: &str,
        outcome: impl Fn(&mut Told<'_>, &Record) -> Option<AddOutcome>,
    ) -> Option<Vec<AddOutcome>> {
        let mut records = self.jobs.iter().map(|(_, record)| record);
        let mut outcomes = match codes {
            "*" => vec![AddOutcome::Added; self.jobs.len()],
            _ => Told::new(codes).all(|told| outcome(told, records.next()?))?,
        };
        let is_whole = outcomes.len() == self.jobs.len();
        if let Some(order) = self.order.filter(|_| is_whole) {
            let mut sent: Vec<_> = order.into_iter().zip(outcomes).collect();
            sent.sort_by_key(|(position, _)| *position);
            outcomes = sent.into_iter().map(|(_, outcome)| outcome).collect();
        }
        for (position, decided) in self.decided {
            if position <= outcomes.len() {
                outcomes.insert(position, decided);
            }
        }
        is_whole.then_some(outcomes)
    }
}

/// The positions of the jobs whose id an earlier one has. A generated id is no other's.
fn repeated(items: &[NewJob]) -> HashSet<usize, FixedState> {
    let mut repeated = HashSet::default();
    let chosen = items.iter().enumerate().filter(|(_, job)| !job.generated);
    if items.len() > 1 {
        let mut named = HashSet::with_hasher(FixedState::default());
        repeated.extend(chosen.filter(|(_, job)| !named.insert(&job.id)).map(|(position, _)| position));
    }
    repeated
}

/// The record without what only a store writes. The script writes no expiry into one that does not decode.
fn as_new(record: &Record) -> Result<Record, String> {
    let mut metadata = record.metadata().map_err(|bad| bad.to_string())?;
    (metadata.parked_by, metadata.version, metadata.first_added) = (None, 0, None);
    Ok(record.with_metadata(&metadata))
}

impl Options {
    /// The text that the header of `add.lua` describes.
    fn text(self) -> String {
        let duplicate = match self.on_duplicate {
            None => 'g',
            Some(OnDuplicate::Reject) => 'r',
            Some(OnDuplicate::Keep) => 'k',
            Some(OnDuplicate::Replace) => 'p',
            Some(OnDuplicate::Extend { .. }) => 'e',
        };
        let (deliver, due) = (self.deliver.letter(), due_text(self.due));
        let expiry = self.expires_after.map(|after| format!(",{}", millis(after))).unwrap_or_default();
        let most = match self.on_duplicate {
            Some(OnDuplicate::Extend { at_most: Some(most) }) => format!(";{}", millis(most)),
            _ => String::new(),
        };
        let number = |most: Option<usize>| most.map(|most| most.to_string()).unwrap_or_default();
        let waiting = self.max_waiting.map(|most| format!("<{}/{}", number(most.topic), number(most.group)));
        let waiting = waiting.unwrap_or_default();
        let unique = self.unique_for.map(|time| format!("!{}", millis(time))).unwrap_or_default();
        format!("{duplicate}{deliver}{due}{expiry}{most}{unique}{waiting}")
    }
}
