//! The doctor: finds what is wrong with topics and their store, and repairs what can be repaired.
//!
//! It examines in bounded steps and changes nothing until you call [`Doctor::repair`]. What moves while it looks may be
//! missed, and every repair looks again in the step that changes something. No repair loses a job.

mod finding;
mod listeners;
mod records;
mod rounds;
mod sets;

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

pub use crate::store::{FindingCode, Severity};
pub use finding::Finding;
use finding::Remedy;

use super::inspector::Inspector;
use crate::job::{JobId, NodeId, State, TopicName};
use crate::provider::{CallError, Provider, TopicProvider};
use crate::store::{Cursor, GiveUp, Mismatch, OutboxSeen, Repair};
use records::Undecoded;

/// How many findings a doctor keeps at most. Repair these, and examine again.
pub const MAX_FINDINGS: usize = 1_000;

/// How many reads one step makes at most; each takes three commands of the store at most.
const MAX_READS: usize = 9;

/// How far a doctor has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct DoctorProgress {
    /// Topics that were examined to their end.
    pub topics: usize,
    /// Entries of keys, and records, that were looked at; each job is looked at several times.
    pub looked_at: usize,
    /// What was found.
    pub findings: usize,
    /// What was found beyond the first [`MAX_FINDINGS`], and not kept.
    pub left_out: usize,
}

/// Examines topics and their store, in steps. Made by [`Inspector::doctor`].
#[derive(Debug, Clone)]
pub struct Doctor {
    provider: Provider,
    /// The one topic, if it is not all of them.
    only: Option<TopicName>,
    stage: Stage,
    /// Topics to examine; they have names that were read from the directory, or that the names of keys showed.
    waiting: VecDeque<TopicName>,
    /// Where the next page of the directory begins; `None` at its end.
    names: Option<Option<String>>,
    has_compared_clocks: bool,
    /// How many producers the topics remember answers for.
    producers: BTreeMap<TopicName, usize>,
    /// The DEAD jobs of the present topic whose payloads their nodes could not decode.
    undecoded: Undecoded,
    findings: Vec<Finding>,
    progress: DoctorProgress,
    /// How many findings were repaired, or could not be.
    repaired: usize,
}

/// What is examined next.
#[derive(Debug, Clone)]
enum Stage {
    /// The store as a whole.
    Store,
    /// The names of all keys.
    Keys { after: Option<String> },
    /// The next topic.
    Names,
    /// One topic.
    Topic { topic: TopicProvider, part: TopicPart },
    /// Nothing.
    Over,
}

/// What is examined next of a topic.
#[derive(Debug, Clone)]
enum TopicPart {
    Whole,
    /// The schedules after this one.
    Schedules {
        after: Option<JobId>,
    },
    Outbox,
    /// The topics for which follow-ups wait.
    Targets(VecDeque<OutboxSeen>),
    /// The job sets that live here and have waited for long, one a step.
    Sets(VecDeque<JobId>),
    Keys {
        after: Option<String>,
    },
    /// The records of jobs in these states: a node decodes what it runs, and what is DONE is never decoded again.
    Records {
        states: &'static [State],
        after: Option<Cursor>,
    },
}

impl TopicPart {
    /// These job sets, or what follows the last of them.
    fn of_sets(sets: VecDeque<JobId>) -> Self {
        if sets.is_empty() { Self::Keys { after: None } } else { Self::Sets(sets) }
    }

    /// What it is, and what follows where it cannot be examined.
    fn and_next(self) -> (&'static str, Option<Self>) {
        match self {
            Self::Whole => ("the topic as a whole", Some(Self::Schedules { after: None })),
            Self::Schedules { .. } => ("a page of the schedules", Some(Self::Outbox)),
            Self::Outbox => ("the outbox", Some(Self::Targets(VecDeque::new()))),
            Self::Targets(mut targets) => match targets.pop_front() {
                Some(_) => ("a topic for which follow-ups wait", Some(Self::Targets(targets))),
                None => ("the job sets", Some(Self::Keys { after: None })),
            },
            Self::Sets(mut sets) => {
                sets.pop_front();
                ("a job set", Some(Self::of_sets(sets)))
            }
            Self::Keys { .. } => ("a part of the keys", Some(Self::Records { states: &GiveUp::FROM, after: None })),
            Self::Records { states, .. } => {
                let others = states.split_first().map(|(_, others)| Self::Records { states: others, after: None });
                ("records of jobs", others)
            }
        }
    }
}

/// What became of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Repaired {
    /// What was found.
    pub finding: Finding,
    /// Whether it was repaired now; otherwise it had gone meanwhile, needs a hand, or was repaired by a try whose answer was lost.
    pub done: bool,
}

impl Inspector {
    /// Makes a doctor for one topic, or for all topics of the app and their store. Nothing is read before its first
    /// [`step`](Doctor::step).
    ///
    /// # Errors
    /// [`CallError::Invalid`] if the name of the topic is not valid.
    pub fn doctor(&self, topic: Option<&str>) -> Result<Doctor, CallError> {
        let only = topic.map(TopicName::new).transpose()?;
        Ok(Doctor {
            provider: self.provider.clone(),
            stage: Stage::Store,
            waiting: only.clone().into_iter().collect(),
            names: only.is_none().then_some(None),
            has_compared_clocks: false,
            producers: BTreeMap::new(),
            undecoded: Undecoded::default(),
            findings: Vec::new(),
            progress: DoctorProgress::default(),
            repaired: 0,
            only,
        })
    }

    /// Examines the store as a whole: its settings, its memory, and its clock. It costs two commands.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn examine_store(&self) -> Result<Vec<Finding>, CallError> {
        let mut doctor = self.doctor(None)?;
        doctor.examine_store().await?;
        doctor.compare_with_store().await?;
        Ok(doctor.findings)
    }
}

impl Doctor {
    /// What was found so far, in the order in which a repair goes.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How far it has come.
    pub const fn progress(&self) -> DoctorProgress {
        self.progress
    }

    /// Examines the next part; `None` once all is examined. A step takes 20 commands of the store at most, and each of them looks at
    /// 1,000 entries or 1 MiB, about.
    ///
    /// Cancel safe: a step that is dropped is made again, and may then find the same once more.
    ///
    /// # Errors
    /// [`CallError`]; call it again to continue with the same part.
    pub async fn step(&mut self) -> Result<Option<DoctorProgress>, CallError> {
        if matches!(self.stage, Stage::Over) {
            return Ok(None);
        }
        for _ in 0..MAX_READS {
            let was_set = self.is_at_sets();
            self.read().await?;
            // A set takes as many commands as all other reads of a step.
            if matches!(self.stage, Stage::Over) || was_set || self.is_at_sets() {
                break;
            }
        }
        Ok(Some(self.progress))
    }

    const fn is_at_sets(&self) -> bool {
        matches!(self.stage, Stage::Topic { part: TopicPart::Sets(_), .. })
    }

    /// The finding that [`repair`](Self::repair) repairs next, to say so before; `None` once there is none.
    pub fn next_repair(&self) -> Option<&Finding> {
        self.next().map(|(_, finding)| finding)
    }

    fn next(&self) -> Option<(usize, &Finding)> {
        self.findings.iter().enumerate().skip(self.repaired).find(|(_, finding)| finding.remedy.is_some())
    }

    /// Repairs the next finding that can be repaired, in one atomic step; `None` once there is none. Findings that a repair reveals
    /// are for another doctor: make one, and see that it finds nothing.
    ///
    /// Cancel safe: a repair that is dropped may have been made, and is made again, which then does nothing.
    ///
    /// # Errors
    /// [`CallError`]; call it again to try the same repair once more.
    pub async fn repair(&mut self) -> Result<Option<Repaired>, CallError> {
        let Some((n, finding)) = self.next() else { return Ok(None) };
        let finding = finding.clone();
        let done = match self.remedied(&finding).await {
            // Another repair, or a person, has to come first.
            Err(error) if error.of_store().is_some_and(crate::StoreError::may_be_of_topic) => false,
            done => done?,
        };
        self.repaired = n + 1;
        Ok(Some(Repaired { finding, done }))
    }

    async fn remedied(&self, finding: &Finding) -> Result<bool, CallError> {
        let (Some(topic), Some(remedy)) = (&finding.topic, finding.remedy.clone()) else { return Ok(false) };
        let provider = self.provider.topic(topic.as_str())?;
        let mut repair = match remedy {
            Remedy::Step(repair) => repair,
            Remedy::Leave(set, members) => return self.leave(&provider, &set, members).await,
            Remedy::Align(id) => return provider.align_schedule(&id).await,
        };
        if let Repair::Mismatch { nodes, .. } = &mut repair {
            *nodes = self.nodes_without_lease(topic);
        }
        provider.repair(repair).await
    }

    fn found(&mut self, finding: Finding) {
        // What is examined again is found again.
        let place = |finding: &Finding| (finding.topic.clone(), finding.id.clone());
        let is_known = |known: &Finding| {
            known.code == finding.code
                && place(known) == place(&finding)
                && (known.topic.is_some() || known.text == finding.text)
        };
        if self.findings.iter().any(is_known) {
            return;
        }
        self.progress.findings += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else {
            self.progress.left_out += 1;
        }
    }

    fn found_mismatch(&mut self, mismatch: Mismatch) {
        // The directory does not lead to it.
        let has_room = self.findings.len() < MAX_FINDINGS && self.only.is_none();
        if has_room && mismatch.code == FindingCode::TopicNotListed && !self.waiting.contains(&mismatch.topic) {
            self.waiting.push_back(mismatch.topic.clone());
        }
        self.found(Finding::of_mismatch(mismatch));
    }

    /// The nodes that hold jobs of a topic and have no lease, as far as they were found.
    fn nodes_without_lease(&self, topic: &TopicName) -> Vec<NodeId> {
        let is_such =
            |found: &&Finding| found.code == FindingCode::RowsWithoutLease && found.topic.as_ref() == Some(topic);
        self.findings.iter().filter(is_such).filter_map(|found| found.id.as_deref().map(NodeId::new)).collect()
    }
}
