//! The keys of the attributes, as modules: an editor shows their documentation (see `completion` in dq-macros).

/// `#[job(..)]` above a payload.
pub mod job {
    /// `topic = "order-timeout"`: the topic, 1 to 128 bytes of `A-Z a-z 0-9 . _ : -`. Required.
    pub mod topic {}
    /// `delay = "30m"`: the delay of a job whose add names none, at most ten years. Default: due at once.
    pub mod delay {}
    /// `retry = "1m, 5m, 10m"`: the retry policy of the topic's jobs. Default: the listener's.
    pub mod retry {}
    /// `expires_after = "1h"`: how long after its first due time a job may still start. Default: no limit.
    pub mod expires_after {}
    /// `retain = "1d"`: how long a job is kept as DONE after its ack. Default: not at all.
    pub mod retain {}
    /// `deliver = "queue"`, `"broadcast"` or `"both"`: where a due job goes. Default: `"queue"`.
    pub mod deliver {}
    /// `priority = "high"`, `"normal"` or `"low"`: which of the due jobs of the topic go first. Default: `"normal"`.
    pub mod priority {}
    /// `group = "{customer}"`: the group of the job, made of fields. Of a group only so many jobs run at a time as `group_concurrency` of the topic
    /// says. Default: no group.
    pub mod group {}
    /// `weight = "{tokens}"`: how much of the `rate` of the topic the start of a job spends, 1 to 10,000, made of fields. Default: 1.
    pub mod weight {}
    /// `id = "{tenant}:{order_id}"`: the id, made of fields. Default: the field marked `#[job(id)]`, otherwise dq
    /// generates it.
    pub mod id {}
}

/// `#[delay_listener(..)]`.
pub mod delay_listener {
    /// `topic = "order-timeout"`: the topic of the payload; the compiler compares the two. Optional.
    pub mod topic {}
    macro_rules! keys {
        ($($(#[$doc:meta])+ $name:ident: [$($type:tt)+] = $default:expr $(, in $range:expr)? $(, attribute $example:literal)?;)+) => {
            $(keys! { @ [$($example)?] $name $(#[$doc])+ })+
        };
        (@ [] $($setting:tt)+) => {};
        (@ [$example:literal] $name:ident $(#[$doc:meta])+) => {
            #[doc = concat!("`", stringify!($name), " = ", $example, "`")]
            ///
            $(#[$doc])+
            pub mod $name {}
        };
    }
    dq_grammar::topic_settings!(keys);
    /// `on_exhausted = "give_up"`: the function to call when no attempt is left. For function listeners only.
    pub mod on_exhausted {}
    /// `register = false`: do not register the listener; name it with `.listener::<L>()`. Default: `true`.
    pub mod register {}
}

/// `#[broadcast_listener(..)]`.
pub mod broadcast_listener {
    /// `channels = ["cache-expired"]`: the broadcast channels, each named as the topic of its jobs. Required.
    pub mod channels {}
    /// `register = false`: do not register the listener; name it with `.broadcast_listener::<L>()`. Default: `true`.
    pub mod register {}
}

/// `#[periodic(..)]`.
pub mod periodic {
    /// `every = "30s"`: a tick after each interval, at multiples of it since `start` or the Unix epoch; 1 s to ten years.
    pub mod every {}
    /// `cron = "0 9 * * MON-FRI"`: a tick at each time of the line, by the clock of `tz`. Needs the feature `cron`.
    pub mod cron {}
    /// `tz = "Asia/Singapore"`: the time zone of `cron`, a name of the IANA database.
    pub mod tz {}
    /// `name = "nightly"`: the name of the schedule. Default: that of the function or struct.
    pub mod name {}
    /// `on_missed = "skip"`, `"once"` or `"all"`: what becomes of ticks for which no node came. Default: `"once"`.
    pub mod on_missed {}
    /// `overlap = "allow"` or `"skip"`: what becomes of a tick while the last job is not done. Default: `"allow"`.
    pub mod overlap {}
    /// `jitter = "5m"`: each job is due up to that long after its tick. Default: none.
    pub mod jitter {}
    /// `start = "2026-12-01T00:00:00Z"`: no tick is before it. Default: none.
    pub mod start {}
    /// `end = "2027-01-01T00:00:00Z"`: no tick is after it. Default: none.
    pub mod end {}
    /// `skipped = "later"` or `"never"`: what becomes of a time that the clock of the zone skips. Default: by the line.
    pub mod skipped {}
    /// `repeated = "first"`, `"second"` or `"both"`: when a time counts that the clock shows twice. Default: by the line.
    pub mod repeated {}
    /// `revision = 2`: makes the definition a newer one although it says what an earlier one said. Default: 0.
    pub mod revision {}
    /// `register = false`: do not register the schedule; name it with `.periodic::<S>()`. Default: `true`.
    pub mod register {}
}
