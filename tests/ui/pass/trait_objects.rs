//! A dependency behind a trait is found by exactly its type.

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use dq::listener::{Declared, Injector};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

trait Notify: Send + Sync {}

struct Mail;

impl Notify for Mail {}

#[delay_listener]
struct OrderTimeout {
    notify: Arc<dyn Notify>,
    check: fn(u8) -> bool,
    pair: (u8, Option<Arc<dyn Notify + Sync>>),
}

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

fn main() {
    let mut injector = Injector::default();
    injector.provide(Arc::new(Mail), None);
    assert!(OrderTimeout::inject(&injector).is_err());
    let notify: Arc<dyn Notify> = Arc::new(Mail);
    injector.provide(notify, None);
    injector.provide::<fn(u8) -> bool>(|number| number == 7, None);
    injector.provide::<(u8, Option<Arc<dyn Notify + Sync>>)>((7, None), None);
    let listener = OrderTimeout::inject(&injector).ok().unwrap();
    let _ = &listener.notify;
    assert!((listener.check)(listener.pair.0) && listener.pair.1.is_none());
    let written: Vec<_> = OrderTimeout::dependencies().iter().map(|needs| needs.written).collect();
    assert_eq!(written, ["Arc<dyn Notify>", "fn(u8) -> bool", "(u8, Option<Arc<dyn Notify + Sync>>)"]);
}
