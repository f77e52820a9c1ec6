//! Reads a topic: single jobs, pages, counts, and the audit that every store must pass after every step.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use super::topic::{Topic, id, lock};
use dq::job::{JobId, JobState, Metadata, State};
use dq::store::step::DEFAULT_BYTES;
use dq::store::{PageRequest, Stored, TopicCounts};
use dq::time::Timestamp;

impl Topic {
    /// The job, if it exists.
    pub async fn find(&self, name: &str) -> Option<Stored> {
        self.store.get(&self.key, &[id(name)]).await.expect("get is answered").remove(0)
    }

    /// The job, which must exist.
    pub async fn stored(&self, name: &str) -> Stored {
        self.find(name).await.unwrap_or_else(|| panic!("there is no job {name}"))
    }

    /// The state of the job, if it exists.
    pub async fn state(&self, name: &str) -> Option<State> {
        self.find(name).await.map(|job| job.place.state())
    }

    /// The place of the job, which must exist.
    pub async fn place(&self, name: &str) -> JobState {
        self.stored(name).await.place
    }

    /// The due time of the job, which must be DELAYED.
    pub async fn due(&self, name: &str) -> Timestamp {
        match self.place(name).await {
            JobState::Delayed { due } => due,
            other => panic!("{name} is not DELAYED: {other:?}"),
        }
    }

    /// The metadata of the job.
    pub async fn metadata(&self, name: &str) -> Metadata {
        self.stored(name).await.record.metadata().expect("the record is readable")
    }

    /// The payload of the job.
    pub async fn payload(&self, name: &str) -> String {
        let stored = self.stored(name).await;
        let (_, payload) = stored.record.payload().expect("the record is readable");
        String::from_utf8(payload.to_vec()).expect("payloads of the suite are text")
    }

    /// The number of jobs in each place.
    pub async fn counts(&self) -> TopicCounts {
        self.store.counts(&self.key).await.expect("counts is answered")
    }

    /// All jobs of a place, read in pages of `limit`. A RUNNING job may be on two pages, because a server may list a hash so that has
    /// just grown; it counts once.
    pub async fn pages(&self, state: State, limit: usize) -> Vec<Stored> {
        let mut listed = HashSet::new();
        let all = self.pages_of(state, limit, DEFAULT_BYTES).await.into_iter();
        all.filter(|job| listed.insert(job.id.clone()) || state != State::Running).collect()
    }

    /// All jobs of a place, as they are on pages of `limit` jobs and `bytes`.
    pub async fn pages_of(&self, state: State, limit: usize, bytes: usize) -> Vec<Stored> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let request = PageRequest { state, after: after.clone(), limit, bytes };
            let page = self.store.page(&self.key, request).await.expect("page is answered");
            assert!(page.jobs.len() <= limit, "a page of {} jobs over its limit of {limit}", page.jobs.len());
            let size: usize = page.jobs.iter().map(|job| job.record.as_bytes().len()).sum();
            assert!(size <= bytes || page.jobs.len() == 1, "{state}: {size} bytes, {bytes} were asked for");
            all.extend(page.jobs);
            assert!(page.next.is_none() || page.next != after, "a page of {state} leads to itself");
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    }

    /// The jobs that a node holds, as the pages of RUNNING show them.
    pub async fn rows(&self, node: &str) -> Vec<JobId> {
        let held =
            |job: &Stored| matches!(&job.place, JobState::Running { holder: Some((by, _)) } if by.as_str() == node);
        self.pages(State::Running, 100).await.into_iter().filter(held).map(|job| job.id).collect()
    }

    /// The audit after a step. Of a topic with hundreds of jobs it is left out after some steps, so that a loop over them costs no square of
    /// their number.
    pub(super) async fn audit_step(&self) {
        if self.left_out.load(Ordering::Relaxed) == 0 {
            self.audit().await;
            self.left_out.store(lock(&self.known).len() / 100, Ordering::Relaxed);
        } else {
            self.left_out.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Checks that every job is in exactly one place, and that pages, counts and queries by id agree about it (rule 2).
    pub async fn audit(&self) {
        let mut seen: BTreeMap<JobId, Stored> = BTreeMap::new();
        let mut sizes = BTreeMap::new();
        for state in State::ALL {
            let jobs = self.pages(state, 100).await;
            sizes.insert(state, jobs.len());
            for job in jobs {
                assert_eq!(job.place.state(), state, "{} is on a page of {state}", job.id);
                if let Some(other) = seen.insert(job.id.clone(), job) {
                    panic!("{} is in two places: {state} and {:?}", other.id, other.place);
                }
            }
        }
        let counts = self.counts().await;
        let counted = [counts.delayed, counts.running, counts.unacked, counts.dead, counts.done];
        assert_eq!(counted, State::ALL.map(|state| sizes[&state]), "counts and pages");
        let broadcasts = self.audit_queries(&seen).await;
        assert!(
            broadcasts <= counts.broadcasts,
            "{broadcasts} jobs are in no place, and {} broadcasts wait",
            counts.broadcasts
        );
    }

    /// Returns of how many ids a query shows the broadcast that waits: of those without a job, or whose job is DONE.
    async fn audit_queries(&self, seen: &BTreeMap<JobId, Stored>) -> usize {
        lock(&self.known).extend(seen.keys().cloned());
        let ids: Vec<JobId> = lock(&self.known).iter().cloned().collect();
        let (mut left, mut broadcasts) = (&ids[..], 0);
        while !left.is_empty() {
            let asked = &left[..left.len().min(1_000)];
            let found = self.store.get(&self.key, asked).await.expect("get is answered");
            assert!(!found.is_empty() && found.len() <= asked.len(), "get answers for one id at least");
            let (ids, rest) = left.split_at(found.len());
            left = rest;
            for (id, found) in ids.iter().zip(found) {
                let paged = seen.get(id);
                let has_ended = paged.is_none_or(|job| job.place.state() == State::Done);
                if has_ended && matches!(found, Some(Stored { place: JobState::Delayed { .. }, .. })) {
                    broadcasts += 1;
                    continue;
                }
                assert_eq!(found.as_ref().map(|job| &job.id), paged.map(|job| &job.id), "query and page of {id}");
                let (Some(found), Some(paged)) = (found, paged) else { continue };
                assert_eq!(found.record, paged.record, "record of {id}");
                assert_eq!(found.place.state(), paged.place.state(), "place of {id}");
                if found.place.state() != State::Running {
                    assert_eq!(found.place, paged.place, "place of {id}");
                }
            }
        }
        broadcasts
    }

    /// Checks the topic at the end of a behaviour: the audit, the store's own audit (rule 2), that the doctor can read every row (rule 1), and that
    /// exactly the nodes that hold jobs have a lease (rule 8).
    pub async fn close(&self) {
        self.audit().await;
        let scanned = self.scan().await;
        assert_eq!(scanned.records, scanned.places, "records and places");
        assert_eq!(self.foreign().await, [], "a store reads all that it writes");
        let mut leased: Vec<_> = scanned.leases.into_iter().map(|(node, _)| node).collect();
        leased.sort();
        let holder = |job: Stored| match job.place {
            JobState::Running { holder } => holder.expect("a page of RUNNING names the holder").0,
            other => panic!("a page of RUNNING has a job that is {other:?}"),
        };
        let mut holders: Vec<_> = self.pages(State::Running, 100).await.into_iter().map(holder).collect();
        holders.sort();
        holders.dedup();
        assert_eq!(leased, holders, "nodes with a lease and nodes with rows");
    }
}
