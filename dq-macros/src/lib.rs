//! The attributes and the derive of dq: use them through the `dq` crate, which re-exports them.
//!
//! | macro | goes above | purpose |
//! |---|---|---|
//! | [`DelayJob`](macro@DelayJob) | a payload | gives it a topic |
//! | [`delay_listener`](macro@delay_listener) | a struct or an async function | makes it the listener of a topic |
//! | [`broadcast_listener`](macro@broadcast_listener) | a struct | makes it a listener of broadcasts |
//! | [`periodic`](macro@periodic) | a listener, or a function that makes a payload | adds a job at each tick |
//! | [`delay!`](macro@delay) | | makes a delay that the compiler checks |
//!
//! One compile reports every mistake of an attribute, each at its place, and says what to write instead. The macros
//! check values by the rules that the library applies at run time (crate `dq-grammar`). Keys take literals, so that
//! rustfmt formats them.
//!
//! Each macro has three steps. Parse reads the item, and `arguments` its keys; a model checks them and notes mistakes;
//! expand only writes tokens. After a mistake a macro still emits the item, with stand-ins for the implementations, so
//! that one mistake gives one error.
//!
//! Generated code names everything by an absolute path (`::core::..`, or through `dq::__private`) and its locals by
//! `injection::local`, so that no name of the user's code can shadow either.

mod arguments;
mod broadcast;
mod completion;
mod constants;
mod delay;
mod errors;
mod injection;
mod job;
mod listener;
mod periodic;

use dq_grammar::attribute_rows;
use proc_macro::TokenStream;

/// Gives a payload its topic: implements `dq::DelayJob`.
///
/// ```
/// use dq::prelude::*;
/// use serde::{Deserialize, Serialize}; // `cargo add serde -F derive`
///
/// #[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
/// #[job(topic = "order-timeout", delay = "30m")]
/// struct CloseOrder {
///     #[job(id)]
///     order_id: u64,
/// }
///
/// assert_eq!(CloseOrder::TOPIC, "order-timeout");
/// ```
///
/// A payload is a struct or an enum that owns its data, is `Send + Sync`, and implements serde's `Serialize` and
/// `Deserialize`. A payload type has one topic. To use a type of another crate, wrap it in a newtype of your own with
/// `#[serde(transparent)]`.
///
/// # Keys of `#[job(..)]`
///
/// | key | value | default |
/// |---|---|---|
/// | `topic = "order-timeout"` | 1 to 128 bytes of `A-Z a-z 0-9 . _ : -` | none: this key is required |
/// | `delay = "30m"` | the time from the `add` until the job is due, unless the `add` sets one; at most ten years | due at once |
/// | `retry = "1m, 5m, 10m"` | the [retry policy](#retry-policies) of these jobs; it is the weakest source: the listener's, every setting of the topic and the `add` outweigh it | that of the topic |
/// | `expires_after = "1h"` | how long after its first due time a job may still run; more than zero, at most ten years | no limit |
/// | `retain = "1d"` | how long dq keeps a job as DONE after its ack; at most ten years | not at all |
/// | `deliver = "both"` | who receives a due job: `"queue"` (one listener), `"broadcast"` (every connected node that listens to the topic as a broadcast channel) or `"both"` | `"queue"` |
/// | `max_waiting = 10_000` | how many jobs of the topic may wait: an add beyond that is refused with `Refusal::TopicFull`; `set_limit` overrides it | any number |
/// | `group_max_waiting = 100` | how many jobs of the same group may wait: an add beyond that is refused with `Refusal::GroupFull`; `set_limit` overrides it | any number |
/// | `priority = "high"` | which due jobs go first: `"high"`, `"normal"` or `"low"`; the setting `priority_ageing` of the topic says how long a job may be overtaken | `"normal"` |
/// | `unique_for = "24h"` | for how long after its add the id of a job counts as existing, even if the job has ended or was deleted; 1 s to 30 days. Needs an id | as long as the job exists |
/// | `group = "{customer}"` | the group of the job, built from fields: only so many jobs of a group run at a time as the setting `group_concurrency` of the topic says | no group |
/// | `weight = "{tokens}"` | how much of the `rate` and of the `group_rate` of the topic the start of the job spends, built from fields: 1 to 10,000 | 1 |
/// | `id = "{tenant}:{order_id}"` | the id, built from fields; `{{` and `}}` stand for braces | see below |
/// | `crate = "work::dq"` | the path to dq, if it is not a dependency of yours | the dependency, also if Cargo.toml renames it |
///
/// Durations are a number and a unit: `"500ms"`, `"30s"`, `"15m"`, `"1h 30m"`, `"2d"`.
///
/// # The id
///
/// The id names a job within its topic: 1 to 256 bytes of text without control characters. Adding a second job with the
/// same id is an error, unless the `add` says what to do. There are four ways to choose the id:
///
/// * Mark a field with `#[job(id)]`. It may be anything that is `Display`: a number, a text, a `Uuid`, an address, a
///   newtype.
/// * Build it from several fields: `#[job(topic = "..", id = "{tenant}:{order_id}")]` above the type. Choose separators
///   that no field contains, or two jobs may get the same id.
/// * Write a constant, for a payload without fields: `#[job(topic = "report", id = "nightly")]`.
/// * Choose none: then dq generates one.
///
/// If the text cannot be an id (it is empty or too long), the `add` returns an error.
///
/// # Retry policies
///
/// `"none"`, `"immediate x 3"`, `"30s x 5"`, a ladder `"1m, 5m, 10m, 30m, 1h"`, or
/// `"exponential 10s x 5, factor 3, max 1h, jitter 10%"`. You may leave out the parts behind the first comma.
///
/// # Generic payloads
///
/// `struct Page<T> { items: Vec<T> }` is a payload for every `T` that makes it serializable; the struct needs no bound.
/// All of these payloads share one topic.
#[proc_macro_derive(DelayJob, attributes(job))]
pub fn derive_delay_job(item: TokenStream) -> TokenStream {
    job::expand(item.into()).into()
}

/// Makes a struct or an async function the listener of a topic, and registers it.
///
/// # A struct
///
/// dq fills its fields by their types: the factory's `.provide(value)` provides a value, and each listener gets a
/// clone. If a value is missing, the node does not start, and the error names the field and the type. Mark the
/// listener's own state with `#[inject(default)]`: `Default` makes it, and it need not be `Clone`.
///
/// `topic` repeats the payload's topic for the reader. The compiler rejects a topic that differs; you may leave it out.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
/// # #[job(topic = "order-timeout")]
/// # struct CloseOrder { order_id: u64 }
/// # struct Orders;
/// # impl Orders { async fn close(&self, _: u64) -> Result<bool, std::fmt::Error> { Ok(true) } }
///
/// #[delay_listener(topic = "order-timeout", concurrency = 64, timeout = "5s", retry = "1m, 5m, 10m")]
/// struct OrderTimeout {
///     orders: Arc<Orders>,
///     #[inject(default)]
///     seen: AtomicU64,
/// }
///
/// impl DelayListener for OrderTimeout {
///     type Job = CloseOrder;
///
///     async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
///         self.seen.fetch_add(1, Ordering::Relaxed);
///         Ok(match self.orders.close(job.order_id).await? {
///             true => channel.ack(),
///             false => channel.rejoin_after("2m"),
///         })
///     }
/// }
/// ```
///
/// # A function
///
/// The short form. `job: Job<P>` is the job. `channel: Channel` decides; without it, `Ok(())` is the ack. dq fills
/// every other parameter by its type: `T` gets a clone, `&T` borrows. Another crate's `Channel`, as that of a gRPC
/// client, is a dependency like any other.
///
/// ```
/// # use std::sync::Arc;
/// use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
/// # #[job(topic = "remind")]
/// # struct Remind { who: String }
/// # struct Orders;
/// # impl Orders { async fn mail(&self, _: &str) -> Result<(), std::fmt::Error> { Ok(()) } }
///
/// #[delay_listener(timeout = "5s", on_exhausted = "give_up")]
/// async fn remind(job: Job<Remind>, orders: &Arc<Orders>) -> Result<(), JobError> {
///     orders.mail(&job.who).await?;
///     Ok(())
/// }
///
/// async fn give_up(job: Job<Remind>, cause: &Failure) {
///     eprintln!("no reminder for {}: {cause}", job.who);
/// }
/// ```
///
/// The macro adds a struct of the function's name with a field for each dependency; it is private unless
/// `register = false`, so only the module of the function can say `.listener::<remind>()`. Write a struct yourself if the
/// listener needs more: `on_park_timeout`, an `on_exhausted` with dependencies, state of its own, or generics. A function
/// inside an `impl` cannot be a listener.
///
/// # Batches
///
/// A listener may take many jobs at once: a function with `batch: Batch<P>` instead of the job, or a struct that has `batch_size = 500` in
/// its attribute and implements `BatchListener` instead of `DelayListener`. The batch decides each job; for all others, `Ok(())`
/// is the ack. `.batch_listener::<L>()` names it where `register = false`.
///
/// ```
/// use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
/// # #[job(topic = "order-timeout")]
/// # struct CloseOrder { #[job(id)] order: u64 }
/// # async fn close_all(orders: &[u64]) -> Result<Vec<u64>, std::fmt::Error> { Ok(vec![]) }
///
/// #[delay_listener(batch_size = 500, concurrency = 2)]
/// async fn close(batch: Batch<CloseOrder>) -> Result<(), JobError> {
///     let orders: Vec<u64> = batch.iter().map(|job| job.order).collect();
///     let unknown = close_all(&orders).await?; // an error fails every job
///     for job in batch.iter().filter(|job| unknown.contains(&job.order)) {
///         batch.fail(job, "there is no such order");
///     }
///     Ok(())
/// }
/// ```
///
/// # Keys
///
/// Every key is optional. The builder, a config file and the environment override the attribute.
///
/// | key | value | default |
/// |---|---|---|
/// | `topic = "order-timeout"` | the payload's topic, for the reader; the compiler rejects another one | the payload's |
#[doc = dq_grammar::topic_settings!(attribute_rows)]
/// | `on_exhausted = "give_up"` | functions only: the path of an `async fn(Job<P>, &Failure)` that dq calls when no attempt is left | dq logs a warning |
/// | `register = false` | the listener does not register itself: name it with `.listener::<L>()` | `true` |
/// | `crate = "work::dq"` | the path to dq, if it is not a dependency of yours | the dependency, also if Cargo.toml renames it |
///
/// # Generic listeners
///
/// A generic listener cannot register itself: write `register = false` and name each one with `.listener::<L<..>>()`.
/// Write bounds (`T: Notify + Send + Sync + 'static`) on the parameters of the struct.
///
/// # Limits
///
/// * A listener owns its fields: it has no lifetimes and no references.
/// * A payload must be as visible as its listener, or the compiler says "can't leak private type".
/// * The linker drops a library that the program never mentions, and its listeners with it: write
///   `use my_handlers as _;`.
/// * The macro sees `#[cfg(..)]` on a field or parameter, but not `#[cfg_attr(.., inject(default))]`.
#[proc_macro_attribute]
pub fn delay_listener(arguments: TokenStream, item: TokenStream) -> TokenStream {
    listener::expand(&arguments.into(), item.into()).into()
}

/// Makes a struct a listener of broadcasts, and registers it.
///
/// Every connected node that listens to a broadcast channel gets each of its broadcasts at most once. The broadcast
/// channel of a job is its topic. dq fills the fields as those of a [`delay_listener`](macro@delay_listener).
///
/// ```
/// # use std::sync::Arc;
/// use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
/// # #[job(topic = "cache-expired", deliver = "broadcast")]
/// # struct CacheExpired { key: String }
/// # struct Cache;
/// # impl Cache { fn forget(&self, _: &str) {} }
///
/// #[broadcast_listener(channels = ["cache-expired"])]
/// struct DropCache {
///     cache: Arc<Cache>,
/// }
///
/// impl BroadcastListener for DropCache {
///     type Message = CacheExpired;
///
///     async fn on_message(&self, expired: Broadcast<CacheExpired>) -> Result<(), JobError> {
///         self.cache.forget(&expired.message.key);
///         Ok(())
///     }
/// }
/// ```
///
/// # Keys
///
/// | key | value | default |
/// |---|---|---|
/// | `channels = ["cache-expired", "prices"]` | at least one broadcast channel; its name is the topic of its jobs | none: this key is required |
/// | `register = false` | the listener does not register itself: name it with `.broadcast_listener::<L>()`; a generic listener needs this | `true` |
/// | `crate = "work::dq"` | the path to dq, if it is not a dependency of yours | the dependency, also if Cargo.toml renames it |
#[proc_macro_attribute]
pub fn broadcast_listener(arguments: TokenStream, item: TokenStream) -> TokenStream {
    broadcast::expand(&arguments.into(), item.into()).into()
}

/// Defines a schedule, which adds a job at each of its ticks, and registers it.
///
/// It goes above a function that makes the payload. dq calls it at each tick, on the runtime of the handlers:
///
/// ```
/// use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
/// # #[job(topic = "report")]
/// # struct Report { pages: u32 }
///
/// #[periodic(every = "1h", on_missed = "skip")]
/// fn hourly() -> Report {
///     Report { pages: 7 }
/// }
/// ```
///
/// Or above `#[delay_listener]`, if the payload is `Default`: then each job has that payload.
///
/// ```
/// use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Default, Serialize, Deserialize, DelayJob)]
/// #[job(topic = "cleanup")]
/// struct Cleanup {}
///
/// #[periodic(every = "15m", overlap = "skip", jitter = "1m")]
/// #[delay_listener]
/// async fn clean(job: Job<Cleanup>) -> Result<(), JobError> {
///     println!("the tick of {}", job.id());
///     Ok(())
/// }
/// ```
///
/// Each node sends the schedules of its program when it starts; the store keeps them, and adds each job exactly once, however many nodes
/// there are. A function may be `async`; it takes no parameters. If it panics or fails, the tick stays and is tried again in a minute.
/// Several `#[periodic]` above one item need a `name` each.
///
/// # Keys
///
/// `every`, or `cron` and `tz`, is required.
///
/// | key | value | default |
/// |---|---|---|
/// | `every = "30s"` | a tick after each interval, at multiples of it since `start` or the Unix epoch; 1 s to ten years | |
/// | `cron = "0 9 * * MON-FRI"` | a tick at each time of the line; needs the feature `cron` of dq | |
/// | `tz = "Asia/Singapore"` | the time zone of `cron`, a name of the IANA database | |
/// | `name = "nightly"` | the name, unique in the topic, at most 200 bytes | that of the item |
/// | `on_missed = "once"` | what becomes of ticks for which no node came: `"skip"`, `"once"` (one job a gap) or `"all"` | `"once"` |
/// | `overlap = "skip"` | adds no job while that of the last tick is not done; or `"allow"` | `"allow"` |
/// | `jitter = "5m"` | each job is due up to that long after its tick | none |
/// | `start = "2026-12-01T00:00:00Z"` | no tick is before this time, which has a `Z` or an offset such as `+05:30` | none |
/// | `end = "2027-01-01T00:00:00Z"` | no tick is after it | none |
/// | `skipped = "later"` | a time that the clock of the zone skips: `"later"`, `"never"` | by the line |
/// | `repeated = "first"` | a time that it shows twice: `"first"`, `"second"`, `"both"` | by the line |
/// | `revision = 2` | makes the definition a newer one, although an earlier one said the same | 0 |
/// | `register = false` | the schedule does not register itself: name it with `.periodic::<S>()` | `true` |
/// | `crate = "work::dq"` | the path to dq, if it is not a dependency of yours | the dependency, also if Cargo.toml renames it |
#[proc_macro_attribute]
pub fn periodic(arguments: TokenStream, item: TokenStream) -> TokenStream {
    periodic::expand(arguments.into(), &item.into()).into()
}

/// Makes a delay that the compiler checks: a constant `Duration` from a number and a unit.
///
/// ```
/// use std::time::Duration;
///
/// use dq::delay;
///
/// const PAUSE: Duration = delay!("1h 30m");
/// assert_eq!(PAUSE, Duration::from_secs(5400));
/// ```
///
/// The units are `ms`, `s`, `m`, `h` and `d`, and their long names; the limit is ten years. Wherever dq takes a delay
/// it also takes the text, but then only the call at run time finds a mistake.
///
/// ```compile_fail
/// let never = dq::delay!("15"); // `15` is not a duration: write a number and a unit
/// ```
#[proc_macro]
pub fn delay(input: TokenStream) -> TokenStream {
    delay::expand(input.into()).into()
}
