//! A generic listener that is named by hand; its topic is checked where it is.

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::sync::Arc;

use dq::listener::{Declared, Injector, Registration};

trait Notify: Send + Sync + 'static {}

struct Mail;

impl Notify for Mail {}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener(topic = "order-timeout", register = false)]
struct OrderTimeout<T: Notify, U, const N: usize>
where
    U: Send + Sync + 'static,
{
    notify: Arc<T>,
    sizes: [u8; N],
    #[inject(default)]
    marker: PhantomData<U>,
}

impl<T: Notify, U: Send + Sync + 'static, const N: usize> DelayListener for OrderTimeout<T, U, N> {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let _ = (&self.notify, &self.sizes, &self.marker);
        Ok(channel.ack())
    }
}

#[broadcast_listener(channels = ["cache-expired"], register = false)]
struct DropCache<T> {
    cache: T,
}

impl<T: Clone + Send + Sync + 'static> BroadcastListener for DropCache<T> {
    type Message = String;

    async fn on_message(&self, _expired: Broadcast<String>) -> Result<(), JobError> {
        let _ = self.cache.clone();
        Ok(())
    }
}

fn main() {
    const DELAY: Registration = Registration::delay::<OrderTimeout<Mail, u8, 2>>();
    assert_eq!(DELAY.name, "OrderTimeout");
    assert_eq!(Registration::broadcast::<DropCache<u8>>().name, "DropCache");
    assert!(Registration::all().is_empty());
    let mut injector = Injector::default();
    injector.provide(Arc::new(Mail), None);
    injector.provide([1_u8, 2], None);
    assert!(OrderTimeout::<Mail, u8, 2>::inject(&injector).is_ok());
    assert!(OrderTimeout::<Mail, u8, 3>::inject(&injector).is_err());
}
