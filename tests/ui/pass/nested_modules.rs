//! Private modules, functions and blocks.

mod outer {
    mod inner {
        use dq::prelude::*;
        use serde::{Deserialize, Serialize};

        #[derive(Serialize, Deserialize, DelayJob)]
        #[job(topic = "order-timeout")]
        struct CloseOrder;

        #[delay_listener]
        struct OrderTimeout;

        impl DelayListener for OrderTimeout {
            type Job = CloseOrder;

            async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
                Ok(channel.ack())
            }
        }
    }

    pub(crate) fn in_a_block() {
        use dq::prelude::*;
        use serde::{Deserialize, Serialize};

        #[derive(Serialize, Deserialize, DelayJob)]
        #[job(topic = "remind")]
        struct Remind;

        #[delay_listener]
        async fn remind(_job: Job<Remind>) -> Result<(), JobError> {
            Ok(())
        }
    }
}

fn main() {
    outer::in_a_block();
    assert_eq!(dq::listener::Registration::all().len(), 2);
}
