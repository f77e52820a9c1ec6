//! What the API answers, for its description. The answers themselves are those of `dq::inspect`; a test compares each with its
//! description, property by property.
#![expect(dead_code, reason = "these types describe what others make")]

use utoipa::ToSchema;

use super::reasons::Reason;

/// A page of topics.
#[derive(ToSchema)]
pub(super) struct Topics {
    /// The topics, in the order of their names.
    topics: Vec<Topic>,
    /// `after` of the next page, also if this one is empty; `null`: this was the last.
    #[schema(required = true)]
    next: Option<String>,
}

/// A topic at one moment.
#[derive(ToSchema)]
pub(super) struct Topic {
    /// Its name.
    topic: String,
    /// The store's clock at that moment, ms.
    clock: u64,
    /// DELAYED jobs, due or not.
    delayed: usize,
    /// DELAYED jobs that are due.
    ready: usize,
    /// RUNNING jobs.
    running: usize,
    /// UNACKED jobs.
    unacked: usize,
    /// DEAD jobs.
    dead: usize,
    /// DONE jobs.
    done: usize,
    /// Broadcasts that wait.
    broadcasts: usize,
    /// The earliest due time of a DELAYED job, ms.
    #[schema(required = true)]
    head: Option<u64>,
    /// How long the job that waits longest has been due, ms; 0 if none is due.
    lateness: u64,
    /// Pause, drain and default delay.
    state: TopicState,
    /// How many nodes hold jobs of the topic.
    holders: usize,
    /// The nodes that hold jobs, at most 100; empty in a page of topics.
    nodes: Vec<Node>,
    /// The nodes that wait for the next job, two at most.
    watchers: Vec<Node>,
}

/// What somebody has set for a topic as a whole.
#[derive(ToSchema)]
struct TopicState {
    /// No node takes its jobs.
    #[schema(required = true)]
    pause: Option<Pause>,
    /// It takes no new jobs.
    #[schema(required = true)]
    drain: Option<Drain>,
    /// Its default delay.
    #[schema(required = true)]
    delay: Option<DefaultDelay>,
}

/// A pause.
#[derive(ToSchema)]
struct Pause {
    /// Why.
    reason: String,
    /// When it ends by itself, ms; `null`: with a resume.
    #[schema(required = true)]
    until: Option<u64>,
    /// Who paused the topic, or last changed the pause.
    by: String,
    /// Since when, ms.
    since: u64,
}

/// A drain.
#[derive(ToSchema)]
struct Drain {
    /// Why.
    reason: String,
    /// Who drained the topic.
    by: String,
    /// Since when, ms.
    since: u64,
}

/// A default delay.
#[derive(ToSchema)]
struct DefaultDelay {
    /// The delay, ms.
    delay: u64,
    /// Who set it.
    by: String,
    /// When, ms.
    since: u64,
}

/// A node that listens to a topic.
#[derive(ToSchema)]
pub(super) struct Node {
    /// Its name, which begins with its host.
    node: String,
    /// When its lease ends, or when it comes at the latest, ms.
    until: u64,
    /// How many jobs of the topic it holds.
    jobs: usize,
}

/// What falls due. The first bucket of a list begins now, the others with a whole minute, hour or day of UTC.
#[derive(ToSchema)]
pub(super) struct Timeline {
    /// The store's clock, ms.
    now: u64,
    /// Jobs that are due already.
    ready: usize,
    /// The next 60 minutes.
    minutes: Vec<Bucket>,
    /// The next 24 hours.
    hours: Vec<Bucket>,
    /// The next 30 days.
    days: Vec<Bucket>,
}

/// How many jobs fall due in a span of time.
#[derive(ToSchema)]
struct Bucket {
    /// The first moment, ms.
    from: u64,
    /// The first moment behind it, ms.
    to: u64,
    /// The number of jobs.
    jobs: usize,
    /// `false`: the number is an estimate.
    is_exact: bool,
}

/// A page of jobs. It may be empty and not the last one.
#[derive(ToSchema)]
pub(super) struct Jobs {
    /// The jobs, in order of their time.
    jobs: Vec<Job>,
    /// How many jobs were looked at.
    looked_at: usize,
    /// The time of the last job that was looked at, ms.
    #[schema(required = true)]
    looked_until: Option<u64>,
    /// `after_at` and `after_id` of the next page; `null`: this was the last.
    #[schema(required = true)]
    next: Option<(u64, String)>,
}

/// A job without its payload.
#[derive(ToSchema)]
pub(super) struct Job {
    /// Its id.
    id: String,
    /// `delayed`, `running`, `unacked`, `dead` or `done`.
    state: String,
    /// When it is due (delayed), since when it is there (unacked, dead), or until when (done), ms; `null` while it runs.
    #[schema(required = true)]
    at: Option<u64>,
    /// The node that runs it: pages of running jobs and `why` say it.
    #[schema(required = true)]
    node: Option<String>,
    /// Failed runs so far.
    attempts: u16,
    /// How often a process died while it ran the job; pages of jobs say 0.
    crashes: u32,
    /// Why the last run failed, or why no attempt is left, as a word.
    #[schema(required = true)]
    cause: Option<String>,
    /// The last error.
    #[schema(required = true)]
    error: Option<String>,
    /// The headers as pairs of name and value.
    headers: Vec<(String, String)>,
    /// How often its due time or its payload was changed.
    version: u32,
    /// After this time it becomes DEAD without a run, ms.
    #[schema(required = true)]
    expires_at: Option<u64>,
    /// Bytes of the record.
    bytes: usize,
    /// Why its record cannot be read.
    #[schema(required = true)]
    unreadable: Option<String>,
    /// The store's clock, ms; only in an answer of `why`.
    clock: Option<u64>,
    /// The payload as the program shows it; only of one job, and where payloads are shown.
    payload: Option<String>,
}

/// Why a job has not run.
#[derive(ToSchema)]
pub(super) struct Why {
    /// The job; `null` if there is none.
    #[schema(required = true)]
    job: Option<Job>,
    /// The reasons, the decisive one first. Each of them alone keeps the job from running.
    reasons: Vec<Reason>,
    /// A line of plain English for each reason.
    text: Vec<String>,
}

/// A page of schedules.
#[derive(ToSchema)]
pub(super) struct Schedules {
    /// The schedules, in the order of their names.
    schedules: Vec<Schedule>,
    /// `after` of the next page; `null`: this was the last.
    #[schema(required = true)]
    next: Option<String>,
}

/// A schedule. One that this version of dq cannot read has `name` and `unreadable` alone.
#[derive(ToSchema)]
struct Schedule {
    /// Its name.
    name: String,
    /// When it ticks, in words, or as a cron line.
    when: Option<String>,
    /// The next tick, ms.
    next: Option<u64>,
    /// Why it is paused; `null`: it is not.
    paused: Option<String>,
    /// Who paused it; empty if nobody said so.
    paused_by: Option<String>,
    /// The id of the job of the last tick.
    last_job: Option<String>,
    /// Why it cannot be read.
    unreadable: Option<String>,
}

/// What an add did.
#[derive(ToSchema)]
pub(super) struct Added {
    /// The id of the job.
    id: String,
    /// `added`, `replaced`, or `kept`: a job with this id was there, and stays.
    how: String,
}

/// What a step of a bulk change did.
#[derive(ToSchema)]
pub(super) struct Stepped {
    /// Jobs that were looked at.
    looked_at: usize,
    /// Jobs that were changed.
    changed: usize,
    /// Jobs that had gone or moved meanwhile.
    untouched: usize,
    /// `after` of the next step; `null`: all is done.
    #[schema(required = true)]
    next: Option<(u64, String)>,
}
