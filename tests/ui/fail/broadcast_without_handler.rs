use dq::prelude::*;

#[broadcast_listener(channels = ["cache-expired"])]
struct DropCache;

fn main() {}
