use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

macro_rules! on_due {
    ($listener:ident) => {
        impl DelayListener for $listener {
            type Job = CloseOrder;

            async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
                let _ = job.order_id;
                Ok(channel.ack())
            }
        }
    };
}

#[delay_listener(on_timeout = "later", ack = "on_retrun")]
struct ChoiceUnknown;
on_due!(ChoiceUnknown);

#[delay_listener(concurrency = 3 timeout = "5s")]
struct CommaMissing;
on_due!(CommaMissing);

#[delay_listener(crate = 7)]
struct CrateIsANumber;
on_due!(CrateIsANumber);

#[delay_listener(crate = "my work", register = false)]
struct CrateIsNoPath;
on_due!(CrateIsNoPath);

#[delay_listener(timeout = "11years")]
struct DurationOverTenYears;
on_due!(DurationOverTenYears);

#[delay_listener(timeout = 5s)]
struct DurationWithoutQuotes;
on_due!(DurationWithoutQuotes);

#[delay_listener(timeout = "5")]
struct DurationWithoutUnit;
on_due!(DurationWithoutUnit);

#[delay_listener(topc = "order-timeout", concurrency = "64", timeout = 5, retry = "1m, 5x", ack = "on_clam")]
struct EveryMistakeOfOneAttributeAtOnce;
on_due!(EveryMistakeOfOneAttributeAtOnce);

#[delay_listener(on_exhausted = "give_up")]
struct FinalRetryOnAStruct;
on_due!(FinalRetryOnAStruct);

#[delay_listener(register = "false")]
struct FlagInQuotes;
on_due!(FlagInQuotes);

#[delay_listener(timeout = "5s", timeout = "6s")]
struct KeyTwice;
on_due!(KeyTwice);

#[delay_listener(priority = 3)]
struct KeyUnlikeAny;
on_due!(KeyUnlikeAny);

#[delay_listener(concurrency = 0, max_crashes = -1)]
struct NumbersOutOfRange;
on_due!(NumbersOutOfRange);

#[delay_listener(retry = "exponential 10s, facter 3")]
struct RetryUnknown;
on_due!(RetryUnknown);

#[delay_listener(topic = TOPIC)]
struct TopicIsAConstant;
on_due!(TopicIsAConstant);

#[delay_listener(topic = "order timeout")]
struct TopicWithASpace;
on_due!(TopicWithASpace);

#[delay_listener(concurrency, timeout =, register(false))]
struct ValueMissing;
on_due!(ValueMissing);

#[delay_listener("order-timeout")]
struct ValueWithoutKey;
on_due!(ValueWithoutKey);

struct Orders;

#[delay_listener]
struct BorrowsADependency {
    orders: &Orders,
}
on_due!(BorrowsADependency);

#[delay_listener]
struct BorrowsForALifetime<'a> {
    orders: &'a Orders,
}

#[delay_listener]
struct InjectUnknown {
    #[inject(defualt)]
    seen: u8,
    #[inject]
    orders: u16,
    #[inject(by = "name")]
    mail: u32,
}
on_due!(InjectUnknown);

#[delay_listener]
enum IsAnEnum {}

#[delay_listener]
struct IsGeneric<T> {
    orders: T,
}

impl<T: Clone + Send + Sync + 'static> DelayListener for IsGeneric<T> {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let _ = (job.order_id, &self.orders);
        Ok(channel.ack())
    }
}

fn main() {}
