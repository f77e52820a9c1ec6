//! A schedule for the tests of this folder.

use std::time::Duration;

use super::{Definition, JobOfTick, OnMissed, Origin, Overlap, Ticks, Times};
use crate::job::{Codec, Delivery, Metadata, Record};
use crate::time::Timestamp;

/// Every hour, from two o'clock on, without overlap.
pub(super) fn hourly() -> Definition {
    Definition {
        ticks: Ticks { times: Times::Every(Duration::from_secs(3600)), start: None, end: None },
        on_missed: OnMissed::Once,
        overlap: Overlap::Skip,
        jitter: Duration::ZERO,
        job: JobOfTick {
            record: Record::new(&Metadata::default(), Codec::Json, b"{}"),
            expires_after: None,
            deliver: Delivery::Queue,
        },
        tick: Timestamp::from_millis(7_200_000),
        last: None,
        origin: Origin::Call,
        made: false,
        pause: None,
        gap: None,
    }
}
