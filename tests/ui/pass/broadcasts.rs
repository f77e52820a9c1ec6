//! Listeners of one and of several broadcast channels.

use std::collections::BTreeMap;

use dq::listener::{ListenerKind, Registration};
use dq::prelude::*;

#[broadcast_listener(channels = ["cache-expired", "prices:eu"])]
struct DropCache {
    cache: u8,
}

impl BroadcastListener for DropCache {
    type Message = BTreeMap<String, u64>;

    async fn on_message(&self, expired: Broadcast<BTreeMap<String, u64>>) -> Result<(), JobError> {
        let _ = (expired.channel, expired.id, expired.message.len(), self.cache);
        Ok(())
    }
}

fn main() {
    let all = Registration::all();
    assert_eq!(all[0].kind, ListenerKind::Broadcast { channels: &["cache-expired", "prices:eu"] });
    assert_eq!((all.len(), (all[0].dependencies)()[0].field), (1, "cache"));
}
