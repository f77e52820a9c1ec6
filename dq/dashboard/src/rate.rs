//! Bounds on how often something happens, for each address.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most addresses that have a bucket of their own. Addresses beyond them share one.
const MAX_BUCKETS: usize = 4_096;

/// How often full buckets are removed, at most.
const SWEEP: Duration = Duration::from_secs(1);

/// The network of an address as one visitor has it: a whole /64 of IPv6.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

/// A bucket of permits for each key, each of which refills steadily.
#[derive(Debug)]
pub(crate) struct Rates<K> {
    a_second: f64,
    most: f64,
    state: Mutex<RateState<K>>,
}

#[derive(Debug)]
struct RateState<K> {
    /// What is left, and when that was. A key without a bucket has a full one.
    buckets: HashMap<Option<K>, (f64, Instant)>,
    swept: Option<Instant>,
}

impl<K: Hash + Eq> Rates<K> {
    pub(crate) fn new(a_second: f64, most: u32) -> Self {
        let state = RateState { buckets: HashMap::new(), swept: None };
        Self { a_second, most: most.into(), state: Mutex::new(state) }
    }

    pub(crate) fn per_minute(most: u32) -> Self {
        Self::new(f64::from(most) / 60.0, most)
    }

    /// Takes a permit, if there is one.
    pub(crate) fn take(&self, key: K) -> bool {
        self.take_at(key, Instant::now())
    }

    fn take_at(&self, key: K, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let left = |(left, then): (f64, Instant)| {
            (left + now.saturating_duration_since(then).as_secs_f64() * self.a_second).min(self.most)
        };
        let mut key = Some(key);
        if !state.buckets.contains_key(&key) && state.buckets.len() >= MAX_BUCKETS {
            if state.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= SWEEP) {
                state.swept = Some(now);
                state.buckets.retain(|_, bucket| left(*bucket) < self.most);
            }
            if state.buckets.len() >= MAX_BUCKETS {
                key = None;
            }
        }
        let bucket = state.buckets.entry(key).or_insert((self.most, now));
        let there = left(*bucket);
        let is_there = there >= 1.0;
        *bucket = (if is_there { there - 1.0 } else { there }, now);
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_used_up_and_refills() {
        let (rate, now) = (Rates::new(2.0, 3), Instant::now());
        assert_eq!([0; 4].map(|_| rate.take_at((), now)), [true, true, true, false]);
        assert_eq!([0; 3].map(|_| rate.take_at((), now + Duration::from_secs(1))), [true, true, false]);
        assert_eq!([0; 4].map(|_| rate.take_at((), now + Duration::from_secs(60))), [true, true, true, false]);
    }

    #[test]
    fn buckets_are_bounded_and_those_beyond_share_one_until_others_are_full() {
        let (rate, now) = (Rates::new(1.0, 1), Instant::now());
        assert!((0..MAX_BUCKETS).all(|n| rate.take_at(n, now)));
        assert_eq!([1, 2].map(|n| rate.take_at(MAX_BUCKETS + n, now)), [true, false], "they share one");
        assert_eq!(rate.state.lock().unwrap().buckets.len(), MAX_BUCKETS + 1);
        let later = now + Duration::from_secs(2);
        assert_eq!([1, 2].map(|n| rate.take_at(MAX_BUCKETS + n, later)), [true, true]);
        assert_eq!(rate.state.lock().unwrap().buckets.len(), 2, "what was full is gone");
    }

    #[test]
    fn one_visitor_has_a_whole_network_of_ipv6() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:10.0.0.7"), of("10.0.0.7"));
        assert_ne!(of("10.0.0.7"), of("10.0.0.8"));
    }
}
