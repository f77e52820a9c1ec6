use std::time::Duration;

use dq::prelude::*;

const PAUSE: Duration = delay!("15");

fn pauses() -> [Duration; 3] {
    [delay!(15), delay!(), delay!("11years")]
}

fn main() {
    let _ = (PAUSE, pauses());
}
