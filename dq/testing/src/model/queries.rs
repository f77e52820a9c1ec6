//! What a store shows of a topic, against the reference.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cluster::{job, node};
use super::exchange::{Answer, Wires};
use super::operation::JOBS;
use super::reference::Topic;
use dq::job::{JobId, State, TopicKey};
use dq::store::step::{Scan, Sequenced, Transferred};
use dq::store::{JobPlace, PageRequest, Store, StoreError, Stored};

/// The nearest that a told time to sleep must be: a store may keep milliseconds.
const GRAIN: Duration = Duration::from_millis(1);

/// Every job that the pages of all places show, each in its order.
pub(super) async fn pages(store: &dyn Store, key: &TopicKey) -> Result<Vec<(State, Vec<Stored>)>, StoreError> {
    let mut all = Vec::new();
    for state in State::ALL {
        let (mut jobs, mut after) = (Vec::new(), None);
        loop {
            let page = store.page(key, PageRequest { state, after: after.take(), limit: 3 }).await?;
            jobs.extend(page.jobs);
            // A page that leads nowhere shows jobs twice, and that is found.
            match page.next.filter(|_| jobs.len() < 1_000) {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        all.push((state, jobs));
    }
    Ok(all)
}

/// The jobs of all pages by id.
pub(super) fn by_id(pages: &[(State, Vec<Stored>)]) -> BTreeMap<JobId, Stored> {
    pages.iter().flat_map(|(_, jobs)| jobs).map(|job| (job.id.clone(), job.clone())).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("{what}\n  expected {expected:?}\n  found    {found:?}")) }
}

/// Everything that can be seen is as the reference has it.
pub(super) async fn agree(
    store: &dyn Store,
    key: &TopicKey,
    wires: &mut Wires,
    pages: &[(State, Vec<Stored>)],
    topic: &Topic,
) -> Result<(), String> {
    let failed = |error: StoreError| format!("a look failed: {error}");
    for (state, jobs) in pages {
        same(&format!("the pages of {state}"), &topic.page(*state), jobs)?;
    }
    same("the counts", &topic.counts(), &store.counts(key).await.map_err(failed)?)?;
    let ids: Vec<_> = (0..JOBS).map(job).collect();
    let queries = store.get(key, &ids).await.map_err(failed)?;
    for (id, mut found) in ids.iter().zip(queries) {
        let expected = topic.query(id);
        // A look by id cannot always tell the holder.
        if let (Some(found), Some(expected)) = (&mut found, &expected)
            && found.place == (JobPlace::Running { holder: None })
            && expected.place.state() == State::Running
        {
            found.place = expected.place.clone();
        }
        same(&format!("the look for {id}"), &expected, &found)?;
    }
    let scanned = wires.link(&node(0)).scan(Scan).await.map_err(failed)?;
    let leases: BTreeMap<_, _> = scanned.leases.iter().cloned().collect();
    same("the leases", &topic.leases, &leases)?;
    same("records and places", &scanned.places, &scanned.records)?;
    let known = topic.jobs.len()..=topic.jobs.len() + topic.broadcasts.len();
    same("whether all jobs are records", &true, &known.contains(&scanned.records))?;
    let listed = store.topics(&key.app).await.map_err(failed)?.contains(&key.topic);
    same("whether the topic holds anything", &!(topic.jobs.is_empty() && topic.broadcasts.is_empty()), &listed)
}

/// The answer is the expected one, but for what the contract leaves open: the order of jobs that are due in the same
/// millisecond, which of the nodes whose leases end together is told, and less than a millisecond of a sleep.
pub(super) fn same_answer(expected: &Answer, found: &Answer, topic: &Topic) -> Result<(), String> {
    let mut found = found.clone();
    match (expected, &mut found) {
        (Answer::Transferred(Sequenced::Done(expected)), Answer::Transferred(Sequenced::Done(found))) => {
            level(expected, found, topic)?;
        }
        (Answer::Swept(Sequenced::Done(_)), Answer::Swept(Sequenced::Done(found))) => {
            same(
                "whether the longest parked came first",
                &true,
                &found.claims.is_sorted_by_key(|claim| claim.token.due),
            )?;
            found.claims.sort_by_key(|claim| (claim.token.due, claim.id.clone()));
        }
        (Answer::Published(expected), Answer::Published(found)) if expected.sleep.abs_diff(found.sleep) < GRAIN => {
            found.sleep = expected.sleep;
        }
        _ => {}
    }
    same("the answer", expected, &found)
}

fn level(expected: &Transferred, found: &mut Transferred, topic: &Topic) -> Result<(), String> {
    same("whether the earliest due came first", &true, &found.claims.is_sorted_by_key(|claim| claim.token.due))?;
    found.claims.sort_by_key(|claim| (claim.token.due, claim.id.clone()));
    if expected.sleep.abs_diff(found.sleep) < GRAIN {
        found.sleep = expected.sleep;
    }
    if let (Some((first, end)), Some((other, told))) = (&expected.foreign_lease, &found.foreign_lease)
        && first != other
        && end == told
        && topic.leases.get(other) == Some(told)
    {
        found.foreign_lease = Some((first.clone(), *end));
    }
    Ok(())
}
