//! Jobs at and beyond each limit of the format, made from the table of limits: what every door of a store lets in or refuses.

use std::time::Duration;

use dq::job::limits::{self, Limit};
use dq::job::{Codec, Delivery, JobId, Metadata, Record, Value};
use dq::schedule::{Definition, JobOfTick, OnMissed, Origin, Overlap, Ticks, Times};
use dq::store::{Due, MaxWaiting, NewJob};
use dq::time::Timestamp;

/// A job with as much of what a limit bounds as `size` says.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The limit.
    pub limit: Limit,
    /// The size.
    pub size: u64,
}

/// What the metadata of a sample have.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// The retry policy.
    pub retry: Option<String>,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The last error.
    pub error: Option<String>,
    /// The state that a run has left.
    pub state: Option<String>,
}

/// Samples of each limit: the least and the most that is allowed, and one less and one more; and the same of the most that steps make of it.
pub fn samples() -> Vec<Sample> {
    let of = |limit: &Limit| {
        let ends = [limit.least.checked_sub(1), Some(limit.least), Some(limit.most), Some(limit.most + 1)];
        let made = [limit.last(), limit.last() + 1].map(|size| Some(size).filter(|_| limit.room > 0));
        let mut sizes: Vec<_> = ends.into_iter().chain(made).flatten().collect();
        sizes.dedup();
        // A topic with another job is full for one that comes with room for one.
        sizes.retain(|size| *limit != limits::WAITING || *size != 1);
        sizes.into_iter().map(|size| Sample { limit: *limit, size }).collect::<Vec<_>>()
    };
    limits::ALL.iter().flat_map(of).collect()
}

fn text(size: u64) -> String {
    "x".repeat(usize::try_from(size).expect("a sample fits into memory"))
}

impl Sample {
    fn is(&self, limit: Limit) -> bool {
        self.limit == limit
    }

    /// Whether the limit allows it.
    pub fn is_within(&self) -> bool {
        self.limit.check(self.size).is_ok()
    }

    /// Whether a store may have it.
    pub fn is_kept(&self) -> bool {
        self.limit.check_kept(self.size).is_ok()
    }

    /// Whether the id or the record of a job says it.
    pub fn is_of_record(&self) -> bool {
        !matches!(self.limit.name, "FENCE" | "TIME" | "POSITION" | "DUE" | "DELAY" | "UNIQUE" | "WAITING")
    }

    /// A new job with it.
    pub fn job(&self, id: JobId) -> NewJob {
        let period = Duration::from_millis(self.size);
        let plain = NewJob::new(id, self.record());
        match self.limit {
            limits::DUE => NewJob { due: Due::At(Timestamp::from_millis(self.size)), ..plain },
            limits::DELAY => NewJob { due: Due::After(period), expires_after: Some(period), ..plain },
            limits::UNIQUE => NewJob { unique_for: Some(period), ..plain },
            limits::WAITING => {
                let most = usize::try_from(self.size).expect("a test runs where it fits");
                NewJob { max_waiting: Some(MaxWaiting { topic: Some(most), group: None }), ..plain }
            }
            _ => plain,
        }
    }

    /// Its id; perhaps not a valid one.
    pub fn id(&self) -> String {
        match self.limit {
            limits::ID => text(self.size),
            limits::SCHEDULE_NAME => format!("dq:schedule:{}", text(self.size)),
            limits::SCHEDULE_PAYLOAD | limits::INTERVAL => format!("dq:schedule:{}", self.name()),
            _ => self.name(),
        }
    }

    /// A word for it.
    pub fn name(&self) -> String {
        format!("{}-{}", self.limit.name.to_lowercase(), self.size)
    }

    /// The payload of its jobs: a JSON text.
    pub fn payload(&self) -> String {
        let size = if self.is(limits::PAYLOAD) || self.is(limits::SCHEDULE_PAYLOAD) { self.size.max(2) } else { 2 };
        format!("\"{}\"", text(size - 2))
    }

    /// The texts of its record.
    pub fn texts(&self) -> Texts {
        match self.limit {
            limits::HEADERS if self.size < 5 => Texts::default(),
            limits::HEADERS => Texts { headers: vec![("h".into(), text(self.size - 5))], ..Texts::default() },
            limits::CONTROLS => {
                Texts { headers: vec![("h".into(), "\r".repeat(self.size as usize))], ..Texts::default() }
            }
            limits::RETRY => Texts { retry: Some(text(self.size)), ..Texts::default() },
            limits::ERROR => Texts { error: Some(text(self.size)), ..Texts::default() },
            limits::STATE if self.size > 0 => {
                Texts { state: Some(text(self.size).replace('x', "7")), ..Texts::default() }
            }
            _ => Texts::default(),
        }
    }

    /// The interval of its schedule, if it is one.
    pub fn every(&self) -> Option<Duration> {
        match self.limit {
            limits::INTERVAL => Some(Duration::from_millis(self.size)),
            limits::SCHEDULE_NAME | limits::SCHEDULE_PAYLOAD => Some(Duration::from_secs(60)),
            _ => None,
        }
    }

    /// Its record, as another program might write it.
    pub fn record(&self) -> Record {
        let order = Some(self.size).filter(|_| self.is(limits::ORDER));
        let Some(every) = self.every() else { return raw(&self.texts(), order, self.payload().as_bytes()) };
        let definition = Definition {
            ticks: Ticks { times: Times::Every(every), start: None, end: None },
            on_missed: OnMissed::Once,
            overlap: Overlap::Allow,
            jitter: Duration::ZERO,
            job: JobOfTick {
                record: Record::new(&Metadata::default(), Codec::Json, self.payload().as_bytes()),
                expires_after: None,
                deliver: Delivery::Queue,
            },
            tick: Timestamp::from_millis(1_000),
            last: None,
            origin: Origin::Call,
            made: false,
            pause: None,
            gap: None,
        };
        definition.to_record(0)
    }
}

fn text_of(text: &Option<String>) -> Value<'_> {
    Value::Text(text.as_deref().unwrap_or_default().as_bytes())
}

/// A record with these texts, whatever their sizes, and this order in the group `g`.
fn raw(texts: &Texts, order: Option<u64>, payload: &[u8]) -> Record {
    let (group, number) = (Value::Text(if order.is_some() { b"g" } else { b"" }), Value::Number(0));
    let mut headers = vec![Value::List(2 * texts.headers.len())];
    headers
        .extend(texts.headers.iter().flat_map(|(name, value)| [name, value]).map(|text| Value::Text(text.as_bytes())));
    let (order, flag) = (Value::Number(order.unwrap_or_default()), Value::Flag(false));
    let [retry, error, state] = [&texts.retry, &texts.error, &texts.state].map(text_of);
    let others = [
        number, group, order, number, number, retry, number, number, number, number, flag, error, number, number,
        number, state,
    ];
    let mut fields = Vec::from(others.map(|field| vec![field]));
    fields.insert(5, headers);
    let absent = [number, Value::Text(b""), Value::Flag(false), Value::List(0)];
    while fields.pop_if(|field| absent.iter().any(|absent| field == std::slice::from_ref(absent))).is_some() {}
    let mut bytes = Vec::new();
    for value in [Value::List(fields.len())].into_iter().chain(fields.into_iter().flatten()) {
        value.put(&mut |more| bytes.extend_from_slice(more));
    }
    bytes.push(b'J');
    bytes.extend_from_slice(payload);
    Record::from_bytes(bytes.into())
}
