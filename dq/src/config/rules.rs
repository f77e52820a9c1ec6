//! The limits of settings: ranges, and rules between settings. A check reports every broken rule, not only the first.

use std::time::Duration;

use dq_grammar::{DAY, MINUTE, MS};

use super::layer::Resolved;
use super::problem::{Setting, SettingProblem};
use super::settings::{Keyed, NodeSettings, TopicSettings};
use super::value::{Value, show_duration};
use crate::listener::AckMode;
use crate::store::step::{MAX_JOBS, MAX_LEASE};
use crate::store::{Durability, MAX_HISTORY, MAX_HISTORY_RETENTION};
use crate::time::{MAX_DELAY, floor_millis};

const MAX_REPLICAS: u32 = 100;

/// The longest time that `file:` may wait before it syncs what it has answered.
const MAX_INTERVAL: Duration = Duration::from_secs(10);

/// The table of the settings has these limits of the stores as numbers.
const _: () = assert!(
    MAX_LEASE.as_secs() == 5 * MINUTE.as_secs()
        && MAX_HISTORY == 100
        && MAX_HISTORY_RETENTION.as_secs() == 30 * DAY.as_secs()
        && MAX_JOBS == 1_000
);

/// Every problem with the settings of a node.
pub(crate) fn check_node(node: &Resolved<NodeSettings>) -> Vec<SettingProblem> {
    let mut limits = Limits::within_ranges(None, node);
    limits.durability();
    if limits.problems.is_empty() {
        limits.intervals();
    }
    limits.problems
}

/// Every problem with the settings of a topic.
pub(crate) fn check_topic(name: &str, topic: &Resolved<TopicSettings>) -> Vec<SettingProblem> {
    let mut limits = Limits::within_ranges(Some(name), topic);
    limits.histories();
    limits.slots();
    limits.whole_milliseconds();
    limits.retries();
    limits.problems
}

/// The problem with the settings of a topic whose listener takes batches.
pub(crate) fn check_batches(name: &str, topic: &Resolved<TopicSettings>) -> Option<SettingProblem> {
    (topic.settings.ack == AckMode::OnClaim).then(|| SettingProblem::OutOfRange {
        setting: Setting::new(Some(name), "ack"),
        value: topic.settings.ack.show(),
        at: topic.source("ack"),
        limit: "on_return, because the listener takes batches".into(),
        write: format!("`ack = {}`", AckMode::OnReturn.quoted()),
    })
}

struct Limits<'a, S> {
    topic: Option<&'a str>,
    resolved: &'a Resolved<S>,
    problems: Vec<SettingProblem>,
}

impl<'a, S: Keyed> Limits<'a, S> {
    /// The problems with values outside of their ranges.
    fn within_ranges(topic: Option<&'a str>, resolved: &'a Resolved<S>) -> Self {
        let mut limits = Self { topic, resolved, problems: Vec::new() };
        for key in S::KEYS {
            if let Some((limit, write)) = (key.outside)(&resolved.settings) {
                limits.refuse(key.name, limit, write);
            }
        }
        limits
    }

    fn refuse(&mut self, key: &'static str, limit: String, write: String) {
        let value = S::key(key).map_or_else(String::new, |entry| (entry.show)(&self.resolved.settings));
        let (setting, at) = (Setting::new(self.topic, key), self.resolved.source(key));
        self.problems.push(SettingProblem::OutOfRange { setting, value, at, limit, write });
    }

    /// `key`, its value and where the value came from, for the limit of another setting.
    fn describe(&self, key: &'static str) -> String {
        let value = S::key(key).map_or_else(String::new, |entry| (entry.show)(&self.resolved.settings));
        format!("`{key}`, which is {value} ({})", self.resolved.source(key))
    }
}

impl Limits<'_, NodeSettings> {
    /// Replicas must answer before dq considers the call lost; an interval is short.
    fn durability(&mut self) {
        let (replicas, timeout) = match self.resolved.settings.durability {
            Durability::Local | Durability::Sync => return,
            Durability::Interval(interval) => return self.interval(interval),
            Durability::Wait { replicas, timeout } => (replicas, timeout),
        };
        let half = floor_millis(self.resolved.settings.call_timeout / 2).max(MS);
        let written = |replicas, timeout| format!("`durability = {}`", Durability::Wait { replicas, timeout }.quoted());
        if !(1..=MAX_REPLICAS).contains(&replicas) {
            let write = written(replicas.clamp(1, MAX_REPLICAS), timeout.clamp(MS, half));
            self.refuse("durability", format!("a wait for 1 to {MAX_REPLICAS} replicas"), write);
        } else if timeout < MS || timeout > half {
            let limit = format!("a wait of between 1ms and half of {}", self.describe("call_timeout"));
            self.refuse("durability", limit, written(replicas, timeout.clamp(MS, half)));
        }
    }

    fn interval(&mut self, interval: Duration) {
        if !(MS..=MAX_INTERVAL).contains(&interval) {
            let write = format!("`durability = {}`", Durability::Interval(interval.clamp(MS, MAX_INTERVAL)).quoted());
            self.refuse("durability", "an interval between 1ms and 10s".into(), write);
        }
    }

    /// The rules between the intervals of a node, each of which is within its range.
    fn intervals(&mut self) {
        let is = &self.resolved.settings;
        let third = floor_millis(is.lease / 3);
        if is.heartbeat_interval > is.lease / 3 {
            let write = format!("`heartbeat_interval = {}` or less, or a longer `lease`", third.quoted());
            self.refuse("heartbeat_interval", format!("at most a third of {}", self.describe("lease")), write);
        } else if is.heartbeat_interval + is.call_timeout > is.lease {
            // Otherwise one lost answer costs the lease: the node misses the answer after the call timeout, too late to
            // renew.
            let rest = is.lease - is.heartbeat_interval;
            let limit = format!("at most {}, minus {}", self.describe("lease"), self.describe("heartbeat_interval"));
            self.refuse("call_timeout", limit, format!("`call_timeout = {}` or less", rest.quoted()));
        }
        if is.call_timeout > is.call_deadline {
            let write = format!("`call_deadline = {}` or more", is.call_timeout.quoted());
            self.refuse("call_deadline", format!("at least {}", self.describe("call_timeout")), write);
        }
    }
}

impl Limits<'_, TopicSettings> {
    /// Stores count milliseconds.
    fn whole_milliseconds(&mut self) {
        let lookahead = self.resolved.settings.lookahead;
        let whole = floor_millis(lookahead);
        if whole != lookahead {
            self.refuse("lookahead", "whole milliseconds".into(), format!("`lookahead = {}`", whole.quoted()));
        }
    }

    /// What is kept after the end of a job is what was kept before.
    fn histories(&mut self) {
        let is = &self.resolved.settings;
        if !is.history_retention.is_zero() && is.history_max.is_none() {
            let write = "`history_max = 20` beside it".into();
            self.refuse("history_retention", "0s where `history_max` is not set".into(), write);
        }
    }

    /// A job that is acked on claim holds no slot while it runs.
    fn slots(&mut self) {
        let is = &self.resolved.settings;
        for (key, limit) in
            [("cluster_concurrency", is.cluster_concurrency), ("group_concurrency", is.group_concurrency)]
        {
            if limit.is_some() && is.ack == AckMode::OnClaim {
                let write = format!("`ack = {}`, or take `{key}` away", AckMode::OnReturn.quoted());
                self.refuse(key, "absent where `ack` is on_claim".into(), write);
            }
        }
        if is.group_burst > 0 && is.group_concurrency.is_none_or(|jobs| jobs == 1) {
            let write = "`group_concurrency = 2` or more, or take `group_burst` away".into();
            self.refuse("group_burst", "0 where `group_concurrency` is 1 or absent".into(), write);
        }
    }

    /// A policy that is no text was not checked when it was read.
    fn retries(&mut self) {
        if self.resolved.settings.retry.check().is_err() {
            let limit = format!(
                "a policy whose delays are at most {}, and whose `max` is no shorter than its first delay",
                show_duration(MAX_DELAY)
            );
            self.refuse("retry", limit, "other delays".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::RetryPolicy;

    /// Settings, and every problem with them, one a line.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str);

    fn text_of(problems: &[SettingProblem]) -> String {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_problems_of_a_node_name_setting_value_limit_and_fix() {
        let cases: [Case<'_>; 12] = [
            (&[], ""),
            (&[("lease", "15s"), ("heartbeat_interval", "5s")], ""),
            (&[("durability", "wait(1, 1s)")], ""),
            (&[("durability", "interval:50ms")], ""),
            (
                &[("lease", "10m"), ("max_payload", "0"), ("shutdown_grace", "2h")],
                "`lease` is 10m (DQ_LEASE), but it must be between 100ms and 5m: write `lease = \"5m\"` or less\n\
                 `shutdown_grace` is 2h (DQ_SHUTDOWN_GRACE), but it must be between 0s and 1h: write `shutdown_grace = \"1h\"` or less\n\
                 `max_payload` is 0 (DQ_MAX_PAYLOAD), but it must be between 1 and 16777216: write `max_payload = 1` or more",
            ),
            (
                &[("lease", "10s"), ("heartbeat_interval", "5s")],
                "`heartbeat_interval` is 5s (DQ_HEARTBEAT_INTERVAL), but it must be at most a third of `lease`, which is 10s (DQ_LEASE): \
                 write `heartbeat_interval = \"3s 333ms\"` or less, or a longer `lease`",
            ),
            (
                &[("lease", "3s"), ("heartbeat_interval", "1s"), ("call_timeout", "2001ms")],
                "`call_timeout` is 2s 1ms (DQ_CALL_TIMEOUT), but it must be at most `lease`, which is 3s (DQ_LEASE), minus \
                 `heartbeat_interval`, which is 1s (DQ_HEARTBEAT_INTERVAL): write `call_timeout = \"2s\"` or less",
            ),
            (
                &[("call_deadline", "1s"), ("call_timeout", "2s")],
                "`call_deadline` is 1s (DQ_CALL_DEADLINE), but it must be at least `call_timeout`, which is 2s (DQ_CALL_TIMEOUT): \
                 write `call_deadline = \"2s\"` or more",
            ),
            (
                &[("durability", "wait(0, 1s)")],
                "`durability` is wait(0, 1s) (DQ_DURABILITY), but it must be a wait for 1 to 100 replicas: write `durability = \"wait(1, 1s)\"`",
            ),
            (
                &[("durability", "wait(1, 2s)")],
                "`durability` is wait(1, 2s) (DQ_DURABILITY), but it must be a wait of between 1ms and half of `call_timeout`, which is 2s \
                 (default): write `durability = \"wait(1, 1s)\"`",
            ),
            (
                &[("durability", "wait(1, 0s)")],
                "`durability` is wait(1, 0s) (DQ_DURABILITY), but it must be a wait of between 1ms and half of `call_timeout`, which is 2s \
                 (default): write `durability = \"wait(1, 1ms)\"`",
            ),
            (
                &[("durability", "interval:11s")],
                "`durability` is interval:11s (DQ_DURABILITY), but it must be an interval between 1ms and 10s: write \
                 `durability = \"interval:10s\"`",
            ),
        ];
        for (settings, problems) in cases {
            assert_eq!(text_of(&check_node(&Resolved::of_variables(settings))), problems, "{settings:?}");
        }
    }

    #[test]
    fn the_problems_of_a_topic_name_setting_value_limit_and_fix() {
        let cases: [Case<'_>; 15] = [
            (&[], ""),
            (&[("lookahead", "50ms")], ""),
            (&[("history_max", "100"), ("history_retention", "30d")], ""),
            (&[("history_max", "0")], ""),
            (&[("batch_size", "1000"), ("batch_bytes", "16777216")], ""),
            (&[("cluster_concurrency", "5")], ""),
            (&[("group_concurrency", "2"), ("group_burst", "3")], ""),
            (
                &[("concurrency", "0"), ("dead_max", "0"), ("park_timeout", "4000d")],
                "`concurrency` of topic `t` is 0 (DQ_CONCURRENCY), but it must be between 1 and 100000: write `concurrency = 1` or more\n\
                 `park_timeout` of topic `t` is 4000d (DQ_PARK_TIMEOUT), but it must be between 1ms and 3650d: write `park_timeout = \"3650d\"` or less\n\
                 `dead_max` of topic `t` is 0 (DQ_DEAD_MAX), but it must be between 1 and 10000000: write `dead_max = 1` or more",
            ),
            (
                &[("lookahead", "51ms")],
                "`lookahead` of topic `t` is 51ms (DQ_LOOKAHEAD), but it must be between 0s and 50ms: write `lookahead = \"50ms\"` or less",
            ),
            (
                &[("lookahead", "1500us")],
                "`lookahead` of topic `t` is 1ms 500us (DQ_LOOKAHEAD), but it must be whole milliseconds: write `lookahead = \"1ms\"`",
            ),
            (
                &[("history_max", "101"), ("history_retention", "31d")],
                "`history_max` of topic `t` is 101 (DQ_HISTORY_MAX), but it must be between 0 and 100: write `history_max = 100` or less\n\
                 `history_retention` of topic `t` is 31d (DQ_HISTORY_RETENTION), but it must be between 0s and 30d: write `history_retention = \"30d\"` or less",
            ),
            (
                &[("history_retention", "1d")],
                "`history_retention` of topic `t` is 1d (DQ_HISTORY_RETENTION), but it must be 0s where `history_max` is not set: write `history_max = 20` beside it",
            ),
            (
                &[("batch_size", "1001"), ("batch_bytes", "0")],
                "`batch_size` of topic `t` is 1001 (DQ_BATCH_SIZE), but it must be between 1 and 1000: write `batch_size = 1000` or less\n\
                 `batch_bytes` of topic `t` is 0 (DQ_BATCH_BYTES), but it must be between 1 and 16777216: write `batch_bytes = 1` or more",
            ),
            (
                &[("cluster_concurrency", "5"), ("ack", "on_claim")],
                "`cluster_concurrency` of topic `t` is 5 (DQ_CLUSTER_CONCURRENCY), but it must be absent where `ack` is on_claim: \
                 write `ack = \"on_return\"`, or take `cluster_concurrency` away",
            ),
            (
                &[("group_concurrency", "1"), ("group_burst", "3")],
                "`group_burst` of topic `t` is 3 (DQ_GROUP_BURST), but it must be 0 where `group_concurrency` is 1 or absent: \
                 write `group_concurrency = 2` or more, or take `group_burst` away",
            ),
        ];
        for (settings, problems) in cases {
            assert_eq!(text_of(&check_topic("t", &Resolved::of_variables(settings))), problems, "{settings:?}");
        }
    }

    #[test]
    fn a_batch_is_not_acked_on_claim() {
        let resolved = |text| Resolved::of_variables(&[("ack", text)]);
        assert_eq!(check_batches("t", &resolved("on_return")), None);
        assert_eq!(
            check_batches("t", &resolved("on_claim")).map(|problem| problem.to_string()).as_deref(),
            Some(
                "`ack` of topic `t` is on_claim (DQ_ACK), but it must be on_return, because the listener takes batches: \
                 write `ack = \"on_return\"`"
            )
        );
    }

    #[test]
    fn a_policy_that_is_no_text_has_no_delay_over_ten_years_and_no_maximum_below_the_first_one() {
        let problems = |retry: RetryPolicy| {
            let mut resolved = Resolved::from_changes(&[]);
            resolved.settings = TopicSettings { retry, ..TopicSettings::default() };
            text_of(&check_topic("t", &resolved))
        };
        let fixed = |days: u32| RetryPolicy::Fixed { delay: DAY * days, times: 1 };
        let exponential = |first: u32, longest: u32, jitter| {
            let (first, longest) = (DAY * first, DAY * longest);
            RetryPolicy::Exponential { first, times: 1, factor: 3, longest, jitter }
        };
        for good in [fixed(3650), exponential(3600, 3600, 1)] {
            assert_eq!(problems(good), "");
        }
        for bad in [fixed(3651), exponential(3600, 3600, 2), exponential(2, 1, 0)] {
            let found = problems(bad);
            assert!(found.contains("at most 3650d, and whose `max` is no shorter than its first delay"), "{found}");
        }
    }
}
