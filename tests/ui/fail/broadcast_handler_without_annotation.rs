use dq::prelude::*;

struct DropCache;

impl BroadcastListener for DropCache {
    type Message = String;

    async fn on_message(&self, expired: Broadcast<String>) -> Result<(), JobError> {
        let _ = expired.message;
        Ok(())
    }
}

fn main() {}
