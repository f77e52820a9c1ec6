//! What the code says of a topic, its schedules and what is kept of histories, and when a node says it: once the store has answered its
//! first transfer, and again when the store has lost what it knew of the topic. Then, and when the store's clock falls back, the node looks
//! for schedules whose next tick was computed while that clock was ahead (rule 30).

use std::sync::PoisonError;
use std::time::Duration;

use futures_util::future::join_all;

use super::define::{AGAIN, AGAIN_AFTER_FAILURE, CodeSchedule, define};
use super::error::{CallError, Doing};
use super::pages::stored;
use super::query::query;
use super::root::Caller;
use super::schedule_change::{comes_between, redefine};
use super::sending::passed;
use super::store_now::{DefinitionsWake, StoreNow, store_now};
use super::topic::TopicProvider;
use super::typed::Provider;
use crate::job::{JobId, JobState, TopicName};
use crate::schedule::{Definition, Overlap, schedule_name};
use crate::store::step::MAX_JOBS;
use crate::store::{HistorySetting, StoreError, Stored};
use crate::time::Timestamp;

/// A store that is found empty this long after another topic found it so was emptied again.
const QUIET: Duration = Duration::from_secs(60);
/// How often a schedule that runs is looked at again soon. One whose function makes a payload may run for long.
const SOON: u32 = 10;

/// What the code says of a topic.
#[derive(Debug)]
pub(crate) struct Definitions {
    pub(crate) topic: TopicName,
    pub(crate) schedules: Vec<CodeSchedule>,
    pub(crate) history: Option<HistorySetting>,
}

impl Provider {
    /// Looks after the definitions of a topic until the node or the provider ends.
    pub(crate) fn look_after(
        self,
        definitions: Definitions,
        wake: &DefinitionsWake,
    ) -> impl Future<Output = ()> + Send + 'static {
        let mut asked = wake.subscribe();
        async move {
            let Ok(caller) = self.caller(definitions.topic.as_str()) else { return };
            let now = StoreNow::new(asked.clone(), caller.environment().clone());
            let (mut is_first, mut losses) = (true, 0);
            while asked.changed().await.is_ok() {
                let lost = std::mem::replace(&mut losses, asked.borrow_and_update().losses()) != losses;
                let said = look(&caller, &definitions, &now, is_first, lost).await;
                match said {
                    Err(error) if error.is_stopped() => return,
                    Err(error) => {
                        let topic = &definitions.topic;
                        tracing::debug!(%topic, %error, "the definitions of the topic are looked at again when the store's clock falls back, or at the next start");
                    }
                    Ok(()) => {}
                }
                is_first = false;
            }
        }
    }
}

/// Says what the code says, and aligns the schedules of the topic. At its start the node has said what is kept of histories.
async fn look(
    caller: &Caller,
    definitions: &Definitions,
    now: &StoreNow,
    is_first: bool,
    is_lost: bool,
) -> Result<(), CallError> {
    if is_lost {
        name_emptied(caller);
        keep_history(caller, definitions.history, now).await?;
    }
    if is_first || is_lost {
        define(caller, &definitions.schedules, now).await?;
    }
    loop {
        let Err(error) = align(caller, now, !is_first).await else { return Ok(()) };
        if !asks_again(caller, now, &error).await {
            return Err(error);
        }
    }
}

/// Waits while the store is away. Returns whether to ask again.
async fn asks_again(caller: &Caller, now: &StoreNow, error: &CallError) -> bool {
    if now.is_over() || !error.of_store().is_some_and(StoreError::is_outage) {
        return false;
    }
    passed(caller.environment(), caller.environment().now() + AGAIN_AFTER_FAILURE).await;
    true
}

async fn keep_history(caller: &Caller, setting: Option<HistorySetting>, now: &StoreNow) -> Result<(), CallError> {
    let Some(setting) = setting else { return Ok(()) };
    loop {
        let target = caller.target(Doing::Change);
        let kept =
            query(&caller.root, target, None, setting, |store, key, setting, _| store.keep_history(key, *setting));
        let Err(error) = kept.await else { return Ok(()) };
        if !asks_again(caller, now, &error).await {
            return Err(error);
        }
    }
}

/// Names a store that was emptied: once for all topics of the node.
fn name_emptied(caller: &Caller) {
    let now = caller.environment().now();
    let said = caller.root.emptied.lock().unwrap_or_else(PoisonError::into_inner).replace(now);
    if said.is_none_or(|said| now >= said + QUIET) {
        tracing::warn!(topic = %caller.topic(), "the store was emptied: by FLUSHALL, a failover to an empty server, or a restart without persistence. The schedules and the `history` of the code are defined again; schedules that a call added, and settings that were made by hand, are gone");
    }
}

/// Aligns every schedule of the topic. With `waits` it waits for those that have a tick, because a node may have computed that by a clock that
/// was ahead.
async fn align(caller: &Caller, now: &StoreNow, waits: bool) -> Result<(), CallError> {
    let (mut after, mut left) = (None, Vec::new());
    loop {
        let ids = ids(caller, after).await?;
        left.extend(align_once(caller, &ids, now, waits).await?);
        if ids.len() < MAX_JOBS {
            break;
        }
        after = ids.last().cloned();
    }
    let mut tries = 0;
    while !left.is_empty() && !now.is_over() {
        let pause = if tries < SOON { AGAIN } else { AGAIN_AFTER_FAILURE };
        passed(caller.environment(), caller.environment().now() + pause).await;
        left = align_once(caller, &left, now, waits).await?;
        tries += 1;
    }
    Ok(())
}

/// The ids of the next schedules of the topic.
async fn ids(caller: &Caller, after: Option<JobId>) -> Result<Vec<JobId>, CallError> {
    query(&caller.root, caller.target(Doing::Query), None, after, |store, key, after, _| {
        store.schedules(key, after.as_ref(), MAX_JOBS)
    })
    .await
}

/// Looks at these schedules, and returns those that are to be looked at again.
async fn align_once(caller: &Caller, ids: &[JobId], now: &StoreNow, waits: bool) -> Result<Vec<JobId>, CallError> {
    let found = stored(caller, ids, None).await?;
    let (from, now) = (now.from(), now.get());
    let (mut again, mut each) = (Vec::new(), Vec::new());
    for stored in found.iter().flatten() {
        match stored.place {
            JobState::Running { .. } if waits => again.push(stored.id.clone()),
            _ => each.push(stored),
        }
    }
    let aligned = join_all(each.iter().map(|stored| align_to_clock(caller, stored, from, now))).await;
    for (stored, aligned) in each.into_iter().zip(aligned) {
        match aligned {
            Err(error) if comes_between(&error) => again.push(stored.id.clone()),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    Ok(again)
}

/// Lets a schedule wait for its next tick after `from`, if it waits for one that was computed while the store's clock was ahead. That clock
/// shows `now`. Returns whether it did.
async fn align_to_clock(caller: &Caller, found: &Stored, from: Timestamp, now: Timestamp) -> Result<bool, CallError> {
    let Some((definition, due, tick)) = ahead(found, from) else { return Ok(false) };
    let (was, topic) = (definition.tick, caller.topic());
    let aligned = Definition { tick, last: last_from_now(caller, &definition, now).await?, gap: None, ..definition };
    redefine(caller, found, &aligned, due, now, None, caller.root.deadline(None)).await?;
    let schedule = schedule_name(&found.id).unwrap_or_default();
    tracing::warn!(%topic, schedule, %was, next = %tick, "the schedule waits for its next tick again: the store's clock was ahead when a later one was computed. Ticks that came meanwhile come again, unless their jobs are still there");
    Ok(true)
}

/// The job of the last tick. One that is due later by the store's clock keeps no tick from its job.
async fn last_from_now(caller: &Caller, definition: &Definition, now: Timestamp) -> Result<Option<JobId>, CallError> {
    let Some(last) = definition.last.clone().filter(|_| definition.overlap == Overlap::Skip) else {
        return Ok(definition.last.clone());
    };
    let found = stored(caller, std::slice::from_ref(&last), None).await?.pop().flatten();
    let is_ahead = found.is_some_and(|job| matches!(job.place, JobState::Delayed { due } if due > now));
    Ok(Some(last).filter(|_| !is_ahead))
}

/// A schedule that waits for a tick which was computed while the store's clock was ahead.
#[derive(Debug)]
pub(crate) struct AheadSchedule {
    pub(crate) id: JobId,
    /// The tick for which it waits, and the next one by the clock.
    pub(crate) tick: Timestamp,
    pub(crate) next: Timestamp,
}

impl TopicProvider {
    /// Of the schedules behind `after` those that wait for such a tick, how many were looked at, and where the next page begins. Three commands.
    pub(crate) async fn schedules_ahead(
        &self,
        after: Option<JobId>,
    ) -> Result<(usize, Vec<AheadSchedule>, Option<JobId>), CallError> {
        let caller = &self.0;
        let ids = ids(caller, after).await?;
        if ids.is_empty() {
            return Ok((0, Vec::new(), None));
        }
        let now = store_now(caller, None).await?;
        let found = query(&caller.root, caller.target(Doing::Query), None, ids, |store, key, ids, _| {
            Box::pin(async move { Ok((store.get(key, ids).await?, ids.clone())) })
        });
        let (found, ids) = found.await?;
        let next =
            if found.len() < ids.len() || ids.len() == MAX_JOBS { ids.get(found.len().max(1) - 1) } else { None };
        let ahead = found.iter().flatten().filter_map(|stored| {
            let (Definition { tick, .. }, _, next) = ahead(stored, now)?;
            Some(AheadSchedule { id: stored.id.clone(), tick, next })
        });
        Ok((found.len(), ahead.collect(), next.cloned()))
    }

    /// Lets a schedule wait for its next tick by the store's clock, if it still waits for one that was computed while that clock was ahead.
    pub(crate) async fn align_schedule(&self, id: &JobId) -> Result<bool, CallError> {
        let now = store_now(&self.0, None).await?;
        match stored(&self.0, std::slice::from_ref(id), None).await?.pop().flatten() {
            None => Ok(false),
            Some(found) => match align_to_clock(&self.0, &found, now, now).await {
                // A tick or another change came between: it is not what was found.
                Err(error) if comes_between(&error) => Ok(false),
                aligned => aligned,
            },
        }
    }
}

/// A schedule, when it is due, and its next tick after `from`, if it waits for one that was computed while the store's clock was ahead.
fn ahead(found: &Stored, from: Timestamp) -> Option<(Definition, Timestamp, Timestamp)> {
    let JobState::Delayed { due } = found.place else { return None };
    let definition = Definition::read(&found.record).ok()?;
    let next = definition.tick_from_now(due, from)?;
    Some((definition, due, next))
}
