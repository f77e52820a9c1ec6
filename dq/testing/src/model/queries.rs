//! Compares what a store shows of a topic with the reference.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cluster::{job, node};
use super::exchange::{Connections, ModelAnswer};
use super::operation::JOBS;
use super::reference::Topic;
use dq::job::{JobId, State, TopicKey};
use dq::store::Answer::{Publish, Sweep, Transfer};
use dq::store::step::{Scan, Sequenced, Transferred, USUAL_BYTES};
use dq::store::{JobPlace, PageRequest, Store, StoreError, Stored};

/// How far a time to sleep may differ: a store may keep milliseconds.
const GRAIN: Duration = Duration::from_millis(1);

/// All jobs on the pages of all places, in the order of the pages.
pub(super) async fn pages(store: &dyn Store, key: &TopicKey) -> Result<Vec<(State, Vec<Stored>)>, StoreError> {
    let mut all = Vec::new();
    for state in State::ALL {
        let (mut jobs, mut after) = (Vec::new(), None);
        loop {
            let page =
                store.page(key, PageRequest { state, after: after.take(), limit: 3, bytes: USUAL_BYTES }).await?;
            jobs.extend(page.jobs);
            // A page that leads to itself shows jobs twice, and the comparison finds that.
            match page.next.filter(|_| jobs.len() < 1_000) {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        all.push((state, jobs));
    }
    Ok(all)
}

/// The jobs of all pages, by id.
pub(super) fn by_id(pages: &[(State, Vec<Stored>)]) -> BTreeMap<JobId, Stored> {
    pages.iter().flat_map(|(_, jobs)| jobs).map(|job| (job.id.clone(), job.clone())).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("{what}\n  expected {expected:?}\n  found    {found:?}")) }
}

/// Checks that everything the store shows matches the reference.
pub(super) async fn agree(
    store: &dyn Store,
    key: &TopicKey,
    connections: &mut Connections,
    pages: &[(State, Vec<Stored>)],
    topic: &Topic,
) -> Result<(), String> {
    let failed = |error: StoreError| format!("a query failed: {error}");
    for (state, jobs) in pages {
        same(&format!("the pages of {state}"), &topic.page(*state), jobs)?;
    }
    same("the counts", &topic.counts(), &store.counts(key).await.map_err(failed)?)?;
    let ids: Vec<_> = (0..JOBS).map(job).collect();
    let queries = store.get(key, &ids).await.map_err(failed)?;
    for (id, mut found) in ids.iter().zip(queries) {
        let expected = topic.query(id);
        // A query by id need not name the holder.
        if let (Some(found), Some(expected)) = (&mut found, &expected)
            && found.place == (JobPlace::Running { holder: None })
            && expected.place.state() == State::Running
        {
            found.place = expected.place.clone();
        }
        same(&format!("the query of {id}"), &expected, &found)?;
    }
    let scanned = connections.link(&node(0)).step(Scan).await.map_err(failed)?;
    let leases: BTreeMap<_, _> = scanned.leases.iter().cloned().collect();
    same("the leases", &topic.leases, &leases)?;
    same("records and places", &scanned.places, &scanned.records)?;
    let known = topic.jobs.len()..=topic.jobs.len() + topic.broadcasts.len();
    same("whether there is a record for every job", &true, &known.contains(&scanned.records))?;
    let listed = store.topics(&key.app).await.map_err(failed)?.contains(&key.topic);
    same("whether the topic holds anything", &!(topic.jobs.is_empty() && topic.broadcasts.is_empty()), &listed)
}

/// Checks that the answer is the expected one, except for what the contract leaves open: the order of jobs that are due in the
/// same millisecond, which of several leases with the same end is returned, and less than a millisecond of a sleep.
pub(super) fn same_answer(expected: &ModelAnswer, found: &ModelAnswer, topic: &Topic) -> Result<(), String> {
    let mut found = found.clone();
    match (expected, &mut found) {
        (
            ModelAnswer::Step(Transfer(Sequenced::Done(expected))),
            ModelAnswer::Step(Transfer(Sequenced::Done(found))),
        ) => {
            normalize(expected, found, topic)?;
        }
        (ModelAnswer::Step(Sweep(Sequenced::Done(_))), ModelAnswer::Step(Sweep(Sequenced::Done(found)))) => {
            same(
                "whether the longest parked came first",
                &true,
                &found.claims.is_sorted_by_key(|claim| claim.token.due),
            )?;
            found.claims.sort_by_key(|claim| (claim.token.due, claim.id.clone()));
        }
        (ModelAnswer::Step(Publish(expected)), ModelAnswer::Step(Publish(found)))
            if expected.sleep.abs_diff(found.sleep) < GRAIN =>
        {
            found.sleep = expected.sleep;
        }
        _ => {}
    }
    same("the answer", expected, &found)
}

/// Gives the found answer the order, sleep and lease of the expected one where the contract allows both.
fn normalize(expected: &Transferred, found: &mut Transferred, topic: &Topic) -> Result<(), String> {
    same("whether the earliest due came first", &true, &found.claims.is_sorted_by_key(|claim| claim.token.due))?;
    found.claims.sort_by_key(|claim| (claim.token.due, claim.id.clone()));
    if expected.sleep.abs_diff(found.sleep) < GRAIN {
        found.sleep = expected.sleep;
    }
    if let (Some((first, end)), Some((other, found_end))) = (&expected.foreign_lease, &found.foreign_lease)
        && first != other
        && end == found_end
        && topic.leases.get(other) == Some(found_end)
    {
        found.foreign_lease = Some((first.clone(), *end));
    }
    Ok(())
}
