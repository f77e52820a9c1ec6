//! What a store shows of a topic, and whether two stores show and answer the same.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cluster::{job, node};
use super::exchange::{Connections, ModelAnswer};
use super::operation::{AGEING, JOBS};
use dq::job::{NodeId, State};
use dq::store::Answer::{Publish, Reconcile, Sweep, Transfer};
use dq::store::step::{Claim, DEFAULT_BYTES, Scan, Sequenced, Transferred};
use dq::store::{PageRequest, StoreError, Stored, TopicCounts};
use dq::time::Timestamp;

/// How far a time to sleep may differ: a store may keep milliseconds.
const GRAIN: Duration = Duration::from_millis(1);

/// What a store shows of a topic.
#[derive(Debug)]
pub(super) struct Shown {
    /// The jobs on the pages of each place, in the order of the pages.
    pub(super) pages: [(State, Vec<Stored>); 5],
    pub(super) counts: TopicCounts,
    /// The query of each id.
    pub(super) queries: Vec<Option<Stored>>,
    pub(super) leases: BTreeMap<NodeId, Timestamp>,
    pub(super) records: usize,
    pub(super) places: usize,
    /// Whether the topic is listed.
    pub(super) listed: bool,
}

impl Shown {
    pub(super) async fn by(connections: &mut Connections) -> Result<Self, StoreError> {
        let (store, key) = (connections.store.clone(), connections.key.clone());
        let mut pages = State::ALL.map(|state| (state, Vec::new()));
        for (state, jobs) in &mut pages {
            let mut after = None;
            loop {
                let request = PageRequest { state: *state, after: after.take(), limit: 3, bytes: DEFAULT_BYTES };
                let page = store.page(&key, request).await?;
                jobs.extend(page.jobs);
                // A page that leads to itself shows jobs twice, and the comparison finds that.
                match page.next.filter(|_| jobs.len() < 1_000) {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        let ids: Vec<_> = (0..JOBS).map(job).collect();
        let scanned = connections.link(&node(0)).step(Scan).await?;
        Ok(Self {
            pages,
            counts: store.counts(&key).await?,
            queries: store.get(&key, &ids).await?,
            leases: scanned.leases.into_iter().collect(),
            records: scanned.records,
            places: scanned.places,
            listed: store.topics(&key.app).await?.contains(&key.topic),
        })
    }

    /// Checks that a store shows the same as the memory store, which is this one.
    pub(super) fn same_as(&self, found: &Self) -> Result<(), String> {
        same("the pages", &self.pages, &found.pages)?;
        same("the counts", &self.counts, &found.counts)?;
        same("the queries by id", &self.queries, &found.queries)?;
        same("the leases", &self.leases, &found.leases)?;
        same("records and places", &found.places, &found.records)?;
        let known = self.records..=self.records + self.counts.broadcasts;
        same("whether there is a record for every job", &true, &known.contains(&found.records))?;
        same("whether the topic holds anything", &self.listed, &found.listed)
    }
}

pub(super) fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("{what}\n  expected {expected:?}\n  found    {found:?}")) }
}

/// Checks that the answer is the expected one, except for what the contract leaves open: the order of jobs that are due in the
/// same millisecond, which of several leases with the same end is returned, and less than a millisecond of a sleep.
pub(super) fn same_answer(
    expected: &ModelAnswer,
    found: &ModelAnswer,
    leases: &BTreeMap<NodeId, Timestamp>,
) -> Result<(), String> {
    let mut found = found.clone();
    match (expected, &mut found) {
        (
            ModelAnswer::Step(Transfer(Sequenced::Done(expected))),
            ModelAnswer::Step(Transfer(Sequenced::Done(found))),
        ) => {
            normalize(expected, found, leases)?;
        }
        (ModelAnswer::Step(Sweep(Sequenced::Done(_))), ModelAnswer::Step(Sweep(Sequenced::Done(found)))) => {
            same(
                "whether the longest parked came first",
                &true,
                &found.claims.is_sorted_by_key(|claim| claim.token.due),
            )?;
            found.claims.sort_by_key(|claim| (claim.token.due, claim.id.clone()));
        }
        // No other program empties the memory store.
        (
            ModelAnswer::Step(Reconcile(Sequenced::Done(expected))),
            ModelAnswer::Step(Reconcile(Sequenced::Done(found))),
        ) => {
            found.born = expected.born;
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
fn normalize(
    expected: &Transferred,
    found: &mut Transferred,
    leases: &BTreeMap<NodeId, Timestamp>,
) -> Result<(), String> {
    let rank = |claim: &Claim| claim.token.due.after(AGEING * claim.record.priority() as u32);
    same("whether the claims came in their order", &true, &found.claims.is_sorted_by_key(rank))?;
    let place = |claim: &Claim| (rank(claim), claim.record.priority(), claim.id.clone());
    found.claims.sort_by_key(place);
    if expected.sleep.abs_diff(found.sleep) < GRAIN {
        found.sleep = expected.sleep;
    }
    if let (Some((first, end)), Some((other, found_end))) = (&expected.foreign_lease, &found.foreign_lease)
        && first != other
        && end == found_end
        && leases.get(other) == Some(found_end)
    {
        found.foreign_lease = Some((first.clone(), *end));
    }
    Ok(())
}
