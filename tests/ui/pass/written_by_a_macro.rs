//! Attributes whose values come out of a macro of the user's.

use dq::listener::Registration;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

macro_rules! topic {
    ($payload:ident, $listener:ident, $topic:literal, $timeout:expr, $dependency:ty) => {
        #[derive(Serialize, Deserialize, DelayJob)]
        #[job(topic = $topic)]
        struct $payload;

        #[delay_listener(topic = $topic, timeout = $timeout)]
        async fn $listener(_job: Job<$payload>, dependency: &$dependency) -> Result<(), JobError> {
            let _ = dependency;
            Ok(())
        }
    };
}

topic!(Close, close, "close", "5s", u8);
topic!(Remind, remind, "remind", "6s", Vec<u8>);

fn main() {
    let all = Registration::all();
    assert_eq!(all.len(), 2);
    assert_eq!((all[1].dependencies)()[0].written, "Vec<u8>");
}
