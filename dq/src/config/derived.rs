//! Intervals that nobody set follow those that were set.
//!
//! The intervals of a node limit each other (`rules` has the limits). A setting that nobody set takes the value nearest to its
//! default that fits, so no single setting keeps a node from starting. What was set is never changed: where two such settings
//! contradict each other, the check reports it.

use dq_grammar::MS;

use super::layer::Resolved;
use super::settings::NodeSettings;
use crate::store::Durability;
use crate::store::step::MAX_LEASE;
use crate::time::floor_millis;

impl Resolved<NodeSettings> {
    /// Fits the intervals that nobody set to the others.
    pub(super) fn fitted(mut self) -> Self {
        self.fit_call_timeout_to_replicas();
        self.fit_lease();
        self.fit_renewal();
        self.fit_call_timeout();
        self.fit_call_total();
        self
    }

    /// Replicas have at most half of the time of a call.
    fn fit_call_timeout_to_replicas(&mut self) {
        let Durability::Wait { timeout, .. } = self.settings.durability else { return };
        let least = timeout.saturating_mul(2);
        if self.is_default("call_timeout") && self.settings.call_timeout < least {
            self.settings.call_timeout = least;
            self.derive("call_timeout", &["durability"]);
        }
    }

    /// A lease has room for three renewals, and for a renewal and a call.
    fn fit_lease(&mut self) {
        if !self.is_default("lease") {
            return;
        }
        let is = &self.settings;
        let (of_renewals, of_a_call) =
            (is.heartbeat_interval.saturating_mul(3), is.heartbeat_interval.saturating_add(is.call_timeout));
        let least = of_renewals.max(of_a_call).min(MAX_LEASE);
        if is.lease < least {
            self.settings.lease = least;
            let keys: &[_] =
                if of_renewals < of_a_call { &["heartbeat_interval", "call_timeout"] } else { &["heartbeat_interval"] };
            self.derive("lease", keys);
        }
    }

    fn fit_renewal(&mut self) {
        if !self.is_default("heartbeat_interval") {
            return;
        }
        let is = &self.settings;
        let (third, rest) = (floor_millis(is.lease / 3), is.lease.saturating_sub(is.call_timeout));
        // A call timeout that nobody set makes room itself.
        let most = if self.is_default("call_timeout") || third <= rest { third } else { floor_millis(rest).max(MS) };
        if is.heartbeat_interval > most {
            self.settings.heartbeat_interval = most;
            self.derive("heartbeat_interval", if most == third { &["lease"] } else { &["lease", "call_timeout"] });
        }
    }

    fn fit_call_timeout(&mut self) {
        if !self.is_free("call_timeout") {
            return;
        }
        let is = &self.settings;
        let of_lease = floor_millis(is.lease.saturating_sub(is.heartbeat_interval)).max(MS);
        let most = if self.is_default("call_deadline") { of_lease } else { of_lease.min(is.call_deadline) };
        if is.call_timeout > most {
            self.settings.call_timeout = most;
            self.derive(
                "call_timeout",
                if most == of_lease { &["lease", "heartbeat_interval"] } else { &["call_deadline"] },
            );
        }
    }

    fn fit_call_total(&mut self) {
        if self.is_default("call_deadline") && self.settings.call_deadline < self.settings.call_timeout {
            self.settings.call_deadline = self.settings.call_timeout;
            self.derive("call_deadline", &["call_timeout"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::layer::SettingChange;
    use super::super::listing::EffectiveSettings;
    use super::super::rules::{check_node, check_topic};
    use super::super::settings::{Keyed, TopicSettings};
    use super::super::source::Source;
    use super::super::value::Written;
    use super::*;

    impl<S: Keyed> Resolved<S> {
        /// The settings that these variables change.
        pub(crate) fn of_variables(pairs: &[(&str, &str)]) -> Self {
            let change = |&(key, text): &(&str, &str)| {
                let source = Source::Variable(format!("DQ_{}", key.to_uppercase()));
                SettingChange::read(S::key(key).unwrap(), None, Written::Text(text), source).unwrap()
            };
            Self::from_changes(&pairs.iter().map(change).collect::<Vec<_>>())
        }
    }

    fn node(pairs: &[(&str, &str)]) -> Resolved<NodeSettings> {
        Resolved::of_variables(pairs).fitted()
    }

    fn problems(pairs: &[(&str, &str)]) -> Vec<String> {
        check_node(&node(pairs)).iter().map(ToString::to_string).collect()
    }

    fn listed(pairs: &[(&str, &str)], key: &str) -> String {
        let listing = EffectiveSettings::of(&node(pairs));
        let listed = listing.get(key).unwrap();
        format!("{} ({})", listed.value, listed.source)
    }

    #[test]
    fn what_fits_keeps_its_default() {
        assert_eq!(node(&[]).settings, NodeSettings::default());
        assert_eq!(EffectiveSettings::of(&node(&[])).all().len(), NodeSettings::KEYS.len());
        for key in NodeSettings::KEYS {
            assert_eq!(node(&[]).source(key.name), Source::Default, "{}", key.name);
        }
        assert_eq!(listed(&[("lease", "1m")], "heartbeat_interval"), "5s (default)");
        assert_eq!(listed(&[("lease", "1m")], "call_timeout"), "2s (default)");
    }

    #[test]
    fn a_short_lease_alone_shortens_renewal_and_call_timeout() {
        let lease = [("lease", "2s")];
        assert_eq!(problems(&lease), [""; 0]);
        assert_eq!(listed(&lease, "heartbeat_interval"), "666ms (follows `lease`)");
        assert_eq!(listed(&lease, "call_timeout"), "1s 334ms (follows `lease` and `heartbeat_interval`)");
        assert_eq!(listed(&lease, "call_deadline"), "10s (default)");
    }

    #[test]
    fn a_long_wait_for_replicas_alone_lengthens_what_must_hold_it() {
        let wait = [("durability", "wait(1, 30s)")];
        assert_eq!(problems(&wait), [""; 0]);
        assert_eq!(listed(&wait, "call_timeout"), "1m (follows `durability`)");
        assert_eq!(listed(&wait, "lease"), "1m 5s (follows `heartbeat_interval` and `call_timeout`)");
        assert_eq!(listed(&wait, "call_deadline"), "1m (follows `call_timeout`)");
    }

    #[test]
    fn a_long_call_timeout_beside_a_lease_shortens_the_renewal() {
        let both = [("lease", "3s"), ("call_timeout", "2900ms")];
        assert_eq!(problems(&both), [""; 0]);
        assert_eq!(listed(&both, "heartbeat_interval"), "100ms (follows `lease` and `call_timeout`)");
    }

    #[test]
    fn what_was_set_is_never_changed_and_contradictions_are_reported() {
        for pairs in [
            [("lease", "3s"), ("heartbeat_interval", "2s")],
            [("lease", "3s"), ("call_timeout", "3s")],
            [("call_deadline", "1s"), ("call_timeout", "2s")],
            [("call_deadline", "1s"), ("durability", "wait(1, 1s)")],
            [("lease", "2s"), ("durability", "wait(1, 1s)")],
        ] {
            let settings = node(&pairs);
            for (key, text) in pairs {
                assert_eq!((NodeSettings::key(key).unwrap().show)(&settings.settings), text, "{pairs:?}");
            }
            assert_eq!(problems(&pairs).len(), 1, "{pairs:?}: {:?}", problems(&pairs));
        }
    }

    /// Valid values of every setting of a node, as docs/guide/configuration.md has their ranges.
    fn single() -> impl Strategy<Value = (&'static str, String)> {
        let ms = |least: u64, most: u64| prop_oneof![Just(least), Just(most), least..=most, least..=least * 20 + 20];
        let time = move |key, least, most: u64| {
            ms(least, most).prop_map(move |value| (key, format!("{}ms", value.min(most)))).boxed()
        };
        let number = |key, most: u64| {
            prop_oneof![Just(1), Just(most), 1..=most].prop_map(move |value| (key, value.to_string())).boxed()
        };
        let hour = 3_600_000;
        prop_oneof![
            time("lease", 100, 300_000),
            time("heartbeat_interval", 1, 100_000),
            time("poll_interval", 10, hour),
            time("shutdown_grace", 0, hour),
            number("node_concurrency", 1_000_000),
            any::<bool>().prop_map(|flag| ("rollback_on_shutdown", flag.to_string())),
            time("call_timeout", 1, 240_000),
            time("call_deadline", 1, hour),
            (1..=100_u32, ms(1, 120_000))
                .prop_map(|(replicas, wait)| ("durability", format!("wait({replicas}, {}ms)", wait.min(120_000)))),
            ms(1, 10_000).prop_map(|interval| ("durability", format!("interval:{}ms", interval.min(10_000)))),
            time("broadcast_expires_after", 1, 3_650 * 24 * hour),
            number("max_payload", 16 * 1024 * 1024),
            number("max_in_flight", 1_000_000),
            number("max_in_flight_bytes", 1024 * 1024 * 1024),
        ]
    }

    proptest! {
        #[test]
        fn any_single_setting_with_a_valid_value_starts((key, text) in single()) {
            prop_assert_eq!(problems(&[(key, &text)]), [""; 0]);
        }

        /// The limits of a setting name other settings only where somebody set both.
        #[test]
        fn whatever_was_set_is_used_as_it_is(one in single(), two in single()) {
            let pairs = [(one.0, &*one.1), (two.0, &*two.1)];
            let (settings, written) = (node(&pairs), Resolved::<NodeSettings>::of_variables(&pairs));
            for (key, _) in pairs {
                let show = NodeSettings::key(key).unwrap().show;
                prop_assert_eq!(show(&settings.settings), show(&written.settings));
            }
        }
    }

    #[test]
    fn any_single_setting_of_a_topic_starts() {
        for (key, text) in [
            ("concurrency", "1"),
            ("concurrency", "100000"),
            ("timeout", "1ms"),
            ("timeout", "none"),
            ("timeout", "3650d"),
            ("on_timeout", "immediate"),
            ("retry", "none"),
            ("retry", "1m, 3650d"),
            ("ack", "on_claim"),
            ("max_crashes", "1"),
            ("max_crashes", "1000"),
            ("park_timeout", "1ms"),
            ("dead_retention", "1ms"),
            ("dead_max", "1"),
            ("lookahead", "50ms"),
            ("statistics", "true"),
        ] {
            let resolved = Resolved::<TopicSettings>::of_variables(&[(key, text)]);
            assert_eq!(check_topic("t", &resolved), [], "{key} = {text}");
        }
    }
}
