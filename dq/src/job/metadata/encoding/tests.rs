//! Encoding and decoding, of all fields and of damaged bytes.

use super::*;
use crate::environment::Seeded;

fn full() -> Metadata {
    Metadata {
        attempts: 7,
        cause: Some(Cause::Expired),
        exhausted: true,
        delay: Duration::from_millis(1_800_000),
        expires_at: Some(Timestamp::from_millis(1_763_000_000_000)),
        retain: Duration::from_secs(60),
        parked_by: Some(Fence(1_763_000_000_000_001)),
        version: u32::MAX,
        first_added: Some(Timestamp::from_millis(1_763_000_000_002)),
        priority: Priority::High,
        weight: Weight::new(10_000).unwrap(),
        group: Some(GroupName::new("customer-é").unwrap()),
        group_order: 1_763_000_000_000_003,
        retry: Some("none".into()),
        headers: vec![("traceparent".into(), "00-1-2-01".into()), ("é".into(), String::new())],
        error: Some("boom".into()),
        state: Some(KeptState::from_bytes(b"[7]")),
        result: None,
    }
}

/// The full metadata without some of their fields.
fn some_of_full(fields: usize) -> Metadata {
    let (full, plain) = (full(), Metadata::default());
    let has = |bit: usize| fields >> bit & 1 == 1;
    Metadata {
        attempts: if has(0) { full.attempts } else { plain.attempts },
        cause: full.cause.filter(|_| has(1)),
        exhausted: has(2),
        delay: if has(3) { full.delay } else { plain.delay },
        expires_at: full.expires_at.filter(|_| has(4)),
        retain: if has(5) { full.retain } else { plain.retain },
        parked_by: full.parked_by.filter(|_| has(6)),
        retry: full.retry.filter(|_| has(7)),
        headers: if has(8) { full.headers } else { plain.headers },
        error: full.error.filter(|_| has(9)),
        version: if has(10) { full.version } else { plain.version },
        first_added: full.first_added.filter(|_| has(11)),
        priority: Priority::ALL[fields % 3],
        group_order: if has(12) { full.group_order } else { 0 },
        group: full.group.filter(|_| has(12)),
        state: full.state.clone().filter(|_| has(13) && !has(15)),
        result: full.state.filter(|_| has(15)),
        weight: if has(14) { full.weight } else { plain.weight },
    }
}

fn encoded(metadata: &Metadata) -> Vec<u8> {
    let mut bytes = Vec::new();
    metadata.encode(&mut bytes);
    bytes
}

/// The metadata without what is text.
fn numbers_of(metadata: &Metadata) -> Metadata {
    let headers = Vec::new();
    Metadata { group: None, retry: None, headers, error: None, state: None, result: None, ..metadata.clone() }
}

#[test]
fn every_combination_of_fields_reads_back() {
    for metadata in (0..1 << 16).map(some_of_full) {
        let bytes = encoded(&metadata);
        assert_eq!(metadata_length(&bytes), Ok(bytes.len()));
        assert_eq!(metadata.encoded_length(), bytes.len());
        assert_eq!(Metadata::decode_numbers(&bytes), Ok(numbers_of(&metadata)));
        assert_eq!(weight_of(&bytes).unwrap_or_default(), metadata.weight);
        assert_eq!(Metadata::decode(&bytes), Ok(metadata));
    }
}

#[test]
fn delays_of_all_lengths_read_back() {
    for bits in 0..48 {
        for millis in [1 << bits, (2 << bits) - 1] {
            let metadata = Metadata { delay: Duration::from_millis(millis), ..Metadata::default() };
            assert_eq!(Metadata::decode(&encoded(&metadata)), Ok(metadata));
        }
    }
}

#[test]
fn a_state_up_to_its_limit_reads_back_beside_the_longest_texts() {
    let limits = [limits::STATE, limits::HEADERS, limits::RETRY, limits::ERROR].map(|limit| limit.most as usize);
    let [state, headers, retry, error] = limits;
    for length in [0, 1, LONG - 4, LONG - 3, LONG - 2, state] {
        let state = Some(KeptState::from_bytes(&vec![b'7'; length]));
        let longest = Metadata {
            headers: vec![("x".into(), "x".repeat(headers - 5))],
            retry: Some("x".repeat(retry)),
            error: Some("x".repeat(error)),
            state: state.clone(),
            ..Metadata::default()
        };
        let only_result = Metadata { result: state.clone(), ..Metadata::default() };
        for metadata in [Metadata { state, ..Metadata::default() }, only_result, longest] {
            let bytes = encoded(&metadata);
            assert_eq!((metadata_length(&bytes), metadata.encoded_length()), (Ok(bytes.len()), bytes.len()));
            assert_eq!(Metadata::decode_numbers(&bytes), Ok(Metadata::default()));
            assert_eq!(Metadata::decode(&bytes), Ok(metadata));
            for end in [0, 1, 2, 3, 4, 5, bytes.len() / 2, bytes.len() - 1] {
                assert!(Metadata::decode(&bytes[..end]).is_err(), "cut at {end} of {}", bytes.len());
            }
        }
    }
    let over = Metadata { state: Some(KeptState::from_bytes(&vec![b'7'; state + 1])), ..Metadata::default() };
    assert_eq!(Metadata::decode(&encoded(&over)), Ok(Metadata::default()), "what no door lets in is left out");
}

#[test]
fn metadata_cut_anywhere_are_an_error_and_never_a_panic() {
    let bytes = encoded(&full());
    for end in 0..bytes.len() {
        assert!(Metadata::decode(&bytes[..end]).is_err(), "cut at {end}");
        assert!(Metadata::decode_numbers(&bytes[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn a_flipped_bit_is_never_a_panic() {
    let bytes = encoded(&full());
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        drop(Metadata::decode(&flipped));
        drop(Metadata::decode_numbers(&flipped));
    }
}

#[test]
fn a_job_that_was_never_changed_pays_nothing_for_its_version_and_a_changed_one_ten_bytes() {
    let bytes = |version, first_added| encoded(&Metadata { version, first_added, ..Metadata::default() }).len();
    assert_eq!(bytes(0, None), 2);
    assert_eq!([bytes(1, None), bytes(0, Some(Timestamp::from_millis(1))), bytes(u32::MAX, None)], [12; 3]);
}

/// What decodes, encodes to something that decodes to the same.
#[test]
fn random_bytes_decode_to_metadata_or_are_refused() {
    let random = Seeded::new(1);
    let mut decoded = 0;
    for _ in 0..200_000 {
        let head = [(FORMAT + (random.next() % 3) as u8) << 4 | (random.next() % 8) as u8, random.next() as u8];
        let rest = (0..random.next() % 48).map(|_| random.next() as u8 % 12);
        let bytes: Vec<u8> = head.into_iter().chain(rest).collect();
        if let Ok(metadata) =
            metadata_length(&bytes).and_then(|length| Metadata::decode(&bytes[..length.min(bytes.len())]))
        {
            assert_eq!(Metadata::decode_numbers(&bytes), Ok(numbers_of(&metadata)));
            assert_eq!(Metadata::decode(&encoded(&metadata)), Ok(metadata));
            decoded += 1;
        }
    }
    assert!(decoded > 5_000, "{decoded}");
}

#[test]
fn another_format_is_rejected_with_its_number() {
    assert_eq!(Metadata::decode(&[0xC0, 0]), Err(BadRecord::UnknownVersion(12)));
    assert_eq!(Metadata::decode(b"{}"), Err(BadRecord::UnknownVersion(7)));
}

#[test]
fn no_text_is_taken_for_metadata() {
    for first in 0..=u8::MAX {
        let is_text = std::str::from_utf8(&[first]).is_ok() || (0xC2..=0xF4).contains(&first);
        assert!(!(is_text && first >> 4 == FORMAT), "{first:#x}");
    }
}

#[test]
fn what_no_version_writes_is_refused() {
    assert_eq!(Metadata::decode(&[0x97, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(BadRecord::Damaged("weight")));
    assert_eq!(Metadata::decode(&[0x90, FAILED, 0, 0, 9]), Err(BadRecord::Damaged("cause")));
    assert_eq!(Metadata::decode(&[0x90, ERROR, 3, 0, 0, 0, 0]), Err(BadRecord::UnknownCodec(0)));
    assert_eq!(Metadata::decode(&[0x90, ERROR, 3, 0, 1, 0, 0xFF]), Err(BadRecord::Damaged("text")));
    assert_eq!(Metadata::decode(&[0x90]), Err(BadRecord::TooShort));
}
