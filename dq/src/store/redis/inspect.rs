//! The queries about a topic, over the shared connection.

use super::keys::{Key, Keys};
use super::producer::state;
use super::reply::{Reply, fence_of, malformed};
use super::scripts::Step;
use super::{RedisStore, within};
use crate::job::{JobId, NodeId, State, TopicKey};
use crate::store::{Cursor, JobPlace, Page, PageRequest, StoreError, Stored, TopicCounts};
use crate::time::Timestamp;

impl RedisStore {
    pub(super) async fn get_by_ids(&self, topic: &TopicKey, ids: &[JobId]) -> Result<Vec<Option<Stored>>, StoreError> {
        within("the number of ids", ids.len())?;
        let mut call = self.scripts.call(Step::Get, &self.keyspace.of(topic), "");
        ids.iter().for_each(|id| call.push(id.as_str()));
        let mut reply = self.queries.ask_list(call).await?;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(mut job) = reply.nested_or_nothing()? else {
                found.push(None);
                continue;
            };
            let (letter, at) = (job.text()?, job.time()?);
            let state =
                letter.chars().next().and_then(state).ok_or_else(|| malformed("get", "the state is unknown"))?;
            found.push(Some(Stored { id: id.clone(), record: job.record()?, place: place(state, at) }));
        }
        Ok(found)
    }

    pub(super) async fn page_of(&self, topic: &TopicKey, request: PageRequest) -> Result<Page, StoreError> {
        within("the limit of a page", request.limit)?;
        let (keys, limit) = (self.keyspace.of(topic), request.limit.max(1));
        let key = match request.state {
            State::Running => return self.page_of_running(&keys, request.after, limit).await,
            State::Delayed => Key::Delayed,
            State::Unacked => Key::Unacked,
            State::Dead => Key::Dead,
            State::Done => Key::Done,
        };
        let names = vec![keys.name(Key::Jobs, ""), keys.name(key, "")];
        let call = self.scripts.call_on(Step::Page, names, &keys).arg(limit);
        let call = match &request.after {
            Some(cursor) => call.arg(cursor.at.as_millis()).arg(&cursor.id),
            None => call.arg("").arg(""),
        };
        let mut reply = self.queries.ask_list(call).await?;
        let (mut ids, mut times, mut records) = (reply.nested()?, reply.nested()?, reply.nested()?);
        let more = reply.is_set()?;
        let (mut jobs, mut next) = (Vec::with_capacity(ids.len()), None);
        while ids.len() > 0 {
            let (id, at, record) = (ids.id()?, times.time()?, records.record_or_nothing()?);
            let Ok(id) = id else { continue };
            next = Some(Cursor { at, id: id.to_string() });
            jobs.extend(record.map(|record| Stored { id, record, place: place(request.state, at) }));
        }
        Ok(Page { jobs, next: next.filter(|_| more) })
    }

    /// A page of RUNNING, node after node, in order of the ids. Nodes go on while it is read, so it does not show one
    /// moment.
    async fn page_of_running(&self, keys: &Keys, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let after = match &after {
            Some(cursor) => Some(cursor.id.split_once('/').ok_or_else(|| StoreError::Other {
                operation: "page",
                source: "the cursor names no node, so another store gave it".into(),
            })?),
            None => None,
        };
        let mut jobs = Vec::new();
        for node in self.holders(keys).await? {
            let last_id = match after {
                Some((last, _)) if node.as_str() < last => continue,
                Some((last, id)) if node.as_str() == last => id,
                _ => "",
            };
            let call = self.scripts.call(Step::Rows, keys, node.as_str()).arg(limit + 1 - jobs.len()).arg(last_id);
            let mut reply = self.queries.ask_list(call).await?;
            let (mut ids, mut tokens, mut records) = (reply.nested()?, reply.nested()?, reply.nested()?);
            while ids.len() > 0 {
                let (id, token, record) = (ids.id()?, tokens.text()?, records.record_or_nothing()?);
                let holder = Some((node.clone(), fence_of(&token)));
                let place = JobPlace::Running { holder };
                jobs.extend(id.ok().zip(record).map(|(id, record)| Stored { id, record, place }));
            }
            if jobs.len() > limit {
                break;
            }
        }
        let more = jobs.len() > limit;
        jobs.truncate(limit);
        let cursor = |job: &Stored| match &job.place {
            JobPlace::Running { holder: Some((node, _)) } => {
                Some(Cursor { at: Timestamp::EPOCH, id: format!("{node}/{}", job.id) })
            }
            _ => None,
        };
        let next = jobs.last().filter(|_| more).and_then(cursor);
        Ok(Page { jobs, next })
    }

    /// All nodes with a lease, in order.
    async fn holders(&self, keys: &Keys) -> Result<Vec<NodeId>, StoreError> {
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(keys.name(Key::Leases, "")).arg(0).arg(-1);
        let mut reply = Reply::list("page", self.queries.command("page", &cmd).await?)?;
        let mut nodes = Vec::with_capacity(reply.len());
        while reply.len() > 0 {
            nodes.push(reply.node()?);
        }
        nodes.sort();
        Ok(nodes)
    }

    pub(super) async fn counts_of(&self, topic: &TopicKey) -> Result<TopicCounts, StoreError> {
        let mut reply = self.queries.ask_list(self.scripts.call(Step::Counts, &self.keyspace.of(topic), "")).await?;
        let (clock, jobs) = (reply.time()?, reply.count()?);
        let (delayed, ready) = (reply.count()?, reply.count()?);
        let (unacked, dead, done) = (reply.count()?, reply.count()?, reply.count()?);
        let broadcasts = reply.count()?;
        let head = u64::try_from(reply.int()?).ok().map(Timestamp::from_millis);
        let running = jobs.saturating_sub(delayed + unacked + dead + done);
        Ok(TopicCounts { clock, delayed, ready, running, unacked, dead, done, broadcasts, head })
    }
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
