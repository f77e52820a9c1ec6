//! Listeners that a library offers, with lints on what is public.

#![deny(warnings, missing_docs, unreachable_pub, missing_debug_implementations)]

pub mod shop {
    //! A library.

    use dq::prelude::*;
    use serde::{Deserialize, Serialize};

    /// A payload as visible as its listener.
    #[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
    #[job(topic = "order-timeout")]
    pub struct CloseOrder {
        /// The id.
        pub order_id: u64,
    }

    /// A listener.
    #[derive(Debug)]
    #[delay_listener(register = false)]
    pub struct OrderTimeout {
        /// What it needs.
        pub orders: u8,
    }

    impl DelayListener for OrderTimeout {
        type Job = CloseOrder;

        async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
            Ok(channel.ack())
        }
    }

    /// A function.
    ///
    /// # Errors
    /// Never.
    #[delay_listener(register = false)]
    pub async fn close(job: Job<CloseOrder>, orders: &u8) -> Result<(), JobError> {
        assert_eq!(job.order_id, u64::from(*orders));
        Ok(())
    }

    /// A payload.
    #[derive(Debug, Serialize, Deserialize, DelayJob)]
    #[job(topic = "reminder")]
    pub struct Remind;

    /// A function that registers itself, and that a test elsewhere names.
    ///
    /// # Errors
    /// Never.
    #[delay_listener]
    pub async fn remind(_job: Job<Remind>) -> Result<(), JobError> {
        Ok(())
    }

    #[derive(Debug, Serialize, Deserialize, DelayJob)]
    #[job(topic = "private-payload")]
    struct Secret;

    #[delay_listener]
    async fn private_payload(_job: Job<Secret>) -> Result<(), JobError> {
        Ok(())
    }

    /// A listener of broadcasts.
    #[derive(Debug)]
    #[broadcast_listener(channels = ["cache-expired"])]
    pub struct DropCache;

    impl BroadcastListener for DropCache {
        type Message = CloseOrder;

        async fn on_message(&self, _expired: Broadcast<CloseOrder>) -> Result<(), JobError> {
            Ok(())
        }
    }
}

fn main() {
    use dq::listener::Registration;
    assert_eq!(Registration::delay::<shop::close>().name, "close");
    assert_eq!(Registration::delay::<shop::OrderTimeout>().name, "OrderTimeout");
    assert_eq!(Registration::delay::<shop::remind>().name, "remind");
    assert_eq!(Registration::all().len(), 3);
}
