//! The line of a job.

use dq::job::{Codec, JobId, Metadata, Record, State, TopicName};
use dq::store::JobCopy;
use dq::time::Timestamp;
use dq_cli::job_line::JobLine;

fn copy_of(record: Record) -> JobCopy {
    let id = JobId::new("a").unwrap();
    JobCopy::new(id, record, State::Delayed, Timestamp::from_millis(5))
}

/// The line of a job with this record, which must lead back to the same record.
fn line_of(record: Record) -> String {
    let copy = copy_of(record);
    let line = serde_json::to_string(&JobLine::of(&TopicName::new("t").unwrap(), &copy)).unwrap();
    assert!(!line.contains('\n'), "{line}");
    let read: JobLine = serde_json::from_str(&line).unwrap();
    assert_eq!(read.into_copy(), Ok(copy));
    line
}

fn payload(bytes: &[u8]) -> String {
    let line = line_of(Record::new(&Metadata::default(), Codec::Json, bytes));
    line.strip_prefix(r#"{"topic":"t","id":"a","state":"delayed","at":5,"#).unwrap().to_owned()
}

#[test]
fn a_payload_of_json_stays_as_it_is() {
    for json in
        ["null", "1.50", "\"\\u00e4\"", "{ \"b\":1,\"a\" : [ ] }", "12345678901234567890123", "{\"a\":1,\"a\":2}"]
    {
        assert_eq!(payload(json.as_bytes()), format!("\"payload\":{json}}}"));
    }
}

#[test]
fn any_other_payload_is_base64() {
    assert_eq!(payload(b"{\n}"), "\"payload_base64\":\"ewp9\"}");
    assert_eq!(payload(b" 1"), "\"payload_base64\":\"IDE=\"}");
    assert_eq!(payload(b"no json"), "\"payload_base64\":\"bm8ganNvbg==\"}");
    assert_eq!(payload(b"\xff"), "\"payload_base64\":\"/w==\"}");
    assert_eq!(payload(b""), "\"payload_base64\":\"\"}");
}

#[test]
fn a_record_that_words_would_change_is_kept_as_a_whole() {
    let plain = Record::new(&Metadata::default(), Codec::Json, b"{}");
    let bytes = plain.as_bytes();
    // A delay of zero at the end of a list, which no dq writes; another codec; no record at all.
    let odd = [&[bytes[0] + 1, 0][..], &bytes[1..]].concat();
    let codec = [&bytes[..1], b"X{}"].concat();
    for record in [odd, codec, b"what?".to_vec(), Vec::new()] {
        let line = line_of(Record::from_bytes(record.into()));
        assert!(line.contains("\"record_base64\":"), "{line}");
    }
}
