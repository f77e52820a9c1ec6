//! `dq import`: puts the lines of an export into a store.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::io::BufRead;
use std::path::PathBuf;

use clap::Args;
use dq::job::{AppName, JobId, ProducerId, State, TopicKey, TopicName};
use dq::store::{BatchAnswer, Import, ImportOutcome, JobCopy, OnDuplicate, OutboxEntry, Producer, Store};

use crate::ahead::{Ahead, Cut};
use crate::ask::Repeating;
use crate::batch::Batch;
use crate::failure::{Failure, so_far};
use crate::follow_ups::{Late, bring};
use crate::line::{Line, TopicLine};
use crate::progress::Progress;
use crate::reader::{BadInput, Reader};
use crate::screen::many;
use crate::words::{Word, one_of};

/// How many RUNNING jobs a report names.
const MAX_NAMED: usize = 10;

/// The arguments of `dq import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// The store, instead of `--store`, and the file with the lines of the export [default: stdin]; a word without `:` is the file.
    /// `--app` gives the jobs to another app than the exported one
    #[arg(value_name = "URL] [FILE", num_args = 0..=2)]
    pub places: Vec<String>,
    /// What to do with a job whose id the topic already has
    #[arg(long, value_name = "WHAT", value_parser = one_of(DUPLICATES), default_value = "keep")]
    pub on_duplicate: OnDuplicate,
    /// Accept an export without its last line: one that was cut off, or that you filtered
    #[arg(long)]
    pub partial: bool,
    /// Cut back fences, positions of follow-ups and orders in groups that are more than a day ahead of the store's clock, because
    /// the clock of the exported store was ahead, and reports it
    #[arg(long)]
    pub cut_ahead: bool,
}

impl ImportArguments {
    /// The store and the file, where the words name them.
    pub fn store_and_file(&self) -> (Option<&str>, Option<PathBuf>) {
        match self.places.as_slice() {
            [] => (None, None),
            [stdin] if stdin == "-" => (None, None),
            [url, stdin] if stdin == "-" => (Some(url), None),
            [file] if !file.contains(':') => (None, Some(file.into())),
            [url] => (Some(url), None),
            [url, file, ..] => (Some(url), Some(file.into())),
        }
    }
}

/// What to do with a job whose id the topic already has.
const DUPLICATES: &[Word<OnDuplicate>] = &[
    (OnDuplicate::Reject, "reject", "Stop, and do nothing of the batch with this job"),
    (OnDuplicate::Keep, "keep", "Leave the existing job"),
    (OnDuplicate::Replace, "replace", "Replace the existing job, unless it is RUNNING"),
];

/// What an import should do.
#[derive(Debug)]
pub struct Options {
    /// The app that gets the jobs; `None`: the exported app.
    pub app: Option<AppName>,
    /// What to do with an id that is known.
    pub on_duplicate: OnDuplicate,
    /// The last line may be missing.
    pub partial: bool,
    /// Numbers that are ahead of the store's clock are cut back.
    pub cut_ahead: bool,
    /// For how long requests are repeated.
    pub repeating: Repeating,
    /// Who imports: a new identity.
    pub producer: ProducerId,
}

/// What was imported.
#[derive(Debug, Default)]
pub struct Report {
    /// Jobs that are there now and were not before.
    pub added: u64,
    /// Jobs that took the place of others.
    pub replaced: u64,
    /// Jobs whose id was there already, in these states.
    pub kept: BTreeMap<State, u64>,
    /// How many lines of follow-ups were brought to their topics.
    pub follow_ups: u64,
    /// Follow-ups that their topics refuse for good, with the cause.
    pub refused: Vec<String>,
    /// Follow-ups that did nothing, because their topics have had later ones from the same topic that are not of this import.
    pub late: Vec<String>,
    /// Numbers that were cut back.
    pub cut: Cut,
    /// RUNNING jobs that were to be replaced and were not; at most ten.
    pub running: Vec<(TopicName, JobId)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.kept.values().sum::<u64>();
        write!(f, "imported {}", many((self.added + self.replaced) as usize, "job"))?;
        if self.replaced > 0 {
            write!(f, ", {} of them in place of others", self.replaced)?;
        }
        if kept > 0 {
            let states = self.kept.iter().map(|(state, jobs)| format!("{jobs} {state}"));
            write!(f, "; {kept} were there already ({})", states.collect::<Vec<_>>().join(", "))?;
        }
        if self.follow_ups > 0 {
            write!(f, "; and the follow-ups of {}", many(self.follow_ups as usize, "outcome"))?;
        }
        if self.cut.numbers > 0 {
            write!(f, "\nwarning: {}", self.cut)?;
        }
        for refused in &self.refused {
            write!(f, "\nwarning: a follow-up was passed over: {refused}")?;
        }
        for late in &self.late {
            write!(f, "\nwarning: {late}")?;
        }
        Ok(())
    }
}

/// Puts the lines into the store.
///
/// # Errors
/// [`Failure`]. What the batches before it did stays, and the failure says up to which line that is.
pub async fn import(
    store: &dyn Store,
    options: &Options,
    input: impl BufRead,
    progress: &Progress,
) -> Result<Report, Failure> {
    let mut reader = Reader::new(input);
    let mut importer = Importer::new(store, options, progress);
    let outcome = |importer: &Importer<'_>, line, bad| match bad {
        BadInput::Io(source) => {
            Failure::Refused(format!("cannot read the export: {source}; {}", so_far(importer.imported)))
        }
        BadInput::Line(why) => Failure::Line { line, why, imported: importer.imported },
    };
    let start = reader.start().map_err(|bad| outcome(&importer, reader.number, bad))?;
    let app = options.app.clone().unwrap_or(start.app);
    let mut batch: Option<Batch> = None;
    while let Some(line) = reader.next().map_err(|bad| outcome(&importer, reader.number, bad))? {
        let wrong = |importer: &Importer<'_>, why| outcome(importer, reader.number, BadInput::Line(why));
        progress.bytes(reader.size);
        match line {
            Line::Topic(TopicLine { topic, fence }) => {
                let fence = importer.ahead().await?.fence(fence).map_err(|why| wrong(&importer, why))?;
                importer.send(&app, batch.replace(Batch::new(topic, fence))).await?;
            }
            Line::Job(mut job) => {
                let topic = job.topic.clone();
                let checked = importer.ahead().await?.metadata(&mut job.metadata);
                let copy = checked.and_then(|()| job.into_copy()).map_err(|why| wrong(&importer, why))?;
                let Some(open) = batch.take().filter(|batch| batch.topic == topic) else {
                    let why =
                        format!("no line for topic `{topic}` comes before this job, or another topic began in between");
                    return Err(wrong(&importer, why));
                };
                batch = Some(importer.push(&app, open, reader.number, copy).await?);
            }
            Line::FollowUps(line) => {
                let ahead = importer.ahead().await?;
                let (source, entry) = line.into_entry(ahead).map_err(|why| wrong(&importer, why))?;
                importer.send(&app, batch.take()).await?;
                importer.bring(&app, reader.number, &source, &entry).await?;
            }
            Line::Export(_) | Line::End(_) => {}
        }
    }
    importer.send(&app, batch).await?;
    importer.tell_late();
    importer.report.cut = importer.ahead.as_ref().map(Ahead::cut).unwrap_or_default();
    match reader.is_over || options.partial {
        true => Ok(importer.report),
        false => Err(Failure::CutOff { report: importer.report.to_string() }),
    }
}

/// Sends batches.
struct Importer<'a> {
    store: &'a dyn Store,
    options: &'a Options,
    progress: &'a Progress,
    /// The number of the last batch of each topic: each topic has a producer.
    numbers: BTreeMap<TopicName, u64>,
    /// What checks numbers by the store's clock.
    ahead: Option<Ahead>,
    /// Follow-ups that were late, by source and target.
    late: BTreeMap<(TopicName, TopicName), Late>,
    /// The last line that is imported.
    imported: u64,
    report: Report,
}

impl<'a> Importer<'a> {
    fn new(store: &'a dyn Store, options: &'a Options, progress: &'a Progress) -> Self {
        let (numbers, late) = (BTreeMap::new(), BTreeMap::new());
        Self { store, options, progress, numbers, ahead: None, late, imported: 0, report: Report::default() }
    }

    /// What checks numbers by the store's clock, which is asked for once.
    async fn ahead(&mut self) -> Result<&mut Ahead, Failure> {
        let known = self.ahead.take();
        let ahead = match known {
            Some(ahead) => ahead,
            None => {
                let clock =
                    self.options.repeating.ask("cannot read the store's clock", |_| self.store.contact()).await?;
                Ahead::new(clock.as_millis().saturating_mul(1_000), self.options.cut_ahead)
            }
        };
        Ok(self.ahead.insert(ahead))
    }

    /// Puts a copy into a batch, which is sent first if the copy does not fit.
    async fn push(&mut self, app: &AppName, mut batch: Batch, line: u64, copy: JobCopy) -> Result<Batch, Failure> {
        if !batch.takes(&copy) {
            let next = Batch::new(batch.topic.clone(), batch.fence);
            self.send(app, Some(batch)).await?;
            batch = next;
        }
        batch.push(line, copy);
        Ok(batch)
    }

    async fn send(&mut self, app: &AppName, batch: Option<Batch>) -> Result<(), Failure> {
        let Some(Batch { topic, fence, copies, lines, .. }) = batch else { return Ok(()) };
        let key = TopicKey { app: app.clone(), topic };
        let names: Vec<_> = copies.iter().map(|copy| copy.id.clone()).collect();
        let import = Import { copies, on_duplicate: self.options.on_duplicate, fence };
        let outcomes = self.ask(&key, import).await.map_err(|source| self.failed(&source))?;
        for ((id, line), outcome) in names.into_iter().zip(&lines).zip(outcomes) {
            self.note(&key.topic, id, *line, outcome)?;
        }
        self.progress.jobs(lines.len() as u64);
        self.imported = lines.last().copied().unwrap_or(self.imported);
        Ok(())
    }

    /// Brings follow-ups to their topic.
    async fn bring(
        &mut self,
        app: &AppName,
        line: u64,
        source: &TopicName,
        entry: &OutboxEntry,
    ) -> Result<(), Failure> {
        let repeating = self.options.repeating;
        let brought = bring(self.store, app, source, entry, repeating).await.map_err(|source| self.failed(&source))?;
        match brought {
            Some(refused) => self.report.refused.extend(refused),
            None => {
                let late = self.late.entry((source.clone(), entry.target.clone()));
                let late = match late {
                    Entry::Occupied(late) => late.into_mut(),
                    Entry::Vacant(place) => {
                        let key = TopicKey { app: app.clone(), topic: entry.target.clone() };
                        let what = format!("cannot read what has arrived in topic `{}`", entry.target);
                        let position = repeating.ask(&what, |_| self.store.arrived(&key, source)).await?;
                        place.insert(Late { lines: 0, position, is_of_import: false })
                    }
                };
                late.lines += 1;
                late.is_of_import |= late.position == entry.position;
            }
        }
        self.report.follow_ups += 1;
        self.imported = line;
        Ok(())
    }

    /// Reports the follow-ups that were late, and that no earlier try of this import has brought.
    fn tell_late(&mut self) {
        for ((source, target), late) in self.late.iter().filter(|(_, late)| !late.is_of_import) {
            self.report.follow_ups = self.report.follow_ups.saturating_sub(late.lines);
            self.report.late.push(late.text(source, target));
        }
    }

    /// A batch failed.
    fn failed(&self, source: &Failure) -> Failure {
        let so_far = so_far(self.imported);
        Failure::Refused(format!("{source}; {so_far}. Run the same command again: jobs that are there already stay"))
    }

    fn note(&mut self, topic: &TopicName, id: JobId, line: u64, outcome: ImportOutcome) -> Result<(), Failure> {
        match outcome {
            ImportOutcome::Added => self.report.added += 1,
            ImportOutcome::Replaced(_) => self.report.replaced += 1,
            ImportOutcome::Exists(state) if self.options.on_duplicate == OnDuplicate::Reject => {
                return Err(Failure::Refused(format!(
                    "line {line}: topic `{topic}` already has job `{id}`, which is {state}; {}. Leave such jobs with \
                     `--on-duplicate keep`, or take their place with `--on-duplicate replace`",
                    so_far(self.imported)
                )));
            }
            ImportOutcome::Exists(state) => {
                *self.report.kept.entry(state).or_default() += 1;
                let is_left = self.options.on_duplicate == OnDuplicate::Replace;
                if is_left && self.report.running.len() < MAX_NAMED {
                    self.report.running.push((topic.clone(), id));
                }
            }
            // The failure names the copy of the batch that exists; no batch of this program has an id twice.
            ImportOutcome::NotDone | ImportOutcome::Repeated => {}
        }
        Ok(())
    }

    /// Sends a batch until it is answered, under one number. Only a late batch gets another one.
    async fn ask(&mut self, key: &TopicKey, import: Import) -> Result<Vec<ImportOutcome>, Failure> {
        let is_new = !self.numbers.contains_key(&key.topic);
        if is_new {
            let what = format!("cannot open topic `{}`", key.topic);
            self.options.repeating.ask(&what, |_| self.store.open(key)).await?;
        }
        let what = format!("cannot import into topic `{}`", key.topic);
        loop {
            let number = self.numbers.entry(key.topic.clone()).or_default();
            *number += 1;
            let Options { repeating, producer, .. } = self.options;
            let import = |to: &dyn Producer| to.import(*number, import.clone());
            if let BatchAnswer::Done(outcomes) = repeating.send(&what, self.store, key, producer, import).await? {
                return Ok(outcomes);
            }
        }
    }
}
