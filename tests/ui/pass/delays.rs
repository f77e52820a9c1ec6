//! `delay!` is a constant, and a delay wherever one is asked for.

use std::time::Duration;

use dq::prelude::*;

const PAUSE: Duration = delay!("1h 30m");

static PAUSES: [Duration; 2] = [delay!("500ms"), dq::delay!("2d")];

fn main() {
    assert_eq!(PAUSE, Duration::from_secs(5400));
    assert_eq!(PAUSES, [Duration::from_millis(500), Duration::from_secs(2 * 24 * 3600)]);
    assert_eq!(dq::time::IntoDelay::into_delay(delay!("15m")).duration(), Ok(Duration::from_secs(900)));
}
