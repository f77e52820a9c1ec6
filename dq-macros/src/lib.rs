//! The attributes and the derive of dq: use them through the `dq` crate, which re-exports them.
//!
//! | macro | stands above | does |
//! |---|---|---|
//! | [`DelayJob`](macro@DelayJob) | a payload | binds it to its topic |
//! | [`delay_listener`](macro@delay_listener) | a struct or an async function | makes it the listener of a topic |
//! | [`broadcast_listener`](macro@broadcast_listener) | a struct | makes it a listener of broadcasts |
//! | [`delay!`](macro@delay) | | a delay that the compiler checks |
//!
//! Every mistake of an attribute is reported in one compile, each at its place, with what to write instead. Values are
//! checked by the rules that hold at run time (crate `dq-grammar`). Keys take literals, so that rustfmt formats them.
//!
//! Each macro is parse → model → expand: `arguments` reads the keys and checks their values, a `model` notes what is
//! wrong, an `expand` only writes tokens. After a mistake the item is still emitted, with stand-ins for the
//! implementations, so that one mistake gives one error.

mod arguments;
mod broadcast;
mod completion;
mod constants;
mod delay;
mod errors;
mod injection;
mod job;
mod listener;

use proc_macro::TokenStream;

/// Binds a payload to its topic: implements `dq::DelayJob`.
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
/// A payload is a struct or an enum that serde writes and reads, that owns its data and is `Send + Sync`. One payload
/// type serves one topic. A payload of another crate needs a newtype of yours, with `#[serde(transparent)]`.
///
/// # Keys of `#[job(..)]`
///
/// | key | value | default |
/// |---|---|---|
/// | `topic = "order-timeout"` | 1 to 128 bytes of `A-Z a-z 0-9 . _ : -` | none: it must be there |
/// | `delay = "30m"` | how long after its `add` a job is due, unless the `add` says it; at most ten years | due at once |
/// | `retry = "1m, 5m, 10m"` | the [retry policy](#retry-policies) of these jobs, before the listener's | the listener's |
/// | `expires_after = "1h"` | how long after its first due time a job is still worth running; more than zero, at most ten years | for ever |
/// | `retain = "1d"` | how long a job is kept as DONE after its ack; at most ten years | not at all |
/// | `deliver = "both"` | where a due job goes: `"queue"` (to one listener), `"broadcast"` (to every connected node that listens to the broadcast channel of this name) or `"both"` | `"queue"` |
/// | `id = "{tenant}:{order_id}"` | the id, made of fields; `{{` and `}}` are braces | see below |
/// | `crate = "work"` | the path to dq, when it has another name | `"::dq"` |
///
/// Durations are a number and a unit: `"500ms"`, `"30s"`, `"15m"`, `"1h 30m"`, `"2d"`.
///
/// # The id
///
/// Within its topic a job is found by its id, 1 to 256 bytes of text without control characters; adding a second job
/// with a known id is an error unless the `add` says what to do. It is
///
/// * the field marked `#[job(id)]`: anything that is `Display`, as a number, a text, a `Uuid`, an address or a newtype;
/// * or made of several fields: `#[job(topic = "..", id = "{tenant}:{order_id}")]` above the type. Choose separators
///   that no field has, or two jobs may be one;
/// * or a constant, for a payload without fields: `#[job(topic = "report", id = "nightly")]`;
/// * or else generated.
///
/// A text that is no id (empty, too long) is an error of the `add`.
///
/// # Retry policies
///
/// `"none"`, `"immediate x 3"`, `"30s x 5"`, a ladder `"1m, 5m, 10m, 30m, 1h"`, or
/// `"exponential 10s x 5, factor 3, max 1h, jitter 10%"`, of which what follows the first comma may be left out.
///
/// # Generic payloads
///
/// `struct Page<T> { items: Vec<T> }` is a payload for every `T` for which serde's derives make it one; no bound is needed
/// on the struct. All of them share the topic.
#[proc_macro_derive(DelayJob, attributes(job))]
pub fn derive_delay_job(item: TokenStream) -> TokenStream {
    job::expand(item.into()).into()
}

/// Makes a struct or an async function the listener of a topic, and registers it.
///
/// # A struct
///
/// Its fields are injected by their types: `.provide(value)` of the factory gives the value, each listener gets a clone.
/// What is missing is a start-up error that names the field and the type. State of the listener's own is marked
/// `#[inject(default)]`: it is made by `Default` and need not be `Clone`.
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
/// The short form. `job: Job<P>` is the job, `channel: Channel` decides and may be left out: then `Ok(())` is the ack.
/// Every other parameter is injected by its type; `&T` borrows what `T` would be given a clone of.
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
/// #[delay_listener(timeout = "5s", final_retry = "tell_somebody")]
/// async fn remind(job: Job<Remind>, orders: &Arc<Orders>) -> Result<(), JobError> {
///     orders.mail(&job.who).await?;
///     Ok(())
/// }
///
/// async fn tell_somebody(job: Job<Remind>, cause: &Failure) {
///     eprintln!("nobody reminded {}: {cause}", job.who);
/// }
/// ```
///
/// It becomes a struct of the function's name with a field for each dependency, private unless `register = false`. What
/// needs more (`process_unacked`, a `final_retry` with dependencies, state of its own, generics) is written as a struct.
///
/// # Keys
///
/// All may be left out. What a config file or the environment says of a topic goes before what is said here.
///
/// | key | value | default |
/// |---|---|---|
/// | `topic = "order-timeout"` | compared with the payload's by the compiler; the payload's counts | the payload's |
/// | `concurrency = 64` | handlers at once on one node, 1 to 100000 | 64 |
/// | `timeout = "5s"` | how long a handler may run before it is dropped, at most ten years; `"none"` or `"0s"`: no limit | 30 s |
/// | `on_timeout = "immediate"` | what follows a timeout: `"retry"` (a failure as any) or `"immediate"` (the next attempt at once) | `"retry"` |
/// | `retry = "1m, 5m, 10m"` | when a failed job runs again, see [`DelayJob`](macro@DelayJob#retry-policies) | `"exponential 10s x 5"` |
/// | `ack = "on_claim"` | `"on_return"` (at least once) or `"on_claim"` (before the handler starts: at most once, no retry, a node that dies loses what it holds) | `"on_return"` |
/// | `max_crashes = 3` | how many nodes may die under a job before it is given up, 1 to 1000 | 3 |
/// | `final_retry = "tell_somebody"` | functions only: the path of an `async fn(Job<P>, &Failure)` that is called when no attempt is left | a warning is logged |
/// | `register = false` | not registered: name it with `.listener::<L>()` | `true` |
/// | `crate = "work"` | the path to dq, when it has another name | `"::dq"` |
///
/// # Generic listeners
///
/// A generic listener cannot register itself: write `register = false` and name each with `.listener::<L<..>>()`. Bounds
/// (`T: Notify + Send + Sync + 'static`) go on the parameters of the struct.
///
/// # Limits
///
/// * A listener owns what it needs: no lifetimes, no references.
/// * A payload is as visible as its listener, or the compiler says "can't leak private type".
/// * A library that the program never mentions is not linked, and its listeners are silently absent: write
///   `use my_handlers as _;`.
/// * `#[cfg_attr(.., inject(default))]` is not seen; `#[cfg(..)]` on a field or parameter is.
#[proc_macro_attribute]
pub fn delay_listener(arguments: TokenStream, item: TokenStream) -> TokenStream {
    listener::expand(&arguments.into(), item.into()).into()
}

/// Makes a struct a listener of broadcasts, and registers it.
///
/// Every connected node that listens to a broadcast channel gets each of its broadcasts at most once. The broadcast
/// channel of a job is its topic. Fields are injected as those of a [`delay_listener`](macro@delay_listener).
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
/// | `channels = ["cache-expired", "prices"]` | at least one broadcast channel, each named as the topic of its jobs | none: it must be there |
/// | `register = false` | not registered: name it with `.broadcast_listener::<L>()`; needed for a generic one | `true` |
/// | `crate = "work"` | the path to dq, when it has another name | `"::dq"` |
#[proc_macro_attribute]
pub fn broadcast_listener(arguments: TokenStream, item: TokenStream) -> TokenStream {
    broadcast::expand(&arguments.into(), item.into()).into()
}

/// A delay that the compiler checks: a constant `Duration` from a number and a unit.
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
/// Units are `ms`, `s`, `m`, `h` and `d` (and their long names); at most ten years. Wherever dq takes a delay it takes
/// the text as well; then a mistake is found when the call is made.
///
/// ```compile_fail
/// let never = dq::delay!("15"); // `15` is not a duration: write a number and a unit
/// ```
#[proc_macro]
pub fn delay(input: TokenStream) -> TokenStream {
    delay::expand(input.into()).into()
}
