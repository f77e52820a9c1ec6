//! A parameter is dq's channel by its type: another type of that name is injected.

use dq::listener::{Declared, Injector, Registration};
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

mod tonic {
    pub mod transport {
        #[derive(Debug, Clone)]
        pub struct Channel(pub &'static str);
    }
}

#[delay_listener(register = false)]
async fn calls(_job: Job<CloseOrder>, bank: tonic::transport::Channel) -> Result<(), JobError> {
    assert_eq!(bank.0, "https://bank");
    Ok(())
}

#[delay_listener(register = false)]
async fn borrows(_job: Job<CloseOrder>, bank: &tonic::transport::Channel) -> Result<(), JobError> {
    assert_eq!(bank.0, "https://bank");
    Ok(())
}

#[delay_listener(register = false)]
async fn both(
    bank: tonic::transport::Channel,
    job: Job<CloseOrder>,
    orders: &u8,
    channel: Channel,
    #[cfg(all())] other: tonic::transport::Channel,
    #[cfg(any())] missing: tonic::transport::Channel,
) -> Result<Decided, JobError> {
    let _ = (bank, job.order_id, orders, other);
    Ok(channel.rejoin())
}

#[delay_listener(register = false)]
async fn borrows_and_decides(
    _job: Job<CloseOrder>,
    bank: &tonic::transport::Channel,
    channel: Channel,
) -> Result<Decided, JobError> {
    assert_eq!(bank.0, "https://bank");
    Ok(channel.ack())
}

mod imported {
    use super::CloseOrder;
    use super::tonic::transport::Channel;
    use dq::{Channel as DqChannel, Decided, Job, JobError, delay_listener};

    #[delay_listener(register = false)]
    pub(crate) async fn by_its_name(_job: Job<CloseOrder>, bank: Channel) -> Result<(), JobError> {
        assert_eq!(bank.0, "https://bank");
        Ok(())
    }

    #[delay_listener(register = false)]
    pub(crate) async fn renamed(
        _job: Job<CloseOrder>,
        decide: DqChannel,
        bank: Channel,
    ) -> Result<Decided, std::fmt::Error> {
        let _ = bank;
        Ok(decide.ack())
    }
}

#[delay_listener(register = false)]
struct OrderTimeout {
    bank: tonic::transport::Channel,
}

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        assert_eq!(self.bank.0, "https://bank");
        Ok(channel.park())
    }
}

fn names<L: Declared>() -> Vec<(&'static str, &'static str)> {
    L::dependencies().iter().map(|needs| (needs.field, needs.written)).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(names::<calls>(), [("bank", "tonic::transport::Channel")]);
    assert_eq!(names::<imported::by_its_name>(), [("bank", "Channel")]);
    let injected = [("bank", "tonic::transport::Channel"), ("orders", "u8"), ("other", "tonic::transport::Channel")];
    assert_eq!(names::<both>(), injected);
    assert_eq!(names::<imported::renamed>(), [("bank", "Channel")]);
    assert_eq!(Registration::delay::<borrows>().name, "borrows");
    assert_eq!(names::<borrows_and_decides>(), [("bank", "tonic::transport::Channel")]);

    let mut injector = Injector::default();
    assert!(calls::inject(&injector).is_err());
    injector.provide(tonic::transport::Channel("https://bank"), None);
    injector.provide(7_u8, None);
    let order = || dq::testing::job(CloseOrder { order_id: 7 });
    let calls = calls::inject(&injector).unwrap().on_due(order(), dq::testing::channel()).await.unwrap();
    assert_eq!(calls.decision(), &Decision::Ack);
    let both = both::inject(&injector).unwrap().on_due(order(), dq::testing::channel()).await.unwrap();
    assert_eq!(both.decision(), &Decision::Rejoin);
    let renamed = imported::renamed::inject(&injector).unwrap();
    assert_eq!(renamed.on_due(order(), dq::testing::channel()).await.unwrap().decision(), &Decision::Ack);
}
