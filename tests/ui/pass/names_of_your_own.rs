//! Generated code means the library's names, whatever the user calls things.

#![allow(dead_code, non_camel_case_types, non_snake_case)]

mod std {}
mod core {}
mod alloc {}

struct Vec;
struct Box;
struct String;
struct Duration;
enum Option {
    Some,
    None,
}
enum Result {
    Ok,
    Err,
}
fn Some() {}
fn Ok() {}
trait Default {}
trait Clone {}
trait Send {}
trait Debug {}
macro_rules! concat {
    () => {};
}
macro_rules! line {
    () => {};
}

#[derive(serde::Serialize, serde::Deserialize, dq::DelayJob)]
#[job(topic = "order-timeout", delay = "1m", id = "{order_id}")]
struct CloseOrder {
    order_id: u64,
}

#[dq::delay_listener(topic = "order-timeout", concurrency = 2, timeout = "1s", retry = "1m", ack = "on_return")]
async fn close(job: dq::Job<CloseOrder>, orders: u8, state: &u16) -> ::std::result::Result<(), dq::JobError> {
    let _ = (job.order_id, orders, state);
    ::std::result::Result::Ok(())
}

#[dq::broadcast_listener(channels = ["cache-expired"])]
struct DropCache {
    cache: u8,
    #[inject(default)]
    seen: u64,
}

impl dq::BroadcastListener for DropCache {
    type Message = CloseOrder;

    async fn on_message(&self, _expired: dq::Broadcast<CloseOrder>) -> ::std::result::Result<(), dq::JobError> {
        ::std::result::Result::Ok(())
    }
}

#[derive(serde::Serialize, serde::Deserialize, dq::DelayJob)]
#[job(topic = "page")]
struct Page<Payload, JobId> {
    payload: Payload,
    id: JobId,
}

#[dq::delay_listener(register = false)]
struct Generic<Injector: Declared, Dependency, const TOPIC: usize> {
    injector: Injector,
    #[inject(default)]
    dependency: ::std::marker::PhantomData<Dependency>,
}

trait Declared: ::std::clone::Clone + ::std::marker::Send + ::std::marker::Sync + 'static {}

impl<Injector: Declared, Dependency: ::std::marker::Send + ::std::marker::Sync + 'static, const TOPIC: usize>
    dq::DelayListener for Generic<Injector, Dependency, TOPIC>
{
    type Job = Page<u8, u16>;

    async fn on_due(
        &self,
        _job: dq::Job<Page<u8, u16>>,
        channel: dq::Channel,
    ) -> ::std::result::Result<dq::Decided, dq::JobError> {
        ::std::result::Result::Ok(channel.ack())
    }
}

#[dq::delay_listener(register = false)]
async fn page(
    job: dq::Job<Page<u8, u16>>,
    orders: &::std::string::String,
    channel: dq::Channel,
) -> ::std::result::Result<dq::Decided, dq::JobError> {
    let _ = (job.payload, job.id, orders);
    ::std::result::Result::Ok(channel.ack())
}

impl Declared for u8 {}

mod primitives {
    struct str;
    struct u32;
    struct u64;
    struct bool;

    #[derive(dq::DelayJob)]
    #[job(topic = "page", delay = "1500ms", retry = "none", retain = "1s")]
    struct Page<T>(T);

    #[dq::delay_listener(concurrency = 2, timeout = "1s", max_crashes = 2, register = false)]
    struct Listener(::std::sync::Arc<u8>);

    #[dq::delay_listener(register = false)]
    async fn page(_job: dq::Job<super::CloseOrder>, orders: &u8) -> ::std::result::Result<(), dq::JobError> {
        let _ = orders;
        ::std::result::Result::Ok(())
    }

    #[dq::broadcast_listener(channels = ["prices"], register = false)]
    struct OnPrices;
}

fn main() {
    let registration = dq::listener::Registration::delay::<Generic<u8, u16, 3>>();
    assert_eq!(registration.name, "Generic");
}
