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

/// What bytes of metadata say, if they are nothing else.
fn decoded(bytes: &[u8]) -> Result<Metadata, InvalidRecord> {
    let (metadata, kept) = Metadata::decode(bytes)?;
    if kept.is_empty() { Ok(metadata) } else { Err(InvalidRecord::TooShort) }
}

/// The numbers and flags that bytes of metadata say.
fn numbers_in(bytes: &[u8]) -> Result<Metadata, InvalidRecord> {
    Metadata::decode_numbers(bytes).map(|(numbers, _)| numbers)
}

/// The metadata without what is text.
fn numbers_of(metadata: &Metadata) -> Metadata {
    let headers = Vec::new();
    Metadata { group: None, retry: None, headers, error: None, state: None, result: None, ..metadata.clone() }
}

/// Scripts, journals and exports share this form. If you change it, raise the version of the protocol and that of the journal's changes.
#[test]
fn a_field_keeps_its_place() {
    let names: Vec<_> = FIELDS.iter().map(|(name, _)| *name).collect();
    let order = "delay group group_order priority weight headers retry expires_at retain attempts cause exhausted error parked_by version \
                 first_added state result";
    assert_eq!(names.join(" "), order);
    let some =
        Metadata { delay: Duration::from_secs(1), attempts: 3, cause: Some(Cause::Timeout), ..Metadata::default() };
    assert_eq!(encoded(&some), [0x9b, 0xcd, 0x03, 0xe8, 0xa0, 0, 0, 0, 0x90, 0xa0, 0, 0, 3, 3]);
    let headers = vec![("a".into(), "b".into())];
    assert_eq!(
        encoded(&Metadata { headers, ..Metadata::default() }),
        [0x96, 0, 0xa0, 0, 0, 0, 0x92, 0xa1, b'a', 0xa1, b'b']
    );
}

#[test]
fn every_combination_of_fields_reads_back() {
    for metadata in (0..1 << 16).map(some_of_full) {
        let bytes = encoded(&metadata);
        assert_eq!(metadata.encoded_length(), bytes.len());
        assert_eq!(numbers_in(&bytes), Ok(numbers_of(&metadata)));
        let group = metadata.group.as_ref().map(|group| (metadata.group_order, group.as_str()));
        let alone = (group_of(&bytes), field_of(&bytes, FieldPlace::priority), field_of(&bytes, FieldPlace::weight));
        assert_eq!(alone, (group, metadata.priority, metadata.weight));
        assert_eq!(decoded(&bytes), Ok(metadata));
    }
}

/// A double has no odd number above 2^53, so Lua would round it.
#[test]
fn a_number_that_lua_would_round_is_a_text() {
    for number in [LAST_EXACT - 1, LAST_EXACT, LAST_EXACT + 1, u64::MAX] {
        let metadata = Metadata { parked_by: Some(Fence(number)), ..Metadata::default() };
        let bytes = encoded(&metadata);
        let is_text = bytes.ends_with(number.to_string().as_bytes());
        assert_eq!((is_text, numbers_in(&bytes)), (number > LAST_EXACT, Ok(metadata)), "{number}");
    }
}

#[test]
fn a_state_up_to_its_limit_reads_back_beside_the_longest_texts() {
    let limits = [limits::STATE, limits::HEADERS, limits::RETRY, limits::ERROR].map(|limit| limit.most as usize);
    let [state, headers, retry, error] = limits;
    for length in [1, 31, 255, 65_535, state] {
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
            assert_eq!((metadata.encoded_length(), numbers_in(&bytes)), (bytes.len(), Ok(Metadata::default())));
            assert_eq!(decoded(&bytes), Ok(metadata));
            for end in [0, 1, 2, 3, 4, 5, bytes.len() / 2, bytes.len() - 1] {
                assert!(decoded(&bytes[..end]).is_err(), "cut at {end} of {}", bytes.len());
            }
        }
    }
    let over = Metadata { state: Some(KeptState::from_bytes(&vec![b'7'; state + 1])), ..Metadata::default() };
    assert_eq!(decoded(&encoded(&over)), Ok(Metadata::default()), "what no door lets in is left out");
}

#[test]
fn metadata_cut_anywhere_are_an_error_and_never_a_panic() {
    let bytes = encoded(&full());
    for end in 0..bytes.len() {
        assert!(decoded(&bytes[..end]).is_err(), "cut at {end}");
        assert!(numbers_in(&bytes[..end]).is_err(), "cut at {end}");
    }
}

/// What decodes, encodes to something that decodes to the same.
#[test]
fn random_bytes_decode_to_metadata_or_are_refused() {
    let (random, mut read) = (Seeded::new(1), 0);
    for _ in 0..100_000 {
        let mut bytes = encoded(&some_of_full(random.next() as usize & 0xffff));
        for _ in 0..random.next() % 4 {
            let at = random.next() as usize % bytes.len();
            bytes[at] = random.next() as u8;
        }
        if let Ok((metadata, _)) = Metadata::decode(&bytes) {
            assert_eq!(numbers_in(&bytes), Ok(numbers_of(&metadata)));
            assert_eq!(decoded(&encoded(&metadata)), Ok(metadata));
            read += 1;
        }
    }
    assert!((5_000..95_000).contains(&read), "{read}");
}

#[test]
fn what_is_no_list_and_a_list_with_more_fields_are_refused() {
    for bytes in [&b"{}"[..], b"what?", &[0xc0], &[0xdd, 0, 0, 0, 1, 0], &[0xdc, 1, 0], &[0xdc, 0, 19]] {
        assert_eq!(decoded(bytes), Err(InvalidRecord::Unknown), "{bytes:?}");
    }
    let longer: Vec<u8> = [0xdc, 0, FIELDS.len() as u8 + 1].into_iter().chain([0; 40]).collect();
    assert_eq!((decoded(&longer), decoded(b"")), (Err(InvalidRecord::Unknown), Err(InvalidRecord::TooShort)));
}

#[test]
fn no_text_is_taken_for_metadata() {
    for (first, second) in (0..=u8::MAX).flat_map(|first| (0..=u8::MAX).map(move |second| (first, second))) {
        let bytes = [first, second, 0];
        // Characters of three and four bytes begin with 0xE0 and more, which begins no list.
        let is_text = std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to() > 0, |_| true);
        assert!(!is_text || count_of(&mut &bytes[..]).is_err(), "{bytes:#x?}");
    }
}

#[test]
fn what_no_version_writes_is_refused() {
    let damaged = |bytes: &[u8], field| assert_eq!(decoded(bytes), Err(InvalidRecord::Damaged(field)), "{bytes:?}");
    damaged(&[0x91, 0xa0], "delay");
    damaged(&[0x91, 0xff], "delay");
    damaged(&[0x92, 0, 0], "group");
    damaged(&[0x92, 0, 0xa1, 0xff], "group");
    damaged(&[0x94, 0, 0xa0, 0, 3], "priority");
    damaged(&[0x95, 0, 0xa0, 0, 0, 0xcd, 0x27, 0x11], "weight");
    damaged(&[0x96, 0, 0xa0, 0, 0, 0, 0x91, 0xa0], "headers");
    damaged(&[0x9b, 0, 0xa0, 0, 0, 0, 0x90, 0xa0, 0, 0, 0, 9], "cause");
    damaged(&[0x9c, 0, 0xa0, 0, 0, 0, 0x90, 0xa0, 0, 0, 0, 0, 0xc0], "exhausted");
}
