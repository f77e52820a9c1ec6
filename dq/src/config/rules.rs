//! The limits of settings: ranges, and rules between settings. A check reports every broken rule, not only the first.

use std::time::Duration;

use dq_grammar::{DAY, MINUTE, MS};

use super::layer::Resolved;
use super::problem::{Setting, SettingProblem};
use super::settings::{Keyed, NodeSettings, TopicSettings};
use super::value::{Value, show_duration};
use crate::listener::AckMode;
use crate::store::step::{LONGEST_LEASE, MOST_JOBS};
use crate::store::{Durability, LONGEST_HISTORY, LONGEST_HISTORY_AFTER};
use crate::time::{LONGEST_DELAY, floor_millis};

const MOST_REPLICAS: u32 = 100;

/// The longest time that `file:` may wait before it syncs what it has answered.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);

/// The table of the settings has these limits of the stores as numbers.
const _: () = assert!(
    LONGEST_LEASE.as_secs() == 5 * MINUTE.as_secs()
        && LONGEST_HISTORY == 100
        && LONGEST_HISTORY_AFTER.as_secs() == 30 * DAY.as_secs()
        && MOST_JOBS == 1_000
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
        if !(1..=MOST_REPLICAS).contains(&replicas) {
            let write = written(replicas.clamp(1, MOST_REPLICAS), timeout.clamp(MS, half));
            self.refuse("durability", format!("a wait for 1 to {MOST_REPLICAS} replicas"), write);
        } else if timeout < MS || timeout > half {
            let limit = format!("a wait of between 1ms and half of {}", self.describe("call_timeout"));
            self.refuse("durability", limit, written(replicas, timeout.clamp(MS, half)));
        }
    }

    fn interval(&mut self, interval: Duration) {
        if !(MS..=LONGEST_INTERVAL).contains(&interval) {
            let write =
                format!("`durability = {}`", Durability::Interval(interval.clamp(MS, LONGEST_INTERVAL)).quoted());
            self.refuse("durability", "an interval between 1ms and 10s".into(), write);
        }
    }

    /// The rules between the intervals of a node, each of which is within its range.
    fn intervals(&mut self) {
        let is = &self.resolved.settings;
        let third = floor_millis(is.lease / 3);
        if is.renewal > is.lease / 3 {
            let write = format!("`renewal = {}` or less, or a longer `lease`", third.quoted());
            self.refuse("renewal", format!("at most a third of {}", self.describe("lease")), write);
        } else if is.renewal + is.call_timeout > is.lease {
            // Otherwise one lost answer costs the lease: the node misses the answer after the call timeout, too late to
            // renew.
            let rest = is.lease - is.renewal;
            let limit = format!("at most {}, minus {}", self.describe("lease"), self.describe("renewal"));
            self.refuse("call_timeout", limit, format!("`call_timeout = {}` or less", rest.quoted()));
        }
        if is.call_timeout > is.call_total {
            let write = format!("`call_total = {}` or more", is.call_timeout.quoted());
            self.refuse("call_total", format!("at least {}", self.describe("call_timeout")), write);
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
        if !is.history_after.is_zero() && is.history.is_none() {
            let write = "`history = 20` beside it".into();
            self.refuse("history_after", "0s where `history` is not set".into(), write);
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
                show_duration(LONGEST_DELAY)
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
            (&[("lease", "15s"), ("renewal", "5s")], ""),
            (&[("durability", "wait(1, 1s)")], ""),
            (&[("durability", "interval:50ms")], ""),
            (
                &[("lease", "10m"), ("payload_limit", "0"), ("grace", "2h")],
                "`lease` is 10m (DQ_LEASE), but it must be between 100ms and 5m: write `lease = \"5m\"` or less\n\
                 `grace` is 2h (DQ_GRACE), but it must be between 0s and 1h: write `grace = \"1h\"` or less\n\
                 `payload_limit` is 0 (DQ_PAYLOAD_LIMIT), but it must be between 1 and 16777216: write `payload_limit = 1` or more",
            ),
            (
                &[("lease", "10s"), ("renewal", "5s")],
                "`renewal` is 5s (DQ_RENEWAL), but it must be at most a third of `lease`, which is 10s (DQ_LEASE): \
                 write `renewal = \"3s 333ms\"` or less, or a longer `lease`",
            ),
            (
                &[("lease", "3s"), ("renewal", "1s"), ("call_timeout", "2001ms")],
                "`call_timeout` is 2s 1ms (DQ_CALL_TIMEOUT), but it must be at most `lease`, which is 3s (DQ_LEASE), minus \
                 `renewal`, which is 1s (DQ_RENEWAL): write `call_timeout = \"2s\"` or less",
            ),
            (
                &[("call_total", "1s"), ("call_timeout", "2s")],
                "`call_total` is 1s (DQ_CALL_TOTAL), but it must be at least `call_timeout`, which is 2s (DQ_CALL_TIMEOUT): \
                 write `call_total = \"2s\"` or more",
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
            (&[("history", "100"), ("history_after", "30d")], ""),
            (&[("history", "0")], ""),
            (&[("batch", "1000"), ("batch_bytes", "16777216")], ""),
            (&[("cluster_concurrency", "5")], ""),
            (&[("group_concurrency", "2"), ("group_burst", "3")], ""),
            (
                &[("concurrency", "0"), ("dead_most", "0"), ("unacked_age", "4000d")],
                "`concurrency` of topic `t` is 0 (DQ_CONCURRENCY), but it must be between 1 and 100000: write `concurrency = 1` or more\n\
                 `unacked_age` of topic `t` is 4000d (DQ_UNACKED_AGE), but it must be between 1ms and 3650d: write `unacked_age = \"3650d\"` or less\n\
                 `dead_most` of topic `t` is 0 (DQ_DEAD_MOST), but it must be between 1 and 10000000: write `dead_most = 1` or more",
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
                &[("history", "101"), ("history_after", "31d")],
                "`history` of topic `t` is 101 (DQ_HISTORY), but it must be between 0 and 100: write `history = 100` or less\n\
                 `history_after` of topic `t` is 31d (DQ_HISTORY_AFTER), but it must be between 0s and 30d: write `history_after = \"30d\"` or less",
            ),
            (
                &[("history_after", "1d")],
                "`history_after` of topic `t` is 1d (DQ_HISTORY_AFTER), but it must be 0s where `history` is not set: write `history = 20` beside it",
            ),
            (
                &[("batch", "1001"), ("batch_bytes", "0")],
                "`batch` of topic `t` is 1001 (DQ_BATCH), but it must be between 1 and 1000: write `batch = 1000` or less\n\
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
