//! `dq export`: writes everything that a store keeps of an app's topics as JSON lines.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use dq::job::{AppName, Fence, State, TopicKey, TopicName};
use dq::store::file::{Parts, check};
use dq::store::step::DEFAULT_BYTES;
use dq::store::{Cursor, Exported, JobCopy, PageRequest, SetState, SetsRequest, Store, TopicCounts};

use crate::ask::Repeating;
use crate::batch::AT_ONCE;
use crate::failure::Failure;
use crate::follow_ups::Outboxes;
use crate::job_line::JobLine;
use crate::line::{End, FORMAT, Line, MAX_LINE, Start, TopicLine};
use crate::progress::Progress;
use crate::screen::many;
use crate::words::{Word, one_of, word_of};

/// The most topics that a store lists.
const MAX_TOPICS: usize = 10_000;

/// The arguments of `dq export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The store, instead of `--store`
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// Which jobs.
    #[command(flatten)]
    pub choice: Choice,
}

/// What `--state` chooses: jobs in a state, or behind `true` the broadcasts.
const PARTS: &[Word<(bool, State)>] = &[
    ((false, State::Delayed), "delayed", "Jobs that wait until they are due"),
    ((false, State::Unacked), "unacked", "Parked jobs"),
    ((false, State::Dead), "dead", "Jobs that were given up"),
    ((false, State::Done), "done", "Jobs that are kept after their ack"),
    ((true, State::Delayed), "broadcast", "Broadcasts that wait"),
];

/// Which jobs to export.
#[derive(Debug, Clone, Args)]
pub struct Choice {
    /// Only this topic; may be given several times [default: all topics of the app]
    #[arg(long = "topic", value_name = "TOPIC")]
    pub topics: Vec<TopicName>,
    /// Only jobs in this state; may be given several times [default: all states but RUNNING]
    #[arg(long = "state", value_name = "STATE", value_parser = one_of(PARTS))]
    pub states: Vec<(bool, State)>,
    /// Export RUNNING jobs too: as DELAYED at the time at which they were due, or as UNACKED if they were parked. Such a job may
    /// run in both stores. Topics may change while they are read, and moving jobs may be missing
    #[arg(long)]
    pub running: bool,
}

impl Choice {
    /// The parts of an export of this choice, as [`JobCopy::parts`] has them.
    pub fn parts(&self) -> Vec<(bool, State)> {
        let is_chosen = |part: &(bool, State)| match part {
            (_, State::Running) => self.running,
            _ => self.states.is_empty() || self.states.contains(part),
        };
        JobCopy::parts().filter(is_chosen).collect()
    }

    /// Whether RUNNING jobs would be missed.
    pub const fn misses_running(&self) -> bool {
        !self.running && self.states.is_empty()
    }
}

/// What was exported.
#[derive(Debug, Default)]
pub struct Report {
    /// How many topics.
    pub topics: usize,
    /// Those of them of which the store has nothing.
    pub unknown: Vec<TopicName>,
    /// How many jobs in each state, and under `true` how many broadcasts.
    pub jobs: BTreeMap<(bool, State), u64>,
    /// How many lines of follow-ups.
    pub follow_ups: u64,
    /// What changed while it was read.
    pub changed: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for what in &self.changed {
            writeln!(f, "warning: {what}, so jobs may be missing")?;
        }
        let jobs = self.jobs.values().sum::<u64>();
        write!(f, "exported {} of {}", many(jobs as usize, "job"), many(self.topics, "topic"))?;
        let counts = self.jobs.iter().map(|(part, jobs)| format!("{jobs} {}", word_of(PARTS, part)));
        if jobs > 0 {
            write!(f, ": {}", counts.collect::<Vec<_>>().join(", "))?;
        }
        match self.follow_ups {
            0 => Ok(()),
            outcomes => write!(f, "; and the follow-ups of {}", many(outcomes as usize, "outcome")),
        }
    }
}

/// Writes the export.
///
/// # Errors
/// [`Failure`]; the last line is then missing, so that an import recognises what was written as cut off.
pub async fn export(
    store: &dyn Store,
    app: &AppName,
    choice: &Choice,
    repeating: Repeating,
    out: &mut dyn Write,
    progress: &Progress,
) -> Result<Report, Failure> {
    let mut writer = Writer::new(app, choice, out, progress);
    let mut outboxes = writer.store(store, repeating).await?;
    outboxes.compare(store, app, repeating).await?;
    writer.follow_ups(store, &outboxes, repeating).await?;
    writer.end()
}

/// Writes the export of a directory, which is read part by part: it needs little memory, and a program may use the directory.
///
/// # Errors
/// As [`export`].
pub async fn export_directory(
    path: &Path,
    app: &AppName,
    choice: &Choice,
    out: &mut dyn Write,
    progress: &Progress,
) -> Result<Report, Failure> {
    let parts = Parts::of(path)?;
    if parts.count() > 1 && choice.misses_running() {
        refuse_running(path, app, choice)?;
    }
    let mut writer = Writer::new(app, choice, out, progress);
    let at_once = Repeating(Duration::ZERO);
    let mut of_parts = Vec::new();
    for part in parts.read() {
        of_parts.push(writer.store(&part?, at_once).await?);
    }
    if of_parts.iter().any(|outboxes| !outboxes.is_empty()) {
        // A target may be in another part than the outbox.
        for part in parts.read() {
            let part = part?;
            for outboxes in &mut of_parts {
                outboxes.compare(&part, app, at_once).await?;
            }
        }
        for (part, outboxes) in parts.read().zip(&of_parts) {
            writer.follow_ups(&part?, outboxes, at_once).await?;
        }
    }
    writer.end()
}

/// Refuses a directory of several parts with RUNNING jobs before anything is written.
fn refuse_running(path: &Path, app: &AppName, choice: &Choice) -> Result<(), Failure> {
    let is_chosen =
        |key: &TopicKey| key.app == *app && (choice.topics.is_empty() || choice.topics.contains(&key.topic));
    match check(path)?.topics.into_iter().find(|topic| topic.counts.running > 0 && is_chosen(&topic.topic)) {
        Some(topic) => Err(running(&topic.topic.topic, topic.counts.running)),
        None => Ok(()),
    }
}

/// There are RUNNING jobs.
fn running(topic: &TopicName, running: usize) -> Failure {
    Failure::Refused(format!(
        "topic `{topic}` has {running} RUNNING jobs, and nothing was exported: stop its nodes, which gives the jobs back, or \
         export them with `--running`, as jobs that may run in both stores"
    ))
}

/// The topics to export, in order.
async fn topics_of(
    store: &dyn Store,
    app: &AppName,
    choice: &Choice,
    repeating: Repeating,
) -> Result<Vec<TopicKey>, Failure> {
    let mut topics = match choice.topics.as_slice() {
        [] => repeating.ask("cannot list the topics", |_| store.topics(app)).await?,
        named => named.to_vec(),
    };
    if choice.topics.is_empty() && topics.len() >= MAX_TOPICS {
        return Err(Failure::Refused(format!(
            "app `{app}` has {MAX_TOPICS} topics or more, and not all can be listed: name them, each with `--topic`"
        )));
    }
    topics.sort();
    topics.dedup();
    let keys: Vec<_> = topics.into_iter().map(|topic| TopicKey { app: app.clone(), topic }).collect();
    for key in &keys {
        repeating.ask(&format!("cannot open topic `{}`", key.topic), |_| store.open(key)).await?;
    }
    Ok(keys)
}

async fn counts_of(store: &dyn Store, key: &TopicKey, repeating: Repeating) -> Result<TopicCounts, Failure> {
    repeating.ask(&format!("cannot count the jobs of topic `{}`", key.topic), |_| store.counts(key)).await
}

/// Writes lines and counts them.
struct Writer<'a> {
    app: &'a AppName,
    choice: &'a Choice,
    out: &'a mut dyn Write,
    progress: &'a Progress,
    /// The first line is written.
    is_started: bool,
    expected: u64,
    /// Each topic, and whether the store has anything of it.
    topics: BTreeMap<TopicName, bool>,
    report: Report,
}

impl<'a> Writer<'a> {
    fn new(app: &'a AppName, choice: &'a Choice, out: &'a mut dyn Write, progress: &'a Progress) -> Self {
        let (topics, report) = (BTreeMap::new(), Report::default());
        Self { app, choice, out, progress, is_started: false, expected: 0, topics, report }
    }

    /// Writes what a store has of the app, but the follow-ups. Returns where some wait.
    async fn store(&mut self, store: &dyn Store, repeating: Repeating) -> Result<Outboxes, Failure> {
        let mut outboxes = Outboxes::default();
        let topics = topics_of(store, self.app, self.choice, repeating).await?;
        let mut counts = Vec::with_capacity(topics.len());
        for key in topics {
            let before = counts_of(store, &key, repeating).await?;
            if self.choice.misses_running() && before.running > 0 {
                return Err(running(&key.topic, before.running));
            }
            if self.choice.states.is_empty() {
                outboxes.look(store, &key, repeating).await?;
            }
            let sets = format!("cannot read the job sets of topic `{}`", key.topic);
            let first = SetsRequest::Page { from: 0, limit: 1 };
            if let Some(seen) = repeating.ask(&sets, |_| store.job_sets(&key, &first)).await?.pop()
                && seen.state != SetState::Ended
            {
                return Err(Failure::JobSet { topic: key.topic, set: seen.set });
            }
            counts.push((key, before));
        }
        let parts = self.choice.parts();
        let of_topic = |before: &TopicCounts| parts.iter().map(|part| count(before, *part) as u64).sum::<u64>();
        self.expected += counts.iter().map(|(_, before)| of_topic(before)).sum::<u64>();
        self.progress.expect_jobs(self.expected);
        self.start()?;
        for (key, before) in counts {
            let read = self.topic(store, &key, &parts, repeating).await?;
            let after = counts_of(store, &key, repeating).await?;
            self.unchanged(changed(&key.topic, &before, &read, &after))?;
        }
        Ok(outboxes)
    }

    /// Fails if something has changed while it was read, unless jobs may move.
    fn unchanged(&mut self, changed: Option<String>) -> Result<(), Failure> {
        match changed {
            Some(what) if self.choice.running => self.report.changed.push(what),
            Some(what) => return Err(Failure::Changed(what)),
            None => {}
        }
        Ok(())
    }

    /// Writes the follow-ups in the outboxes of a store.
    async fn follow_ups(
        &mut self,
        store: &dyn Store,
        outboxes: &Outboxes,
        repeating: Repeating,
    ) -> Result<(), Failure> {
        let app = self.app;
        let read = outboxes.read(store, app, repeating, |line| {
            self.report.follow_ups += 1;
            self.line(&Line::FollowUps(line))
        });
        let changed = read.await?;
        self.unchanged(changed)
    }

    fn start(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.is_started, true) {
            return Ok(());
        }
        self.line(&Line::Export(Start { format: FORMAT, app: self.app.clone() }))
    }

    fn end(mut self) -> Result<Report, Failure> {
        let end = End { jobs: self.report.jobs.values().sum(), follow_ups: self.report.follow_ups };
        self.line(&Line::End(end))?;
        let topics = self.topics.len();
        let unknown = self.topics.into_iter().filter(|(_, is_known)| !is_known).map(|(topic, _)| topic).collect();
        Ok(Report { topics, unknown, ..self.report })
    }

    fn line(&mut self, line: &Line) -> Result<(), Failure> {
        let mut text = serde_json::to_vec(line).map_err(|error| Failure::Write(error.into()))?;
        text.push(b'\n');
        if let (Line::Job(job), true) = (line, text.len() > MAX_LINE) {
            let (id, topic, size) = (&job.id, &job.topic, text.len());
            return Err(Failure::Refused(format!(
                "job `{id}` of topic `{topic}` has {size} bytes, and a line has {MAX_LINE} at most: delete it or export other states"
            )));
        }
        self.out.write_all(&text).map_err(Failure::Write)
    }

    /// Writes a topic. Returns how many jobs were read of each part.
    async fn topic(
        &mut self,
        store: &dyn Store,
        key: &TopicKey,
        parts: &[(bool, State)],
        repeating: Repeating,
    ) -> Result<BTreeMap<(bool, State), usize>, Failure> {
        self.topics.entry(key.topic.clone()).or_default();
        let mut read = BTreeMap::new();
        let mut is_named = false;
        for part in parts {
            let mut after = None;
            loop {
                let page = page(store, key, *part, after, repeating).await?;
                if !is_named {
                    self.name(&key.topic, page.fence)?;
                    is_named = true;
                }
                *read.entry(*part).or_default() += page.jobs;
                *self.topics.entry(key.topic.clone()).or_default() |= page.jobs > 0 || page.fence > Fence(0);
                self.progress.jobs(page.jobs as u64);
                for copy in &page.copies {
                    self.line(&Line::Job(Box::new(JobLine::of(&key.topic, copy))))?;
                    *self.report.jobs.entry((copy.is_broadcast, copy.state)).or_default() += 1;
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(read)
    }

    fn name(&mut self, topic: &TopicName, Fence(fence): Fence) -> Result<(), Failure> {
        self.line(&Line::Topic(TopicLine { topic: topic.clone(), fence }))
    }
}

/// A page. It is smaller after each time without an answer, which may be too large for the connection.
async fn page(
    store: &dyn Store,
    key: &TopicKey,
    (broadcasts, state): (bool, State),
    after: Option<Cursor>,
    repeating: Repeating,
) -> Result<Exported, Failure> {
    let what = format!("cannot read topic `{}`", key.topic);
    let ask = |tries: u32| {
        let halved = |most: usize| most.checked_shr(tries).unwrap_or_default().max(1);
        let (limit, bytes) = (halved(AT_ONCE), halved(DEFAULT_BYTES));
        store.export(key, PageRequest { state, after: after.clone(), limit, bytes }, broadcasts)
    };
    repeating.ask(&what, ask).await
}

/// How many jobs or broadcasts a part has, by these counts.
const fn count(counts: &TopicCounts, part: (bool, State)) -> usize {
    match part {
        (false, State::Delayed) => counts.delayed,
        (false, State::Running) => counts.running,
        (false, State::Unacked) => counts.unacked,
        (false, State::Dead) => counts.dead,
        (false, State::Done) => counts.done,
        (true, _) => counts.broadcasts,
    }
}

/// The first part whose counts before and after differ from what was read, in words.
fn changed(
    topic: &TopicName,
    before: &TopicCounts,
    read: &BTreeMap<(bool, State), usize>,
    after: &TopicCounts,
) -> Option<String> {
    let differs = |(part, read): (&(bool, State), &usize)| {
        let (before, after) = (count(before, *part), count(after, *part));
        let what = match part {
            (false, state) => format!("{state} jobs"),
            (true, _) => "broadcasts".into(),
        };
        ((before, after) != (*read, *read)).then(|| {
            format!("topic `{topic}` changed while it was read ({before} {what} before, {read} read, {after} after)")
        })
    };
    read.iter().find_map(differs)
}
