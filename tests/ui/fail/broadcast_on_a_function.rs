use dq::prelude::*;

#[broadcast_listener(channels = ["cache-expired"])]
async fn drop_cache() {}

fn main() {}
