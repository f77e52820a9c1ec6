//! Functions, constants and statics whose names generated code might use for its own locals.

#![allow(non_upper_case_globals, non_camel_case_types, dead_code)]
#![deny(unused_variables)]

use dq::listener::{Declared, Injector, Registration};
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", id = "{order}")]
struct CloseOrder {
    order: u64,
}

mod functions {
    use super::*;

    #[delay_listener(register = false, on_exhausted = "cause")]
    pub(crate) async fn job(job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let _ = job.order;
        Ok(channel.ack())
    }

    #[delay_listener(register = false, on_exhausted = super::ends::channel)]
    pub(crate) async fn channel(_job: Job<CloseOrder>, f: &u8, injector: u8) -> Result<(), JobError> {
        assert_eq!(*f, injector);
        Ok(())
    }

    pub(crate) async fn cause(_job: Job<CloseOrder>, _cause: &Failure) {}
}

mod ends {
    use super::*;

    pub(crate) async fn job(_job: Job<CloseOrder>, _cause: &Failure) {}
    pub(crate) async fn channel(_job: Job<CloseOrder>, _cause: &Failure) {}

    #[delay_listener(register = false, on_exhausted = "job")]
    pub(crate) async fn call(_job: Job<CloseOrder>, value_1: u8, call: Channel) -> Result<Decided, JobError> {
        assert_eq!(value_1, 7);
        Ok(call.ack())
    }
}

mod values {
    use super::*;

    const job: u8 = 1;
    static channel: u8 = 2;
    struct cause;
    static f: u8 = 3;
    const injector: u8 = 4;

    async fn give_up(_: Job<CloseOrder>, _: &Failure) {}

    #[delay_listener(register = false, on_exhausted = "give_up")]
    pub(crate) async fn close(_: Job<CloseOrder>, _: u8, _: Channel) -> Result<Decided, JobError> {
        Err("not today".into())
    }

    #[delay_listener(register = false)]
    pub(crate) struct OrderTimeout {
        pub(crate) injector: u8,
    }

    impl DelayListener for OrderTimeout {
        type Job = CloseOrder;

        async fn on_due(&self, _: Job<CloseOrder>, decide: Channel) -> Result<Decided, JobError> {
            Ok(decide.ack())
        }
    }

    #[broadcast_listener(channels = ["prices"], register = false)]
    pub(crate) struct OnPrices(pub(crate) u8);

    impl BroadcastListener for OnPrices {
        type Message = CloseOrder;

        async fn on_message(&self, _: Broadcast<CloseOrder>) -> Result<(), JobError> {
            Ok(())
        }
    }
}

#[delay_listener(register = false)]
struct Many<const injector: usize> {
    #[inject(default)]
    seen: u64,
}

impl<const injector: usize> DelayListener for Many<injector> {
    type Job = CloseOrder;

    async fn on_due(&self, _: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

fn main() {
    let mut injector = Injector::default();
    injector.provide(7_u8, None);
    assert_eq!(values::OrderTimeout::inject(&injector).ok().unwrap().injector, 7);
    assert_eq!(functions::channel::dependencies().len(), 2);
    assert_eq!(Registration::delay::<functions::job>().name, "job");
    assert_eq!(Registration::delay::<ends::call>().name, "call");
    assert_eq!(Registration::delay::<values::close>().name, "close");
    assert_eq!(Registration::broadcast::<values::OnPrices>().name, "OnPrices");
    assert_eq!(Registration::delay::<Many<3>>().name, "Many");
}
