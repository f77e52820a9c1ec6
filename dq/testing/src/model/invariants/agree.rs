//! What the memory store shows agrees with where its jobs are.

use std::collections::BTreeSet;

use super::super::cluster::{Topic, job};
use super::super::operation::JOBS;
use super::super::queries::{Shown, same};
use dq::job::{JobId, JobState, State};
use dq::store::step::MAX_LEASE;
use dq::store::{Stored, TopicCounts};
use dq::testing::seam::JobView;

pub(super) fn agree(topic: &Topic, shown: &Shown) -> Result<(), String> {
    let (view, now) = (&topic.view, topic.now());
    same("whether slots, indexes and rows agree", &true, &view.consistent)?;
    let holders: BTreeSet<_> = view.jobs.values().filter_map(|job| job.row.as_ref()).map(|row| &row.node).collect();
    same("the nodes that have a lease", &holders, &view.leases.keys().collect())?;
    same("the leases", &view.leases, &shown.leases)?;
    let longest = view.leases.values().all(|end| *end <= now.after(MAX_LEASE));
    same("whether every lease is at most the longest one", &true, &longest)?;
    for (state, jobs) in &shown.pages {
        let on_page =
            |(id, job): (&JobId, &JobView)| (job.state == *state).then(|| Stored { crashes: 0, ..stored(id, job) });
        let mut expected: Vec<_> = view.jobs.iter().filter_map(on_page).collect();
        let holder = |id: &JobId| view.jobs[id].row.as_ref().map(|row| row.node.clone());
        expected.sort_by_key(|job| (view.jobs[&job.id].at, holder(&job.id), job.id.clone()));
        same(&format!("the pages of {state}"), &expected, jobs)?;
    }
    let of = |state| view.jobs.values().filter(move |job| job.state == state);
    let due = || of(State::Delayed).filter_map(|job| job.at);
    let counts = TopicCounts {
        clock: now,
        delayed: of(State::Delayed).count(),
        ready: due().filter(|due| *due <= now).count(),
        running: of(State::Running).count(),
        unacked: of(State::Unacked).count(),
        dead: of(State::Dead).count(),
        done: of(State::Done).count(),
        broadcasts: view.broadcasts.len(),
        head: due().min(),
    };
    same("the counts", &counts, &shown.counts)?;
    let queries: Vec<_> = (0..JOBS).map(|n| query(topic, &job(n))).collect();
    same("the queries by id", &queries, &shown.queries)?;
    same("records and places", &(view.jobs.len(), view.jobs.len()), &(shown.records, shown.places))?;
    same("whether the topic is listed", &!(view.jobs.is_empty() && view.broadcasts.is_empty()), &shown.listed)
}

fn stored(id: &JobId, job: &JobView) -> Stored {
    let at = job.at.unwrap_or_default();
    let place = match job.state {
        State::Running => JobState::Running { holder: job.row.as_ref().map(|row| (row.node.clone(), row.token.fence)) },
        state => JobState::of(state, at),
    };
    Stored { id: id.clone(), record: job.record.clone(), place, crashes: job.crashes, progress: None }
}

/// A job as a query by id shows it: a waiting broadcast counts as DELAYED and hides a DONE job.
fn query(topic: &Topic, id: &JobId) -> Option<Stored> {
    let broadcast = topic.view.broadcasts.get(id).map(|(due, record)| {
        let place = JobState::Delayed { due: *due };
        Stored { id: id.clone(), record: record.clone(), place, crashes: 0, progress: None }
    });
    let job = topic.view.jobs.get(id).filter(|job| job.state != State::Done || broadcast.is_none());
    let mut job = job.map(|job| stored(id, job));
    // A query by id does not name the holder.
    if let Some(JobState::Running { holder }) = job.as_mut().map(|job| &mut job.place) {
        *holder = None;
    }
    job.or(broadcast)
}
