//! Makes a day of the shop, the same one for the same number of orders: `order_timeout --generate 2000` made `orders.jsonl`.
//!
//! Of a hundred orders about 55 are paid and 10 are cancelled within half of the 8 seconds they may stay open; the others
//! are not, and a few of those are paid when it is too late. Everything is over within half a minute.

use crate::orders::{Event, Happening};

/// Orders are placed in this time.
const DAY_MS: u64 = 20_000;

/// The events of `orders` orders, in the order of their time.
pub(crate) fn day(orders: u64) -> Vec<Event> {
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let mut events = Vec::new();
    for order in 1..=orders {
        let placed_ms = DAY_MS * (order - 1) / orders.max(1) + dice.below(20);
        events.push(Event { at_ms: placed_ms, order, event: Happening::Placed });
        let (event, after_ms) = match dice.below(100) {
            0..55 => (Happening::Paid, 200 + dice.below(3_800)),
            55..65 => (Happening::Cancelled, 200 + dice.below(3_800)),
            65..75 if placed_ms < DAY_MS / 4 => (Happening::Paid, 14_000 + dice.below(4_000)),
            _ => continue,
        };
        events.push(Event { at_ms: placed_ms + after_ms, order, event });
    }
    events.sort_by_key(|event| (event.at_ms, event.order));
    events
}

/// xorshift64*: enough for a file, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % most
    }
}
