//! Callers that add jobs and send commands, and write down what they were told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use dq::Provider;
use dq::provider::{CallError, CommandOutcome};
use fastrand::Rng;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Part;
use super::sets::Sets;
use super::webhook;
use super::work::{CHAIN, GROUPS, Kind, Work};
use crate::ledger::{Answer, Entry, Ledger, Verb, now};

/// How many callers a process has.
const CALLERS: u64 = 8;
/// How many jobs a caller adds at once, now and then.
const BATCH: usize = 20;

/// The callers of a process.
#[derive(Debug)]
pub(super) struct Callers {
    confirmed: Arc<AtomicU64>,
    finish: Arc<watch::Sender<bool>>,
}

/// One of them.
pub(super) struct Caller {
    name: String,
    pub(super) provider: Provider,
    pub(super) ledger: Arc<Ledger>,
    confirmed: Arc<AtomicU64>,
    pub(super) rng: Rng,
    added: u64,
    /// It belongs to the only process of its store.
    is_alone: bool,
    /// It adds nothing but first jobs of chains.
    chains: bool,
    /// It adds nothing but sets.
    sets: Option<Sets>,
}

/// A source of randomness that the seed and a name decide.
pub fn rng(seed: u64, name: &str) -> Rng {
    let mixed = name
        .bytes()
        .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    Rng::with_seed(mixed)
}

impl Callers {
    pub(super) fn start(part: &Part, jobs: u64, provider: Provider, ledger: Arc<Ledger>) -> Self {
        let (confirmed, finish) = (Arc::<AtomicU64>::default(), Arc::new(watch::Sender::new(false)));
        let pause = Duration::from_secs(1) * CALLERS as u32 / part.rate.max(1) as u32;
        for number in 0..CALLERS {
            let name = format!("{}-{number}", part.name);
            let mut caller = Caller {
                rng: rng(part.seed, &name),
                name,
                provider: provider.clone(),
                ledger: Arc::clone(&ledger),
                confirmed: Arc::clone(&confirmed),
                added: 0,
                is_alone: part.is_alone,
                chains: part.chains,
                sets: Sets::of(part, number),
            };
            let mut finished = finish.subscribe();
            tokio::spawn(async move {
                let mut next = Instant::now();
                while !*finished.borrow() && caller.confirmed.load(Relaxed) < jobs {
                    let added = caller.add().await;
                    next = (next + pause * added).max(Instant::now() - Duration::from_secs(1));
                    let _ = tokio::time::timeout_at(next, finished.wait_for(|is| *is)).await;
                }
            });
        }
        let hook = webhook::Webhook {
            provider,
            ledger,
            rng: rng(part.seed, &part.name),
            share: [part.share[0], part.share[1]],
        };
        tokio::spawn(hook.run());
        Self { confirmed, finish }
    }

    /// The adds that were confirmed.
    pub(super) fn confirmed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.confirmed)
    }

    /// Ends the adds.
    pub(super) fn finisher(&self) -> Arc<watch::Sender<bool>> {
        Arc::clone(&self.finish)
    }
}

impl Caller {
    /// Adds one job, or several, and returns how many.
    async fn add(&mut self) -> u32 {
        if let Some(sets) = self.sets.take() {
            let (added, sets) = self.add_set(sets).await;
            self.sets = Some(sets);
            return added;
        }
        let kind = match self.rng.u32(0..100) {
            _ if self.chains => Kind::First,
            0..42 => Kind::Ack,
            42..50 => Kind::First,
            50..60 => Kind::Grouped,
            60..70 => Kind::Retry,
            70..77 => Kind::Rejoin,
            77..84 => Kind::Park,
            84..91 => Kind::Deleted,
            91..97 => Kind::Cut,
            _ => Kind::Dead,
        };
        if kind == Kind::Ack && self.rng.u32(0..BATCH as u32 * 2) == 0 {
            return self.add_many().await;
        }
        let group = (kind == Kind::Grouped).then(|| format!("g{}", self.rng.u64(0..GROUPS)));
        let (id, work) = (self.gated_id(kind, group.as_deref()), self.work(kind));
        let after = match kind {
            Kind::Deleted => self.rng.u64(1_000..3_000),
            Kind::Cut => self.rng.u64(0..300),
            _ => self.rng.u64(0..1_500),
        };
        self.ledger.note(Entry::Adding { id: id.clone(), after });
        let topic = self.provider.topic(kind.topic()).expect("the name is valid");
        let json = serde_json::to_string(&work).expect("it is JSON");
        let mut add = topic.add_json(json).id(&id).after(Duration::from_millis(after));
        if let Some(group) = group {
            add = add.group(group);
        }
        let answer = added(add.await.map(drop));
        self.note_added([(id.clone(), answer)]);
        if answer != Answer::NotDone {
            self.follow(kind, id, after, work.takes);
        }
        1
    }

    async fn add_many(&mut self) -> u32 {
        let ids: Vec<String> = (0..BATCH).map(|_| self.id()).collect();
        let after = self.rng.u64(0..1_500);
        self.ledger.note_all(ids.iter().map(|id| Entry::Adding { id: id.clone(), after }));
        let jobs: Vec<_> = ids.iter().map(|id| Batched { id: id.clone(), work: self.work(Kind::Ack) }).collect();
        let answers = match self.provider.add_many(jobs).after(Duration::from_millis(after)).await {
            Ok(answers) => answers.into_iter().map(|answer| added(answer.map(drop))).collect(),
            Err(error) => vec![added(Err(error)); ids.len()],
        };
        self.note_added(ids.into_iter().zip(answers));
        BATCH as u32
    }

    fn note_added(&self, answers: impl IntoIterator<Item = (String, Answer)>) {
        self.ledger.note_all(answers.into_iter().map(|(id, answer)| {
            self.confirmed.fetch_add(u64::from(matches!(answer, Answer::Done { .. })), Relaxed);
            Entry::Added { id, answer }
        }));
    }

    /// Counts so many adds if they were confirmed. Returns whether they were.
    pub(super) fn count(&self, answer: Answer, adds: u64) -> bool {
        let is_done = matches!(answer, Answer::Done { .. });
        self.confirmed.fetch_add(if is_done { adds } else { 0 }, Relaxed);
        is_done
    }

    fn id(&mut self) -> String {
        self.added += 1;
        format!("{}-{}", self.name, self.added)
    }

    /// An id that tells `gate_of` what limits the runs of the job.
    fn gated_id(&mut self, kind: Kind, group: Option<&str>) -> String {
        match (kind, group) {
            (_, Some(group)) => format!("{}@{group}", self.id()),
            (Kind::Rejoin, None) => self.id() + "@slots",
            (Kind::First, None) => self.id() + CHAIN[0],
            (_, None) => self.id(),
        }
    }

    fn work(&mut self, kind: Kind) -> Work {
        let rng = &mut self.rng;
        let size = match rng.u32(0..1_000) {
            0 => rng.usize(10_000..100_000),
            1..20 => rng.usize(1_000..6_000),
            _ => rng.usize(0..200),
        };
        let takes = match rng.u32(0..20) {
            // What a process that is killed every second cannot finish would keep all permits.
            _ if kind == Kind::Cut && self.is_alone => rng.u64(30..100),
            _ if kind == Kind::Cut => rng.u64(300..800),
            0 if !self.is_alone => rng.u64(100..2_000),
            _ => rng.u64(0..25),
        };
        Work { takes, fails: rng.u32(1..4), until: now() + rng.u64(0..2_500_000), filler: "x".repeat(size) }
    }

    /// Sends the commands of a job later.
    fn follow(&mut self, kind: Kind, id: String, after: u64, takes: u64) {
        let (pause, verb) = match kind {
            Kind::Deleted => (self.rng.u64(0..after / 2), Verb::Delete),
            Kind::Cut => (after + self.rng.u64(0..takes), Verb::Delete),
            // The webhook may come before the park.
            Kind::Park if self.rng.u32(0..10) == 0 => (after + self.rng.u64(0..100), Verb::Ack),
            _ => return,
        };
        let (topic, ledger) = (self.provider.topic(kind.topic()).expect("the name is valid"), Arc::clone(&self.ledger));
        let cancels = self.rng.bool();
        tokio::spawn(async move {
            sleep_until(Instant::now() + Duration::from_millis(pause)).await;
            ledger.note(Entry::Sending { id: id.clone(), verb });
            let answer = match verb {
                Verb::Ack => topic.ack(&id).await.map(CommandOutcome::from),
                _ if cancels => topic.cancel(&id).await,
                _ => topic.delete(&id).await,
            };
            ledger.note(Entry::Sent { id, verb, answer: sent(answer) });
        });
    }
}

/// A job of the topic `ack`, for adds of several jobs.
#[derive(Debug, serde::Serialize, serde::Deserialize, dq::DelayJob)]
#[job(topic = "ack")]
struct Batched {
    #[job(id)]
    id: String,
    #[serde(flatten)]
    work: Work,
}

/// What an add answered.
///
/// # Panics
/// If the id exists: every id is added once.
pub(super) fn added(answer: Result<(), CallError>) -> Answer {
    match answer {
        Ok(()) => Answer::Done { found: None, changed: true },
        Err(CallError::NotDone { .. }) => Answer::NotDone,
        Err(CallError::Unknown { .. }) => Answer::Unknown,
        Err(error) => unexpected(&error),
    }
}

/// What a command answered.
pub(super) fn sent(answer: Result<CommandOutcome, CallError>) -> Answer {
    match answer {
        Ok(outcome) => Answer::Done { found: outcome.found, changed: outcome.changed },
        Err(CallError::NotDone { .. }) => Answer::NotDone,
        Err(CallError::Unknown { .. }) => Answer::Unknown,
        Err(error) => unexpected(&error),
    }
}

/// Ends the process, which the storm reports.
fn unexpected(error: &dyn std::error::Error) -> ! {
    eprintln!("an answer that cannot be: {error}");
    std::process::exit(4);
}
