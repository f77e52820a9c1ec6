//! The queries about a topic, over the shared connection.

use super::export::crash_count;
use super::keys::Key;
use super::reply::{Reply, malformed, state};
use super::scripts::Step;
use super::{RedisStore, within};
use crate::job::{JobId, State, TopicKey};
use crate::store::step::USUAL_BYTES;
use crate::store::{Cursor, JobPlace, Page, PageRequest, StoreError, Stored, TopicCounts};
use crate::time::Timestamp;

impl RedisStore {
    pub(super) async fn get_by_ids(&self, topic: &TopicKey, ids: &[JobId]) -> Result<Vec<Option<Stored>>, StoreError> {
        within("the number of ids", ids.len())?;
        let mut call = self.scripts.call(Step::Get, &self.keyspace.of(topic), "").arg(USUAL_BYTES);
        ids.iter().for_each(|id| call.push(id.as_str()));
        let mut reply = self.queries.ask_list(call).await?;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids.iter().take(reply.len()) {
            let Some(mut job) = reply.nested_or_nothing()? else {
                found.push(None);
                continue;
            };
            let (letter, at) = (job.text()?, job.time()?);
            let state =
                letter.chars().next().and_then(state).ok_or_else(|| malformed("get", "the state is unknown"))?;
            let record = job.record()?.under(&job.bytes()?);
            let crashes = crash_count(&job.bytes()?);
            found.push(Some(Stored { id: id.clone(), record, place: place(state, at), crashes }));
        }
        Ok(found)
    }

    pub(super) async fn schedules_of(
        &self,
        topic: &TopicKey,
        after: Option<&JobId>,
        limit: usize,
    ) -> Result<Vec<JobId>, StoreError> {
        within("the limit of a page", limit)?;
        let from = after.map_or_else(|| "-".to_owned(), |id| format!("({id}"));
        let call = self.scripts.call(Step::Schedules, &self.keyspace.of(topic), "").arg(from).arg(limit.max(1));
        let mut reply = self.queries.ask_list(call).await?;
        let mut ids = Vec::with_capacity(reply.len());
        while reply.len() > 0 {
            // Only another program enters what is no id.
            ids.extend(reply.id()?.ok());
        }
        Ok(ids)
    }

    pub(super) async fn page_of(&self, topic: &TopicKey, request: PageRequest) -> Result<Page, StoreError> {
        within("the limit of a page", request.limit)?;
        let (keys, limit) = (self.keyspace.of(topic), request.limit.max(1));
        let key = match request.state {
            State::Running => return self.page_of_running(&keys, request.after, limit, request.bytes).await,
            State::Delayed => Key::Delayed,
            State::Unacked => Key::Unacked,
            State::Dead => Key::Dead,
            State::Done => Key::Done,
        };
        let names = [Key::Jobs, key, Key::Metadata, Key::Far, Key::FarJobs].map(|key| keys.name(key, "")).to_vec();
        let letter = if request.state == State::Delayed { "d" } else { "" };
        let call = self.scripts.call_on(Step::Page, names, &keys).arg(limit);
        let call = match &request.after {
            Some(cursor) => call.arg(cursor.at.as_millis()).arg(&cursor.id),
            None => call.arg("").arg(""),
        };
        let mut reply = self.queries.ask_list(call.arg(request.bytes).arg(letter)).await?;
        let (mut ids, mut times) = (reply.nested()?, reply.nested()?);
        let (mut records, mut overrides) = (reply.nested()?, reply.nested()?);
        let more = reply.is_set()?;
        let (mut jobs, mut next) = (Vec::with_capacity(ids.len()), None);
        while ids.len() > 0 {
            let (id, at, record) = (ids.id()?, times.time()?, records.record_or_nothing()?);
            let metadata = overrides.bytes_or_nothing()?;
            let Ok(id) = id else { continue };
            next = Some(Cursor { at, id: id.to_string() });
            let record = record.map(|record| record.under(&metadata));
            jobs.extend(record.map(|record| Stored { id, record, place: place(request.state, at), crashes: 0 }));
        }
        Ok(Page { jobs, next: next.filter(|_| more) })
    }

    pub(super) async fn counts_of(&self, topic: &TopicKey) -> Result<TopicCounts, StoreError> {
        let mut reply = self.queries.ask_list(self.scripts.call(Step::Counts, &self.keyspace.of(topic), "")).await?;
        counted(&mut reply)
    }
}

/// Reads what the part `counted` gives.
pub(super) fn counted(reply: &mut Reply) -> Result<TopicCounts, StoreError> {
    let (clock, jobs) = (reply.time()?, reply.count()?);
    let (delayed, ready) = (reply.count()?, reply.count()?);
    let (unacked, dead, done) = (reply.count()?, reply.count()?, reply.count()?);
    let broadcasts = reply.count()?;
    let head = u64::try_from(reply.int()?).ok().map(Timestamp::from_millis);
    let running = jobs.saturating_sub(delayed + unacked + dead + done);
    Ok(TopicCounts { clock, delayed, ready, running, unacked, dead, done, broadcasts, head })
}

const fn place(state: State, at: Timestamp) -> JobPlace {
    match state {
        State::Delayed => JobPlace::Delayed { due: at },
        State::Running => JobPlace::Running { holder: None },
        State::Unacked => JobPlace::Unacked { since: at },
        State::Dead => JobPlace::Dead { since: at },
        State::Done => JobPlace::Done { until: at },
    }
}
