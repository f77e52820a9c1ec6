use dq::prelude::*;

#[broadcast_listener(channels = ["cache-expired"])]
struct DropCache<T> {
    cache: T,
}

fn main() {}
