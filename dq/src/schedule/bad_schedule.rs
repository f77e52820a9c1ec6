//! Why a record is not a schedule.

use crate::job::InvalidName;
use crate::job::limits::OverLimit;

/// Why a record is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchedule {
    /// A newer version of dq, or another program, wrote the record.
    #[error("{0}")]
    Unreadable(String),
    /// Its cron line or its zone cannot be read here: an older version of dq took the line, or another system has the zone.
    #[error("{0}")]
    Times(String),
    /// It is over a limit of the format, so no version of dq wrote it.
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    /// A name in it is not valid.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
}

impl InvalidSchedule {
    /// What to do about a schedule in a store.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Times(_) if cfg!(feature = "cron") => {
                "add the schedule again with a line and a zone that this version of dq reads, or remove it"
            }
            Self::Times(_) => "build this program with the feature `cron` of dq",
            Self::Unreadable(_) => "use the version of dq that wrote it, or add the schedule again",
            Self::OverLimit(_) | Self::InvalidName(_) => "remove the schedule, and add it again within the limits",
        }
    }
}

#[cfg(feature = "cron")]
#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use serde_json::json;

    use crate::job::{Codec, Metadata, Record};
    use crate::schedule::{Definition, Origin};
    use crate::time::Timestamp;

    /// A line that an older version took for another one, and a zone that is gone: the rest tells which definition it is.
    #[test]
    fn a_schedule_whose_line_cannot_be_read_is_told_from_one_of_another_version() {
        let job = Record::new(&Metadata::default(), Codec::Json, b"{}");
        let written = |line: &str, zone: &str| {
            let text = json!({
                "ticks": { "times": { "cron": { "line": line, "zone": zone, "skipped": "l", "repeated": "f" } } },
                "on_missed": "once", "overlap": "skip", "jitter": 0, "tick": 7_200_000, "made": false,
                "job": { "record": STANDARD_NO_PAD.encode(job.as_bytes()), "expires_after": null, "deliver": "queue" },
                "origin": { "code": { "fingerprint": 7, "superseded": [5] } },
            });
            Record::new(&Metadata::default(), Codec::Json, text.to_string().as_bytes())
        };
        let sound = written("0 9 * * MON-FRI", "Asia/Calcutta");
        assert!(Definition::read(&sound).is_ok() && Definition::with_unread_times(&sound).is_none());
        for (line, zone, says) in [
            ("*/90 * * * *", "UTC", "the step is a number from 1 to 59"),
            ("0 9 * MON-FRI *", "UTC", "the name of a weekday belongs into the last field"),
            ("0 9 * * *", "Asia/Nowhere", "the time zone `Asia/Nowhere` does not exist"),
        ] {
            let record = written(line, zone);
            let bad = Definition::read(&record).unwrap_err();
            assert!(bad.to_string().contains(says), "{bad}");
            assert!(bad.advice().starts_with("add the schedule again with a line and a zone"), "{}", bad.advice());
            let rest = Definition::with_unread_times(&record).unwrap();
            assert_eq!(rest.origin, Origin::Code { fingerprint: 7, superseded: vec![5] });
            assert_eq!(rest.tick, Timestamp::from_millis(7_200_000));
        }
    }
}
