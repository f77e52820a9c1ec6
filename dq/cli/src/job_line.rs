//! The line of a job: its record in words, and the payload as it is.
//!
//! A payload that is JSON without line ends stays as it is, byte by byte; any other is base64. A record that this version
//! cannot write in words without a change is base64 as a whole: another program made it, and dq loses nothing.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use dq::job::{
    BadRecord, Cause, Codec, Fence, GroupName, JobId, KeptState, Metadata, Priority, Record, TopicName, Weight, limits,
};
use dq::schedule::checked;
use dq::store::{CopyPlace, JobCopy};
use dq::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

/// The word for a place, in lines and reports.
pub const fn word(place: CopyPlace) -> &'static str {
    match place {
        CopyPlace::Delayed => "delayed",
        CopyPlace::Unacked => "unacked",
        CopyPlace::Dead => "dead",
        CopyPlace::Done => "done",
        CopyPlace::Broadcast => "broadcast",
    }
}

/// The line of a job. What is left out is zero, `false` or nothing. Times are ms since the Unix epoch, periods are ms.
///
/// It has exactly one of `payload`, `payload_base64` and `record_base64`; beside the last one it has nothing of a record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLine {
    /// Its topic.
    pub topic: TopicName,
    /// Its id.
    pub id: JobId,
    /// `delayed`, `unacked`, `dead`, `done`, or `broadcast` for a broadcast that waits.
    #[serde(serialize_with = "place_as_word", deserialize_with = "place_from_word")]
    pub state: CopyPlace,
    /// When it is due (delayed, broadcast), since when it is in its state (unacked, dead), or until when (done).
    pub at: u64,
    /// Until when its id stays taken.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taken_until: Option<u64>,
    /// Crashes since the last settled outcome.
    #[serde(default, skip_serializing_if = "is_default")]
    pub crashes: u32,
    /// Failed runs so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempts: u16,
    /// Why the last run failed, or why no attempt is left, as a word.
    #[serde(
        default,
        skip_serializing_if = "is_default",
        serialize_with = "cause_as_word",
        deserialize_with = "cause_from_word"
    )]
    pub cause: Option<Cause>,
    /// No attempt is left.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exhausted: bool,
    /// The delay that the job was added with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub delay: u64,
    /// After this time the job becomes DEAD without a run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expires_at: Option<u64>,
    /// How long the job is kept as DONE.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retain: u64,
    /// The fence of the run that parked the job.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parked_by: Option<u64>,
    /// How often the job was changed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: u32,
    /// When `add_or_extend` first added it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first_added: Option<u64>,
    /// `high` or `low`, if it is not `normal`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// How much of the rate its start spends, if it is not 1.
    #[serde(default, skip_serializing_if = "is_default")]
    pub weight: Weight,
    /// The group of the job.
    #[serde(default, skip_serializing_if = "is_default")]
    pub group: Option<GroupName>,
    /// Which of the jobs of the group that are due together goes first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub group_order: u64,
    /// The retry policy of this job.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Option<String>,
    /// The headers, each with its value, in their order.
    #[serde(default, skip_serializing_if = "is_default")]
    pub headers: Vec<(String, String)>,
    /// The last error.
    #[serde(default, skip_serializing_if = "is_default")]
    pub error: Option<String>,
    /// The state that a run has left for the next one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub kept_state: Option<Box<RawValue>>,
    /// The result that the run has left which acked the job.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub result: Option<Box<RawValue>>,
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
        let bare = |record_base64| Self {
            topic: topic.clone(),
            id: copy.id.clone(),
            state: copy.place,
            // The retry of a job may be due later than any import may be: this is late enough.
            at: copy.at.as_millis().min(limits::TIME.most),
            taken_until: copy.taken_until.map(|until| until.as_millis().min(limits::TIME.most)),
            crashes: copy.crashes,
            attempts: 0,
            cause: None,
            exhausted: false,
            delay: 0,
            expires_at: None,
            retain: 0,
            parked_by: None,
            version: 0,
            first_added: None,
            priority: Priority::Normal,
            weight: Weight::ONE,
            group: None,
            group_order: 0,
            retry: None,
            headers: Vec::new(),
            error: None,
            kept_state: None,
            result: None,
            payload: None,
            payload_base64: None,
            record_base64,
        };
        let whole = || bare(Some(BASE64_STANDARD.encode(copy.record.as_bytes())));
        let (Ok(metadata), Ok((Codec::Json, payload))) = (copy.record.metadata(), copy.record.payload()) else {
            return whole();
        };
        if Record::new(&metadata, Codec::Json, payload) != copy.record {
            return whole();
        }
        let [kept_state, result] =
            [&metadata.state, &metadata.result].map(|left| left.as_ref().map(|left| as_json(left.as_bytes())));
        if [&kept_state, &result].into_iter().any(|left| left.as_ref().is_some_and(Option::is_none)) {
            return whole();
        }
        let raw = as_json(payload);
        let payload_base64 = raw.is_none().then(|| BASE64_STANDARD.encode(payload));
        Self {
            attempts: metadata.attempts,
            cause: metadata.cause,
            exhausted: metadata.exhausted,
            delay: millis(metadata.delay),
            expires_at: metadata.expires_at.map(Timestamp::as_millis),
            retain: millis(metadata.retain),
            parked_by: metadata.parked_by.map(|fence| fence.0),
            version: metadata.version,
            first_added: metadata.first_added.map(Timestamp::as_millis),
            priority: metadata.priority,
            weight: metadata.weight,
            group: metadata.group,
            group_order: metadata.group_order,
            retry: metadata.retry,
            headers: metadata.headers,
            error: metadata.error,
            kept_state: kept_state.flatten(),
            result: result.flatten(),
            payload: raw,
            payload_base64,
            ..bare(None)
        }
    }

    /// The copy of this line, within the limits of the format.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn into_copy(self) -> Result<JobCopy, String> {
        let (id, crashes, place, at) = (self.id.clone(), self.crashes, self.state, Timestamp::from_millis(self.at));
        let taken_until = self.taken_until.map(Timestamp::from_millis);
        let payloads = [self.payload.is_some(), self.payload_base64.is_some(), self.record_base64.is_some()];
        if payloads.into_iter().filter(|is_there| *is_there).count() != 1 {
            return Err("a job has exactly one of `payload`, `payload_base64` and `record_base64`".into());
        }
        let record = match &self.record_base64 {
            Some(text) if self.has_metadata() => {
                return Err(format!(
                    "`record_base64` is a whole record ({} bytes as text), so nothing else may say what is in \
                                    it",
                    text.len()
                ));
            }
            Some(text) => Record::from_bytes(Bytes::from(decoded("record_base64", text)?)),
            None => self.into_record()?,
        };
        let copy = JobCopy { id, record, crashes, place, at, taken_until };
        copy.check().map_err(|over| over.to_string())?;
        match checked(&copy.id, &copy.record) {
            Err(BadRecord::OverLimit(over)) => Err(over.to_string()),
            _ => Ok(copy),
        }
    }

    fn has_metadata(&self) -> bool {
        let Self { attempts, cause, exhausted, delay, expires_at, retain, parked_by, .. } = self;
        let Self {
            version,
            first_added,
            priority,
            weight,
            group,
            group_order,
            retry,
            headers,
            error,
            kept_state,
            result,
            ..
        } = self;
        (*attempts, *exhausted, *delay, *retain) != (0, false, 0, 0)
            || cause.is_some()
            || (*expires_at, *parked_by, *first_added) != (None, None, None)
            || *version > 0
            || *priority != Priority::Normal
            || *weight != Weight::ONE
            || group.is_some()
            || *group_order > 0
            || retry.is_some()
            || !headers.is_empty()
            || error.is_some()
            || kept_state.is_some()
            || result.is_some()
    }

    fn into_record(self) -> Result<Record, String> {
        let numbers = [
            ("at", Some(self.at), limits::TIME),
            ("delay", Some(self.delay), limits::TIME),
            ("expires_at", self.expires_at, limits::TIME),
            ("retain", Some(self.retain), limits::TIME),
            ("first_added", self.first_added, limits::TIME),
            ("parked_by", self.parked_by, limits::FENCE),
        ];
        numbers.into_iter().try_for_each(|(field, number, limit)| {
            limit.check(number.unwrap_or_default()).map_err(|over| format!("`{field}`: {over}"))
        })?;
        let payload = match (&self.payload, &self.payload_base64) {
            (Some(raw), _) => raw.get().as_bytes().to_vec(),
            (None, text) => decoded("payload_base64", text.as_deref().unwrap_or_default())?,
        };
        let metadata = Metadata {
            attempts: self.attempts,
            cause: self.cause,
            exhausted: self.exhausted,
            delay: Duration::from_millis(self.delay),
            expires_at: self.expires_at.map(Timestamp::from_millis),
            retain: Duration::from_millis(self.retain),
            parked_by: self.parked_by.map(Fence),
            version: self.version,
            first_added: self.first_added.filter(|at| *at > 0).map(Timestamp::from_millis),
            priority: self.priority,
            weight: self.weight,
            group: self.group,
            group_order: self.group_order,
            retry: self.retry,
            headers: self.headers,
            error: self.error,
            state: self.kept_state.map(|state| KeptState::from_bytes(state.get().as_bytes())),
            result: self.result.map(|result| KeptState::from_bytes(result.get().as_bytes())),
        };
        // A record has no room for more.
        metadata.check_new().map_err(|over| over.to_string())?;
        Ok(Record::new(&metadata, Codec::Json, &payload))
    }
}

/// The payload as JSON of one line, if it is that and would be read back as the same bytes.
fn as_json(payload: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(payload).ok().filter(|text| !text.contains(['\n', '\r']))?;
    let raw: Box<RawValue> = serde_json::from_str(text).ok()?;
    (raw.get() == text).then_some(raw)
}

fn decoded(field: &str, text: &str) -> Result<Vec<u8>, String> {
    BASE64_STANDARD.decode(text).map_err(|error| format!("`{field}` is no base64: {error}"))
}

fn millis(period: Duration) -> u64 {
    u64::try_from(period.as_millis()).unwrap_or(u64::MAX)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A field that is there, also if its value is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn place_as_word<S: Serializer>(place: &CopyPlace, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(word(*place))
}

fn place_from_word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CopyPlace, D::Error> {
    let text = String::deserialize(deserializer)?;
    let place = CopyPlace::ALL.into_iter().find(|place| word(*place) == text);
    place.ok_or_else(|| unknown("state", &text, CopyPlace::ALL.map(word)))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn cause_as_word<S: Serializer>(cause: &Option<Cause>, serializer: S) -> Result<S::Ok, S::Error> {
    cause.map(Cause::word).serialize(serializer)
}

fn cause_from_word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cause>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let cause = Cause::ALL.into_iter().find(|cause| cause.word() == text);
    cause.map(Some).ok_or_else(|| unknown("cause", &text, Cause::ALL.map(Cause::word)))
}

fn unknown<E: de::Error, const N: usize>(what: &str, text: &str, known: [&str; N]) -> E {
    E::custom(format!("there is no {what} `{text}`; there is {}", known.join(", ")))
}
