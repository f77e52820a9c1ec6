//! The keys of the attributes, as modules whose documentation an editor shows (dq-macros, `completion`).

/// `#[job(..)]` above a payload.
pub mod job {
    /// `topic = "order-timeout"`: the topic, 1 to 128 bytes of `A-Z a-z 0-9 . _ : -`. Needed.
    pub mod topic {}
    /// `delay = "30m"`: the delay of a job whose `add` says none, at most ten years. Default: due at once.
    pub mod delay {}
    /// `retry = "1m, 5m, 10m"`: the retry policy of the topic's jobs. Default: the listener's.
    pub mod retry {}
    /// `expires_after = "1h"`: how long after its first due time a job is still worth running. Default: for ever.
    pub mod expires_after {}
    /// `retain = "1d"`: how long a job is kept as DONE after its ack. Default: not at all.
    pub mod retain {}
    /// `deliver = "queue"`, `"broadcast"` or `"both"`: where a due job goes. Default: `"queue"`.
    pub mod deliver {}
    /// `id = "{tenant}:{order_id}"`: the id, made of fields. Default: the field marked `#[job(id)]`, or generated.
    pub mod id {}
}

/// `#[delay_listener(..)]`.
pub mod delay_listener {
    /// `topic = "order-timeout"`: checked against the payload's. May be left out.
    pub mod topic {}
    /// `concurrency = 64`: handlers at once on a node, 1 to 100000. Default 64.
    pub mod concurrency {}
    /// `timeout = "5s"`: how long a handler may run; `"none"`: no limit. Default 30 s.
    pub mod timeout {}
    /// `on_timeout = "retry"` or `"immediate"`: what follows a timeout. Default `"retry"`.
    pub mod on_timeout {}
    /// `retry = "1m, 5m, 10m"`: when a failed job runs again. Default `"exponential 10s x 5"`.
    pub mod retry {}
    /// `ack = "on_return"` or `"on_claim"`: when a job is acked. Default `"on_return"`.
    pub mod ack {}
    /// `max_crashes = 3`: how many crashes exhaust a job, 1 to 1000. Default 3.
    pub mod max_crashes {}
    /// `final_retry = "give_up"`: the function that is called when no attempt is left. Functions only.
    pub mod final_retry {}
    /// `register = false`: not registered; name it with `.listener::<L>()`. Default `true`.
    pub mod register {}
}

/// `#[broadcast_listener(..)]`.
pub mod broadcast_listener {
    /// `channels = ["cache-expired"]`: the broadcast channels, each the topic of its jobs. Needed.
    pub mod channels {}
    /// `register = false`: not registered; name it with `.broadcast_listener::<L>()`. Default `true`.
    pub mod register {}
}
