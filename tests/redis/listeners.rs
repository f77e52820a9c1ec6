//! Topics and a broadcast channel whose listeners do nothing.

use dq::prelude::*;
use dq_tests::topics;
use serde::{Deserialize, Serialize};

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
