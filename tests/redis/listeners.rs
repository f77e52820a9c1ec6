//! Topics and a broadcast channel whose listeners do nothing.

use dq::prelude::*;
use serde::{Deserialize, Serialize};

macro_rules! topics {
    ($all:ident: $($listener:ident $payload:ident $topic:literal),+ $(,)?) => {
        $(
            #[derive(Debug, Serialize, Deserialize, DelayJob)]
            #[job(topic = $topic)]
            pub struct $payload;

            #[delay_listener(register = false)]
            async fn $listener(_job: Job<$payload>) -> Result<(), JobError> {
                Ok(())
            }
        )+

        pub const TOPICS: &[&str] = &[$($topic),+];

        /// Adds a listener for each of the topics.
        pub fn $all(factory: ContextFactory) -> ContextFactory {
            factory$(.listener::<$listener>())+
        }
    };
}

pub(super) use topics;

topics!(
    ten_topics: one One "one", two Two "two", three Three "three", four Four "four", five Five "five",
    six Six "six", seven Seven "seven", eight Eight "eight", nine Nine "nine", ten Ten "ten",
);

/// Adds a job to each of the ten topics.
pub async fn add_to_all(provider: &Provider) {
    for topic in TOPICS {
        let added = provider.topic(topic).unwrap().add_many_json([serde_json::Value::Null]).await;
        added.unwrap().all().unwrap();
    }
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "prices", deliver = "broadcast")]
pub struct Prices;

#[broadcast_listener(channels = ["prices"], register = false)]
pub struct PricesListener;

impl BroadcastListener for PricesListener {
    type Message = Prices;

    async fn on_message(&self, _prices: Broadcast<Prices>) -> Result<(), JobError> {
        Ok(())
    }
}
