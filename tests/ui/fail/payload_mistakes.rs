use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job = "order-timeout"]
struct AttributeWithoutBrackets {
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(delay = "30m")]
struct AttributeWithoutTopic {
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct Borrows<'a> {
    who: &'a str,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", delay = "4000 days")]
struct DelayOverTenYears {
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", expires_after = "0s")]
struct ExpiresAtOnce {
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct FieldWithAnotherKey {
    #[job(idd)]
    order_id: u64,
    #[job(delay = "5m")]
    tenant: u64,
    #[job]
    shop: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", id)]
struct IdAboveTheType {
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", id = "")]
struct IdConstantIsEmpty;

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
enum IdInAnEnum {
    One {
        #[job(id)]
        order_id: u64,
    },
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", id = "{order_id}")]
struct IdMarkedAndTemplated {
    #[job(id)]
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", id = "{order_id")]
struct IdTemplateIsNotClosed {
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", id = "{tenant}:{order}")]
struct IdTemplateNamesAnUnknownField {
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", id = "order_id")]
struct IdTemplateNamesNoField {
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", id = "{order_id}")]
enum IdTemplateOfAnEnum {
    One { order_id: u64 },
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct IdTwice {
    #[job(id)]
    order_id: u64,
    #[job(id)]
    tenant: u64,
}

#[derive(DelayJob)]
#[job(topic = "order-timeout")]
union IsAUnion {
    a: u8,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", unique_for = "31d")]
struct UniqueForTooLong {
    #[job(id)]
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", unique_for = "24h")]
struct UniqueWithoutAnId {
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
struct WithoutTopic {
    order_id: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order timeout", dely = "30m", retry = "5x", retain = 1, deliver = "que")]
struct EveryMistakeOfOneAtOnce {
    order_id: u64,
}

#[derive(DelayJob)]
#[job(topic = "order-timeout")]
struct BorrowsStatic {
    who: &'static str,
}

fn main() {}
