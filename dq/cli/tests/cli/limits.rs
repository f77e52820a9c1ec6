//! Each limit of the format, at it and beyond it, through `dq import`, whole records and words alike.

use std::sync::Arc;

use dq::environment::WallClock;
use dq::job::{Codec, JobId, Metadata, Record, State, TopicName, limits};
use dq::store::JobCopy;
use dq::store::memory::MemoryStore;
use dq::time::Timestamp;
use dq_cli::failure::Failure;
use dq_cli::import;
use dq_cli::job_line::JobLine;
use dq_cli::progress::Progress;
use dq_tests::limits::{Sample, samples};

use crate::program::{export_of, job, topic};
use crate::round_trip::options;

/// Imports one line of a job, under a topic with this fence.
async fn imported(line: String, fence: u64) -> Result<(), Failure> {
    let store = MemoryStore::new(Arc::new(WallClock));
    let text = export_of(&[topic("orders").replace("1763000000000001", &fence.to_string()), line]);
    import::import(&store, &options("p"), text.as_bytes(), &Progress::hidden()).await.map(drop)
}

/// The lines of a sample: the whole record, and the words of it where it has some.
fn lines(sample: &Sample) -> Vec<String> {
    let words =
        |field: String| job("a", "dead").replace("\"payload\"", &format!("\"metadata\":{{{field}}},\"payload\""));
    let texts = sample.texts();
    let of_words = match sample.limit {
        limits::ID => return vec![job(&sample.id(), "dead")],
        limits::FENCE => {
            return vec![
                job("a", "dead"),
                job("a", "unacked")
                    .replace("\"payload\"", &format!("\"metadata\":{{\"parked_by\":{}}},\"payload\"", sample.size)),
            ];
        }
        limits::TIME => {
            let fields = ["delay", "expires_at", "retain", "first_added"];
            let at = job("a", "dead").replace("4000000000000", &sample.size.to_string());
            return fields.iter().map(|field| words(format!("\"{field}\":{}", sample.size))).chain([at]).collect();
        }
        limits::HEADERS | limits::CONTROLS => Some(words(format!("\"headers\":{}", json(&texts.headers)))),
        limits::RETRY => Some(words(format!("\"retry\":{}", json(&texts.retry)))),
        limits::ERROR => Some(words(format!("\"error\":{}", json(&texts.error)))),
        limits::STATE => texts.state.map(|state| words(format!("\"kept_state\":{state}"))),
        limits::PAYLOAD => Some(job("a", "dead").replace("{\"order\":1}", &sample.payload())),
        _ => None,
    };
    let (id, at) = (JobId::new(sample.id()).unwrap(), Timestamp::from_millis(4_000_000_000_000));
    let copy = JobCopy::new(id, sample.record(), State::Delayed, at);
    let whole = JobLine::of(&TopicName::new("orders").unwrap(), &copy);
    of_words.into_iter().chain([format!("{{\"job\":{}}}", json(&whole))]).collect()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// Whether a field of a line says it.
fn is_in_words(sample: &Sample) -> bool {
    matches!(sample.limit, limits::TIME | limits::FENCE)
}

#[tokio::test]
async fn an_import_takes_what_is_within_a_limit_and_refuses_what_is_beyond_it_with_its_line() {
    let mut refused = 0;
    for sample in samples().into_iter().filter(|sample| sample.is_of_record() || is_in_words(sample)) {
        let fence = if sample.limit == limits::FENCE { sample.size } else { 1 };
        for line in lines(&sample) {
            let answer = imported(line, fence).await;
            let is_ahead = sample.size == limits::FENCE.most && matches!(sample.limit, limits::FENCE | limits::ORDER);
            if sample.is_within() && !is_ahead {
                assert!(answer.is_ok(), "{}: {answer:?}", sample.name());
                continue;
            }
            let Err(Failure::Line { line, why, imported: 0 }) = answer else { panic!("{}: {answer:?}", sample.name()) };
            if is_ahead {
                assert!(why.contains("more than a day ahead of the store's clock"), "{why}");
                continue;
            }
            let id = sample.limit == limits::ID;
            assert!(line == 3 || sample.limit == limits::FENCE && line == 2, "{line}: {why}");
            assert!(id || why.contains(sample.limit.what), "{why}");
            refused += 1;
        }
    }
    assert!(refused > limits::ALL.len(), "{refused}");
}

#[test]
fn what_an_export_says_of_a_job_that_is_due_after_every_limit_can_be_imported() {
    let (id, at) = (JobId::new("a").unwrap(), Timestamp::from_millis(u64::MAX));
    let record = Record::new(&Metadata::default(), Codec::Json, b"1");
    let copy = JobCopy::new(id, record, State::Delayed, at);
    let read = JobLine::of(&TopicName::new("t").unwrap(), &copy).into_copy().unwrap();
    assert_eq!(read, JobCopy { at: Timestamp::from_millis(limits::TIME.most), ..copy });
}
