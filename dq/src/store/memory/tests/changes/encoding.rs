//! The bytes of changes: how many, and what is refused.

use super::*;

/// A hundred jobs with generated ids and payloads of 100 bytes.
fn hundred(bench: &Bench) -> Numbered<NewJob> {
    let item = |n| NewJob {
        id: JobId::generated(bench.now.micros() + n, 0x55_1234_5678),
        generated: true,
        record: record(&Metadata { delay: Duration::from_secs(60), ..Metadata::default() }, &"x".repeat(100)),
        ..job("-")
    };
    Numbered { number: 1, items: (0..100).map(item).collect() }
}

#[test]
fn a_life_costs_well_under_300_bytes_of_changes() {
    let mut bench = logged();
    let batch = hundred(&bench);
    bench.add_numbered(1, batch.items);
    let added = changes(&mut bench.topic).len();
    let claims = bench.transfer("0123456789abcdef", 100).claims;
    let claimed = changes(&mut bench.topic).len();
    let ack = |claim: &Claim| Outcome { id: claim.id.clone(), token: claim.token, change: Change::Ack, metadata: None };
    let outcomes = claims.iter().map(ack).collect();
    let last_seen = bench.sequence("0123456789abcdef");
    let request = Settle { last_seen, lease: LEASE, bytes: USUAL_BYTES, outcomes };
    bench.topic.settle(bench.now, &node("0123456789abcdef"), request).unwrap();
    let acked = changes(&mut bench.topic).len();
    assert!(bench.topic.is_empty());
    assert_eq!([added / 100, claimed / 100, acked / 100], [123, 16, 15], "bytes a job: add, claim, ack");
}

#[test]
fn a_retry_does_not_write_its_payload_again() {
    let mut bench = logged();
    let token = bench.run("n", NewJob { record: record(&Metadata::default(), &"x".repeat(250_000)), ..job("a") });
    changes(&mut bench.topic);
    let metadata = Metadata { attempts: 1, error: Some("it failed".into()), ..Metadata::default() };
    bench.settle_with("n", "a", token, Change::Retry(Duration::from_secs(1)), Some(metadata));
    assert!(changes(&mut bench.topic).len() < 50);
}
