//! The line of a job: its metadata in words, and the payload as it is.
//!
//! A payload that is JSON without line ends stays as it is, byte by byte; any other is base64. A record that this version
//! cannot write in words without a change is base64 as a whole: another program made it, and dq loses nothing.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use dq::job::{Codec, InvalidRecord, JobId, KeptState, Metadata, Record, State, TopicName, limits};
use dq::schedule::checked;
use dq::store::JobCopy;
use dq::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The line of a job. What is left out is zero, `false` or nothing. Times are ms since the Unix epoch, periods are ms.
///
/// It has exactly one of `payload`, `payload_base64` and `record_base64`; beside the last one it has no metadata.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLine {
    /// Its topic.
    pub topic: TopicName,
    /// Its id.
    pub id: JobId,
    /// `delayed`, `unacked`, `dead` or `done`.
    pub state: State,
    /// It is a waiting broadcast, which is `delayed`, and not a job.
    #[serde(default, skip_serializing_if = "is_default")]
    pub broadcast: bool,
    /// When it is due (delayed), since when it is in its state (unacked, dead), or until when (done).
    pub at: Timestamp,
    /// Until when its id stays taken.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taken_until: Option<Timestamp>,
    /// Crashes since the last settled outcome.
    #[serde(default, skip_serializing_if = "is_default")]
    pub crashes: u32,
    /// What its record has besides the payload.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: Metadata,
    /// The payload, if it is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Box<RawValue>>,
    /// Any other payload.
    #[serde(default, skip_serializing_if = "is_default")]
    pub payload_base64: Option<String>,
    /// A whole record that cannot be said in words.
    #[serde(default, skip_serializing_if = "is_default")]
    pub record_base64: Option<String>,
}

impl JobLine {
    /// The line of a copy.
    pub fn of(topic: &TopicName, copy: &JobCopy) -> Self {
        // The retry of a job may be due later than any import may be: this is late enough.
        let latest = Timestamp::from_millis(limits::TIME.most);
        let bare = Self {
            topic: topic.clone(),
            id: copy.id.clone(),
            state: copy.state,
            broadcast: copy.is_broadcast,
            at: copy.at.min(latest),
            taken_until: copy.taken_until.map(|until| until.min(latest)),
            crashes: copy.crashes,
            metadata: Metadata::default(),
            payload: None,
            payload_base64: None,
            record_base64: None,
        };
        let Some((metadata, payload)) = in_words(&copy.record) else {
            return Self { record_base64: Some(BASE64_STANDARD.encode(copy.record.as_bytes())), ..bare };
        };
        let raw = as_json(payload);
        let payload_base64 = raw.is_none().then(|| BASE64_STANDARD.encode(payload));
        Self { metadata, payload: raw, payload_base64, ..bare }
    }

    /// The copy of this line, within the limits of the format.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn into_copy(self) -> Result<JobCopy, String> {
        let Self { id, crashes, state, broadcast: is_broadcast, at, taken_until, metadata, .. } = self;
        let record = match (self.payload, self.payload_base64, self.record_base64) {
            (Some(raw), None, None) => record_of(at, &metadata, raw.get().as_bytes())?,
            (None, Some(text), None) => record_of(at, &metadata, &decoded("payload_base64", &text)?)?,
            (None, None, Some(text)) if is_default(&metadata) => Record::from_bytes(decoded("record_base64", &text)?),
            (None, None, Some(text)) => {
                let bytes = text.len();
                return Err(format!(
                    "`record_base64` is a whole record ({bytes} bytes in base64), so `metadata` and the payloads must be absent"
                ));
            }
            _ => return Err("a job has exactly one of `payload`, `payload_base64` and `record_base64`".into()),
        };
        let copy = JobCopy { id, record, crashes, state, at, is_broadcast, taken_until };
        copy.check().map_err(|over| over.to_string())?;
        match checked(&copy.id, &copy.record) {
            Err(InvalidRecord::OverLimit(over)) => Err(over.to_string()),
            _ => Ok(copy),
        }
    }
}

/// The metadata and the payload of a record, if a line can say them without a change.
fn in_words(record: &Record) -> Option<(Metadata, &[u8])> {
    let (Ok(metadata), Ok((Codec::Json, payload))) = (record.metadata(), record.payload()) else { return None };
    let is_json = |left: &Option<KeptState>| left.as_ref().is_none_or(|left| as_json(left.as_bytes()).is_some());
    let is_whole = Record::new(&metadata, Codec::Json, payload) == *record;
    (is_whole && is_json(&metadata.state) && is_json(&metadata.result)).then_some((metadata, payload))
}

/// The record of a job that is in its state at `at`, within the limits of the format.
fn record_of(at: Timestamp, metadata: &Metadata, payload: &[u8]) -> Result<Record, String> {
    let millis = |time: Option<Timestamp>| time.map_or(0, Timestamp::as_millis);
    let numbers = [
        ("at", at.as_millis(), limits::TIME),
        ("delay", ms(metadata.delay), limits::TIME),
        ("expires_at", millis(metadata.expires_at), limits::TIME),
        ("retain", ms(metadata.retain), limits::TIME),
        ("first_added", millis(metadata.first_added), limits::TIME),
        ("parked_by", metadata.parked_by.map_or(0, |fence| fence.0), limits::FENCE),
    ];
    for (field, number, limit) in numbers {
        limit.check(number).map_err(|over| format!("`{field}`: {over}"))?;
    }
    // A record has no room for more.
    metadata.check_new().map_err(|over| over.to_string())?;
    Ok(Record::new(metadata, Codec::Json, payload))
}

/// The payload as JSON of one line, if it is that and would be read back as the same bytes.
fn as_json(payload: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(payload).ok().filter(|text| !text.contains(['\n', '\r']))?;
    let raw: Box<RawValue> = serde_json::from_str(text).ok()?;
    (raw.get() == text).then_some(raw)
}

/// The bytes of a field that has them as base64.
pub(crate) fn decoded(field: &str, text: &str) -> Result<Bytes, String> {
    BASE64_STANDARD.decode(text).map(Bytes::from).map_err(|error| format!("`{field}` is not base64: {error}"))
}

fn ms(period: Duration) -> u64 {
    u64::try_from(period.as_millis()).unwrap_or(u64::MAX)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A field that is there, also if its value is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}
