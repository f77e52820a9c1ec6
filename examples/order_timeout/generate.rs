//! Generates a day of the shop, always the same one for a number of orders: `order_timeout --generate 2000` wrote `orders.jsonl`.
//!
//! About 55 of 100 orders are paid and 10 are cancelled, within half of the 8 seconds that they may stay open. The others stay
//! unpaid, or are paid too late. Everything ends within half a minute.

use crate::orders::{Event, EventKind};

/// The time within which all orders are placed.
const DAY_MS: u64 = 20_000;

/// Returns the events of `orders` orders, sorted by time.
pub(crate) fn day(orders: u64) -> Vec<Event> {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut events = Vec::new();
    for order in 1..=orders {
        let placed_ms = DAY_MS * (order - 1) / orders.max(1) + random.below(20);
        events.push(Event { at_ms: placed_ms, order, event: EventKind::Placed });
        let (event, after_ms) = match random.below(100) {
            0..55 => (EventKind::Paid, 200 + random.below(3_800)),
            55..65 => (EventKind::Cancelled, 200 + random.below(3_800)),
            65..75 if placed_ms < DAY_MS / 4 => (EventKind::Paid, 14_000 + random.below(4_000)),
            _ => continue,
        };
        events.push(Event { at_ms: placed_ms + after_ms, order, event });
    }
    events.sort_by_key(|event| (event.at_ms, event.order));
    events
}

/// xorshift64*: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % most
    }
}
