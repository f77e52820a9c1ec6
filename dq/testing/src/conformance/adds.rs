//! Adds of unknown ids, independence of topics and apps, and batches over the limit (rules 1, 4, 5).

use super::producer::{delayed, detailed, job, replacing, retained, with_metadata, with_payload};
use super::topic::{Topic, id, ms, secs};
use dq::job::{AppName, Codec, Fence, JobId, JobState, Metadata, Record, State};
use dq::store::step::{Change, RejoinDue};
use dq::store::{AddOutcome, Due, NewJob};

/// An added job waits until its delay has passed, with the record it came with (step `add`).
pub async fn added_job_waits_with_its_record(t: &Topic) {
    assert_eq!(t.add_job(delayed("a", secs(30))).await, AddOutcome::Added);
    let stored = t.stored("a").await;
    assert_eq!(stored.place, JobState::Delayed { due: t.in_ms(30_000) });
    assert_eq!(stored.record, delayed("a", secs(30)).record);
    // The parking fence belongs to the store, whatever the new metadata say.
    let parked = Metadata { parked_by: Some(Fence(7)), ..Metadata::default() };
    for (name, expires_after) in [("b", None), ("c", Some(secs(60)))] {
        let record = Record::new(&parked, Codec::Json, b"1");
        assert_eq!(t.add_job(NewJob { record, expires_after, ..job(name) }).await, AddOutcome::Added);
        assert_eq!(t.metadata(name).await.parked_by, None);
    }
}

/// A due time rounds up to the millisecond and *now* rounds down, so rounding never makes a job early (rule 4).
pub async fn due_time_rounds_up_and_now_rounds_down(t: &Topic) {
    t.advance(std::time::Duration::from_micros(400)).await;
    t.add_job(NewJob { expires_after: Some(secs(1)), ..delayed("a", ms(5)) }).await;
    assert_eq!(t.due("a").await, t.in_ms(6));
    assert_eq!(t.metadata("a").await.expires_at, Some(t.in_ms(1_006)), "counted from the due time");
    t.set_clock(t.micros() + 5_599).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.set_clock(t.micros() + 1).await;
    t.claim("n", "a").await;
}

/// A job without a delay is due now and not at the next millisecond, when it is added and when it is rejoined (rule 4).
pub async fn job_without_a_delay_is_due_now(t: &Topic) {
    t.advance(std::time::Duration::from_micros(400)).await;
    t.add_later("a", ms(0)).await;
    assert_eq!(t.due("a").await, t.now());
    let claim = t.claim("n", "a").await;
    t.end("n", &claim, Change::Rejoin(RejoinDue::After(ms(0)))).await;
    assert_eq!(t.due("a").await, t.now());
    t.claim("n", "a").await;
}

/// The store keeps a due time that is given as a time; a past one becomes *now* (rule 4).
pub async fn past_due_time_becomes_now(t: &Topic) {
    t.add_job(NewJob { due: Due::At(t.in_ms(700)), ..job("a") }).await;
    t.add_job(NewJob { due: Due::At(dq::time::Timestamp::from_millis(7)), ..job("b") }).await;
    assert_eq!(t.due("a").await, t.in_ms(700));
    assert_eq!(t.due("b").await, t.now());
}

/// The answer has one outcome for each job of the batch, in order (step `add`).
pub async fn batch_is_answered_job_by_job(t: &Topic) {
    t.add("b").await;
    let outcomes = t.add_all(vec![job("a"), job("b"), job("c")]).await;
    assert_eq!(outcomes, [AddOutcome::Added, AddOutcome::Exists(State::Delayed), AddOutcome::Added]);
}

/// If a batch names an id twice, the store adds the first job and answers *repeated* for the others, even for a replacement (rule 1).
pub async fn id_repeated_in_a_batch_is_added_once(t: &Topic) {
    let batch = vec![with_payload("a", "first"), job("b"), with_payload("a", "second"), replacing("a", "third")];
    let outcomes = t.add_all(batch).await;
    assert_eq!(outcomes, [AddOutcome::Added, AddOutcome::Added, AddOutcome::Repeated, AddOutcome::Repeated]);
    assert_eq!(t.payload("a").await, "first");
}

/// A job with a generated id is added like any other; the store need not search for an older job (step `add`).
pub async fn generated_ids_are_added(t: &Topic) {
    let new = |count| NewJob { id: JobId::generated(count, 7), generated: true, ..job("x") };
    assert_eq!(t.add_all(vec![new(0), new(1)]).await, [AddOutcome::Added, AddOutcome::Added]);
    let ids = t.claimed_ids("n").await;
    assert_eq!(ids, [new(0).id.to_string(), new(1).id.to_string()]);
}

/// The store keeps `expires_after` as a time, counted from the first due time, and no rejoin or retry moves it (rule
/// 4).
pub async fn expiry_is_stored_as_a_time(t: &Topic) {
    use dq::store::step::RejoinDue;
    let expires = t.in_ms(9_000);
    t.add_job(NewJob { expires_after: Some(secs(4)), ..delayed("a", secs(5)) }).await;
    assert_eq!(t.metadata("a").await.expires_at, Some(expires));
    t.advance(secs(5)).await;
    let claim = t.claim("n", "a").await;
    assert_eq!(claim.record.metadata().map(|metadata| metadata.expires_at), Ok(Some(expires)));
    t.end("n", &claim, Change::Rejoin(RejoinDue::After(secs(2)))).await;
    assert_eq!(t.metadata("a").await.expires_at, Some(expires));
    t.advance(secs(2)).await;
    let claim = t.claim("n", "a").await;
    let metadata = Metadata { attempts: 1, ..t.metadata("a").await };
    t.end_with("n", &claim, Change::Retry(secs(3)), metadata).await;
    assert_eq!(t.metadata("a").await.expires_at, Some(expires));
}

/// The store lets a node claim an expired job: the node compares the expiry with the clock in the answer (rule 4).
pub async fn expired_job_is_claimed(t: &Topic) {
    t.add_job(NewJob { expires_after: Some(secs(1)), ..job("a") }).await;
    t.advance(secs(5)).await;
    let claim = t.claim("n", "a").await;
    assert!(claim.record.metadata().is_ok_and(|metadata| metadata.expires_at < Some(t.now())));
}

/// The metadata of an added job stay as they are (step `add`).
pub async fn metadata_of_an_added_job_is_kept(t: &Topic) {
    let metadata = Metadata { delay: ms(1_500), ..detailed() };
    t.add_job(with_metadata("a", &metadata)).await;
    assert_eq!(t.metadata("a").await, metadata);
    assert_eq!(t.claim("n", "a").await.record.metadata(), Ok(metadata));
}

/// The store refuses a record that does not decode, or keeps it as it is; either way it adds the rest of the batch
/// (rule 1).
pub async fn unreadable_record_does_not_affect_its_batch(t: &Topic) {
    let mangled = Record::from_bytes(bytes::Bytes::from_static(b"what?"));
    let outcomes = t.add_all(vec![job("a"), NewJob { record: mangled.clone(), ..job("b") }, job("c")]).await;
    assert_eq!((&outcomes[0], &outcomes[2]), (&AddOutcome::Added, &AddOutcome::Added));
    match &outcomes[1] {
        AddOutcome::Refused(_) => assert_eq!(t.state("b").await, None),
        outcome => {
            assert_eq!(outcome, &AddOutcome::Added);
            let claims = t.claims("n").await;
            assert!(claims.iter().any(|claim| claim.record == mangled));
        }
    }
}

/// A payload of any bytes comes back unchanged (step `add`).
pub async fn payload_of_any_bytes_comes_back(t: &Topic) {
    let payload: Vec<u8> = (0..=255).chain([0, b'\r', b'\n', 0]).collect();
    let record = Record::new(&Metadata::default(), Codec::Json, &payload);
    t.add_job(NewJob { record: record.clone(), ..job("a") }).await;
    assert_eq!(t.stored("a").await.record, record);
    assert_eq!(t.claim("n", "a").await.record, record);
}

/// An id can be any text: long, with spaces, or with characters that a store uses as separators (step `add`).
pub async fn id_can_be_any_text(t: &Topic) {
    let long = "x".repeat(256);
    for name in ["a b", "n/a", "{a}:b", "é☂", "-1", &long] {
        t.add_and_run("n", name, Change::Ack).await;
        assert_eq!(t.state(name).await, None);
    }
}

/// Topics of one store are independent: each has its own jobs, sequence numbers, leases and call numbers (step `add`).
pub async fn topics_are_independent(t: &Topic) {
    let other = t.beside("conformance", "another").await;
    t.add_job(with_payload("a", "ours")).await;
    other.add_job(with_payload("a", "theirs")).await;
    let ours = t.claim("n", "a").await;
    assert_eq!(other.payload("a").await, "theirs");
    assert_eq!(other.state("a").await, Some(State::Delayed));
    assert_eq!(other.lease("n").await, None);
    let theirs = other.claim("n", "a").await;
    t.end("n", &ours, Change::Ack).await;
    assert_eq!(other.state("a").await, Some(State::Running));
    other.end("n", &theirs, Change::Dead).await;
    assert_eq!((t.state("a").await, other.state("a").await), (None, Some(State::Dead)));
    other.close().await;
}

/// App `a` with topic `b:c` and app `a:b` with topic `c` cannot be confused: the name of an app has no `:` (step
/// `add`).
pub async fn apps_are_independent(t: &Topic) {
    assert!(AppName::new("a:b").is_err());
    let (one, two) = (t.beside("a", "b:c").await, t.beside("a.b", "c").await);
    one.add("x").await;
    assert_eq!(two.state("x").await, None);
    two.add_job(retained("x")).await;
    assert_eq!(t.store.topics(&one.key.app).await.expect("topics is answered"), std::slice::from_ref(&one.key.topic));
    assert_eq!(t.store.topics(&two.key.app).await.expect("topics is answered"), std::slice::from_ref(&two.key.topic));
    one.close().await;
    two.close().await;
}

/// The list of an app's topics is in order and has only those that hold a job or a broadcast (query `topics`).
pub async fn topics_that_hold_something_are_listed_in_order(t: &Topic) {
    let (b, a, empty) = (t.beside("app", "b").await, t.beside("app", "a").await, t.beside("app", "c").await);
    b.add("x").await;
    a.running("n", "x").await;
    assert_eq!(empty.find("x").await, None);
    let listed = t.store.topics(&a.key.app).await.expect("topics is answered");
    assert_eq!(listed, [a.key.topic.clone(), b.key.topic.clone()]);
    assert_eq!(t.store.get(&empty.key, &[id("x")]).await.expect("get is answered"), [None]);
}

/// A page of the topics begins behind any name, has as many as were asked for, and says where names may follow (query
/// `topics_behind`). The pages together have each topic once, and none that holds nothing.
pub async fn topics_are_listed_behind_a_name(t: &Topic) {
    for name in ["pages-d", "pages-b", "pages-e", "pages-a"] {
        t.beside("app", name).await.add("x").await;
    }
    let emptied = t.beside("app", "pages-c").await;
    emptied.add_and_run("n", "x", Change::Ack).await;
    let app = &emptied.key.app;
    let (mut seen, mut after) = (Vec::new(), None::<String>);
    for _ in 0..10 {
        let page = t.store.topics_behind(app, after.as_deref(), 2).await.expect("topics_behind is answered");
        assert!(page.names.len() <= 2, "{page:?}");
        seen.extend(page.names.into_iter().map(|name| name.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((seen, after), (["pages-a", "pages-b", "pages-d", "pages-e"].map(String::from).to_vec(), None));
    let behind = t.store.topics_behind(app, Some("pages-bb"), 1).await.expect("topics_behind is answered");
    assert_eq!(behind.names.iter().map(dq::job::TopicName::as_str).collect::<Vec<_>>(), ["pages-d"]);
    let all = t.store.topics_behind(app, Some("pages-d"), 500).await.expect("topics_behind is answered");
    assert_eq!((all.names.len(), all.next), (1, None), "the last page says that it is the last");
}

/// A topic can be opened again without harm.
pub async fn topic_can_be_opened_again(t: &Topic) {
    t.add("a").await;
    t.store.open(&t.key).await.expect("the topic opens");
    t.claim("n", "a").await;
}
