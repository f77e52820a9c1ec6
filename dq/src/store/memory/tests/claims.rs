use super::*;

#[test]
fn a_job_is_claimed_when_it_is_due_and_never_before() {
    let mut bench = Bench::new();
    bench.add(NewJob { due: Due::After(Duration::from_micros(1_500)), ..job("a") });
    assert!(bench.transfer("n", 10).claims.is_empty());
    bench.advance(Duration::from_micros(1_999));
    let answer = bench.transfer("n", 10);
    assert!(answer.claims.is_empty());
    assert_eq!(answer.sleep, Duration::from_micros(1));
    bench.advance(Duration::from_micros(1));
    assert_eq!(bench.transfer("n", 10).claims.len(), 1);
}

#[test]
fn a_transfer_that_names_another_sequence_number_claims_and_renews_nothing() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    let lease = bench.lease("n");
    bench.add(job("b"));
    bench.advance(Duration::from_secs(1));
    let request = Transfer {
        last_seen: Sequence(1),
        limit: 10,
        bytes: USUAL_BYTES,
        lease: LEASE,
        fallback: FALLBACK,
        lookahead: Duration::ZERO,
    };
    let answer = bench.topic.transfer(bench.now, &node("n"), &request).unwrap();
    assert_eq!(answer, Sequenced::Reconcile(LeaseStatus { sequence: Sequence(2), rows: 1 }));
    assert_eq!((bench.state("b"), bench.lease("n")), (Some(State::Delayed), lease));
}

#[test]
fn an_unknown_node_must_reconcile_first() {
    let mut bench = Bench::new();
    let request = Transfer {
        last_seen: Sequence(0),
        limit: 10,
        bytes: USUAL_BYTES,
        lease: LEASE,
        fallback: FALLBACK,
        lookahead: Duration::ZERO,
    };
    let answer = bench.topic.transfer(bench.now, &node("n"), &request).unwrap();
    assert_eq!(answer, Sequenced::Reconcile(LeaseStatus::default()));
}

#[test]
fn fences_grow_when_the_clock_falls_back() {
    let mut bench = Bench::new();
    let first = bench.run("n", job("a"));
    bench.now = Now::from_micros(500_000_000);
    bench.settle("n", "a", first, Change::Retry(Duration::ZERO));
    bench.advance(Duration::from_secs(1));
    assert!(bench.claim("n", "a").fence > first.fence);
}

#[test]
fn claims_come_earliest_first_and_the_answer_reports_more() {
    let mut bench = Bench::new();
    for (text, ms) in [("c", 3), ("a", 1), ("b", 2)] {
        bench.add(NewJob { due: Due::After(Duration::from_millis(ms)), ..job(text) });
    }
    bench.advance(Duration::from_millis(5));
    let answer = bench.transfer("n", 2);
    let ids: Vec<_> = answer.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!((ids, answer.more), (vec!["a", "b"], true));
    assert!(!bench.transfer("n", 2).more);
}

#[test]
fn rows_come_in_pages_in_order_of_their_ids() {
    let mut bench = Bench::new();
    for text in ["b", "d", "a", "c"] {
        bench.add(job(text));
    }
    bench.transfer("n", 10);
    let mut last_seen = bench.sequence("n");
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let request = Reconcile { last_seen, after, limit: 3 };
        let Sequenced::Done(page) = bench.topic.reconcile(bench.now, &node("n"), &request).unwrap() else {
            panic!("the sequence number is current")
        };
        last_seen = page.lease_status.sequence;
        rows.extend(page.rows.into_iter().map(|(id, _)| id.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(rows, ["a", "b", "c", "d"]);
    let late = Reconcile { last_seen: Sequence(1), after: Some(RowCursor::behind(&id("a"))), limit: 3 };
    assert!(matches!(bench.topic.reconcile(bench.now, &node("n"), &late), Ok(Sequenced::Reconcile(_))));
}

#[test]
fn an_unused_sequence_number_is_forgotten_after_a_day() {
    let mut bench = Bench::new();
    bench.reconcile("n");
    bench.advance(Duration::from_secs(24 * 3_600));
    bench.reconcile("other");
    assert_eq!(bench.sequence("n"), Sequence(0));
}

#[test]
fn jobs_past_their_retention_are_pruned() {
    let mut bench = Bench::new();
    for text in ["a", "b", "c"] {
        let token = bench.run("n", job(text));
        bench.settle("n", text, token, Change::Dead);
        bench.advance(Duration::from_secs(1));
    }
    assert_eq!(bench.sweep("n", LEASE).pruned_dead, 1);
    assert_eq!(bench.state("a"), None);
    bench.advance(Duration::from_secs(3_600));
    assert_eq!(bench.sweep("n", LEASE).pruned_dead, 2);
}
