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
    /// What ran in the last five minutes, where the topic keeps statistics.
    #[schema(required = true)]
    rates: Option<Rates>,
}

/// What a topic did in the last five to six minutes.
#[derive(ToSchema)]
struct Rates {
    /// How long that is, ms.
    over: u64,
    /// Jobs that nodes claimed.
    claimed: u64,
    /// Runs that ended.
    ran: u64,
    /// Of these, runs that failed.
    failed: u64,
    /// Half of the claimed jobs were at most this late, ms; an estimate, never too low.
    #[schema(required = true)]
    p50_lateness: Option<u64>,
    /// 99 of a hundred were at most this late, ms.
    #[schema(required = true)]
    p99_lateness: Option<u64>,
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
    /// The version of dq that it runs.
    #[schema(required = true)]
    version: Option<String>,
    /// When it started, by its own clock, ms.
    #[schema(required = true)]
    started: Option<u64>,
}

/// A page of the nodes of a topic.
#[derive(ToSchema)]
pub(super) struct Nodes {
    /// The topic.
    topic: String,
    /// The store's clock, ms.
    clock: u64,
    /// How many nodes hold jobs of the topic.
    holders: usize,
    /// Nodes that hold jobs, in the order of their names; at most 100.
    nodes: Vec<Node>,
    /// The nodes that wait for the next job, two at most.
    watchers: Vec<Node>,
    /// `after` of the next page; `null`: this was the last.
    #[schema(required = true)]
    next: Option<String>,
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

/// What ran, and how late.
#[derive(ToSchema)]
pub(super) struct PastAnswer {
    /// `null` where the topic kept no statistics for a day.
    #[schema(required = true)]
    past: Option<Past>,
}

/// What a topic counted of itself. Both lists end with the present minute or hour, which is not over.
#[derive(ToSchema)]
struct Past {
    /// The store's clock, ms.
    now: u64,
    /// The last 60 minutes of UTC.
    minutes: PastSpans,
    /// The last 24 hours of UTC.
    hours: PastSpans,
}

/// The minutes of an hour, or the hours of a day.
#[derive(ToSchema)]
struct PastSpans {
    /// All of it.
    whole: PastSpan,
    /// Its parts, the earliest first.
    spans: Vec<PastSpan>,
}

/// What a topic did in a span of time. Lateness is the time from due to claim; each of them is `null` where nothing was claimed.
#[derive(ToSchema)]
struct PastSpan {
    /// The first moment, ms.
    from: u64,
    /// The first moment behind it, ms.
    to: u64,
    /// Due jobs that nodes claimed.
    claimed: u64,
    /// Runs that ended with an outcome of their own.
    ran: u64,
    /// Of these, runs that ended with an ack.
    done: u64,
    /// Of these, runs that failed.
    failed: u64,
    /// Jobs that became DEAD.
    dead: u64,
    /// How late the claimed jobs were on average, ms.
    #[schema(required = true)]
    mean_lateness: Option<u64>,
    /// Half of the claimed jobs were at most this late, ms; an estimate, never too low.
    #[schema(required = true)]
    p50_lateness: Option<u64>,
    /// 99 of a hundred were at most this late, ms.
    #[schema(required = true)]
    p99_lateness: Option<u64>,
    /// How late the latest of them was, ms.
    #[schema(required = true)]
    max_lateness: Option<u64>,
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
    /// What happened to the job so far, oldest first; empty where its topic keeps no histories.
    history: Vec<PastMove>,
    /// A line of plain English for each reason.
    text: Vec<String>,
}

/// What happened to a job once.
#[derive(ToSchema)]
struct PastMove {
    /// When, by the store's clock, ms.
    at: u64,
    /// `added`, `claimed`, `done`, `retried`, `dead`, `deleted` and so on, as events are named.
    event: String,
    /// Of a claim: how long after its due time, ms.
    late: Option<u64>,
    /// When the job is due, ms.
    due: Option<u64>,
    /// The node that ran it.
    node: Option<String>,
    /// Who asked for it.
    by: Option<String>,
    /// Why a run failed, or why the job is DEAD, as a word.
    cause: Option<String>,
    /// The command that waits for the end of the run.
    command: Option<String>,
    /// The state that an import brought.
    place: Option<String>,
}

/// How a job ended.
#[derive(ToSchema)]
pub(super) struct Ended {
    /// `deleted`, `done`, `removed`, `dropped` or `published`.
    event: String,
    /// Who asked for it, or the node that ran it.
    by: Option<String>,
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

/// What endangers the store.
#[derive(ToSchema)]
pub(super) struct Findings {
    /// Each of them.
    findings: Vec<Finding>,
}

/// Something that the doctor found.
#[derive(ToSchema)]
struct Finding {
    /// What it is; the guide has a table of all codes.
    code: String,
    /// `warning` or `error`.
    severity: String,
    /// What is wrong.
    text: String,
    /// What to do.
    advice: String,
}
