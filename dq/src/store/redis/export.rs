//! Pages of jobs, and the query `export` (rule 27), which reads the same pages, over the shared connection.

use super::RedisStore;
use super::keys::Key;
use super::reply::Reply;
use super::scripts::{Step, TopicScripts};
use crate::job::{Delivery, Fence, JobId, NodeId, Progress, TopicKey};
use crate::store::{
    AddedJob, CopyPlace, Cursor, End, Ended, ExportRequest, Exported, HeldJob, JobCopy, PendingCommand, Replacement,
    StoreError, plain,
};
use crate::time::Timestamp;

/// The rows of how many nodes a page of RUNNING reads at most.
const NODES_A_PAGE: usize = 16;

/// A page of RUNNING.
#[derive(Default)]
pub(super) struct Runs {
    pub(super) held: Vec<(NodeId, HeldJob)>,
    pub(super) next: Option<Cursor>,
    clock: Timestamp,
    fence: Fence,
}

impl RedisStore {
    pub(super) async fn export_of(&self, topic: &TopicKey, request: ExportRequest) -> Result<Exported, StoreError> {
        let (scripts, ExportRequest { part, after, limit, bytes }) = (self.scripts_of(topic), request);
        if let Some(place) = part.place() {
            let mut exported = self.placed_of(&scripts, place, after, limit, bytes, true).await?;
            self.note_taken(topic, &mut exported.copies).await?;
            return Ok(exported);
        }
        let Runs { held, next, clock, fence } = self.runs_of(&scripts, after, limit, bytes, true).await?;
        let jobs = held.len();
        let mut copies: Vec<_> = held.into_iter().flat_map(|(_, job)| job.given_back(clock)).collect();
        self.note_taken(topic, &mut copies).await?;
        Ok(Exported { copies, jobs, next, fence })
    }

    /// Notes until when the ids of these copies are taken.
    async fn note_taken(&self, topic: &TopicKey, copies: &mut [JobCopy]) -> Result<(), StoreError> {
        let ids: Vec<_> = copies.iter().map(|copy| &copy.id).collect();
        let ends = self.taken_until(topic, &ids).await?;
        copies.iter_mut().zip(ends).for_each(|(copy, end)| copy.taken_until = end);
        Ok(())
    }

    /// Until when these ids are taken.
    pub(super) async fn taken_until(
        &self,
        topic: &TopicKey,
        ids: &[&JobId],
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (keys, names) = (self.keyspace.of(topic), ids.iter().map(|id| id.as_str()).collect::<Vec<_>>());
        let ends = self.shards.read_key("taken", &keys, Key::Taken, "ZMSCORE", names).await?;
        let mut ends = Reply::list("taken", ends)?;
        // The half millisecond of a deleted job is no part of the time.
        ids.iter().map(|_| Ok(ends.score_or_nothing()?.map(|score| Timestamp::from_millis(score as u64)))).collect()
    }

    /// A page of one place, in order of time, then id. Only an export has crashes and the last fence.
    pub(super) async fn placed_of(
        &self,
        scripts: &TopicScripts,
        place: CopyPlace,
        after: Option<Cursor>,
        limit: usize,
        bytes: usize,
        is_export: bool,
    ) -> Result<Exported, StoreError> {
        let (records, key) = match place {
            CopyPlace::Delayed => (Key::Jobs, Key::Delayed),
            CopyPlace::Unacked => (Key::Jobs, Key::Unacked),
            CopyPlace::Dead => (Key::Jobs, Key::Dead),
            CopyPlace::Done => (Key::Jobs, Key::Done),
            CopyPlace::Broadcast => (Key::BroadcastJobs, Key::Broadcasts),
        };
        let names = [records, key, Key::Metadata, Key::Far, Key::FarJobs, Key::FarLeaves, Key::Crashes, Key::Meta];
        let names = names.map(|key| scripts.keys.name(key, ""));
        let call = scripts.call_on(Step::Page, names.into()).arg(limit.max(1));
        let call = match &after {
            Some(cursor) => call.arg(cursor.at.as_millis()).arg(&cursor.id),
            None => call.arg("").arg(""),
        };
        let letter = if place == CopyPlace::Delayed { "d" } else { "" };
        let call = call.arg(bytes).arg(letter).arg(if is_export { "e" } else { "" });
        let mut reply = self.shards.ask_list(call).await?;
        let (more, fence, mut rows) = (reply.is_set()?, fence(&mut reply)?, reply.nested()?);
        let (mut jobs, mut copies, mut next) = (0, Vec::new(), None);
        while rows.len() > 0 {
            let (id, at, record) = (rows.id()?, rows.time()?, rows.record_or_nothing()?);
            let (metadata, crashes) = (rows.bytes_or_nothing()?, crash_count(&rows.bytes_or_nothing()?));
            jobs += 1;
            let Ok(id) = id else { continue };
            next = Some(Cursor { at, id: id.to_string() });
            let Some(record) = record else { continue };
            copies.push(match place {
                CopyPlace::Broadcast => JobCopy { id, record, crashes: 0, place, at, taken_until: None },
                _ => JobCopy { id, record: record.under(&metadata), crashes, place, at, taken_until: None },
            });
        }
        Ok(Exported { copies, jobs, next: next.filter(|_| more), fence })
    }

    /// A page of RUNNING, node after node, in two scripts. Nodes keep running while it is read, so the pages do not show one moment. Only
    /// an export has crashes, pending commands and the last fence.
    pub(super) async fn runs_of(
        &self,
        scripts: &TopicScripts,
        after: Option<Cursor>,
        limit: usize,
        bytes: usize,
        is_export: bool,
    ) -> Result<Runs, StoreError> {
        let no_node = || StoreError::Other {
            operation: "page",
            source: "the cursor names no node, so another store gave it".into(),
        };
        let after = after.as_ref().map(|cursor| cursor.id.split_once('/').ok_or_else(no_node)).transpose()?;
        let (first, cursor) = after.unwrap_or_default();
        let behind = self.nodes_behind(scripts, first, NODES_A_PAGE + 1).await?;
        let first = (!first.is_empty()).then(|| NodeId::new(first));
        let mut nodes: Vec<_> = first.into_iter().chain(behind.into_iter().map(|(node, _)| node)).collect();
        let following = nodes.get(NODES_A_PAGE).cloned();
        nodes.truncate(NODES_A_PAGE);
        if nodes.is_empty() {
            return Ok(Runs::default());
        }
        let names = nodes.iter().cloned().collect();
        let call = scripts.call_with_nodes(Step::Rows, &names).arg(limit.max(1)).arg(cursor);
        let call = call.arg(bytes).arg(nodes.len()).arg(if is_export { "e" } else { "" });
        let mut reply = self.shards.ask_list(call).await?;
        let (at, cursor, clock) = (reply.count()?, reply.text()?, reply.time()?);
        let (fence, held) = (fence(&mut reply)?, held_jobs(reply.nested()?, &nodes)?);
        let next = at.checked_sub(1).map_or(following, |at| nodes.get(at).cloned());
        let next = next.map(|node| Cursor { at: Timestamp::EPOCH, id: format!("{node}/{cursor}") });
        Ok(Runs { held, next, clock, fence })
    }
}

/// The rows of a page, node after node, those of each in order of their ids. Rows without a record, or whose ids are not of dq, are
/// left out.
fn held_jobs(rows: Reply, nodes: &[NodeId]) -> Result<Vec<(NodeId, HeldJob)>, StoreError> {
    let mut held: Vec<_> = rows.each(|rows| {
        let (node, id, token) = (rows.count()?, rows.id()?, rows.text()?);
        let (record, metadata) = (rows.record_or_nothing()?, rows.bytes_or_nothing()?);
        let crashes = crash_count(&rows.bytes_or_nothing()?);
        let (command, new) = (rows.bytes_or_nothing()?, rows.record_or_nothing()?);
        let (end, replacing) = std::str::from_utf8(&command).ok().and_then(command_in).unwrap_or_default();
        let replacement = replacing.zip(new).map(|((conditional, deliver, due), record)| Replacement {
            job: AddedJob { record, due, deliver },
            conditional,
        });
        let job = id.ok().zip(record).map(|(id, record)| {
            let (record, pending) = (record.under(&metadata), PendingCommand { end, replacement });
            HeldJob { id, record, crashes, token: token.parse().ok(), pending }
        });
        Ok(node.checked_sub(1).and_then(|at| nodes.get(at).cloned()).zip(job))
    })?;
    held.sort_by(|(a, first), (b, second)| (a, &first.id).cmp(&(b, &second.id)));
    Ok(held)
}

/// What a replacement is beside its record: whether it is conditional, its delivery, its due time.
pub(super) type Replacing = (bool, Delivery, Timestamp);

/// Reads a pending command, which is `END FENCE : WHEN DELIVER DUE` without the blanks. Text that is none counts as none.
pub(super) fn command_in(text: &str) -> Option<(Option<End>, Option<Replacing>)> {
    let (end, replacement) = text.split_once(':')?;
    let mut fence = end.chars();
    let how = fence.next()?;
    let fence = match fence.as_str() {
        "" => None,
        fence => Some(Fence(fence.parse().ok()?)),
    };
    let end = match how {
        'a' => Some(End { how: Ended::Acked, fence }),
        'd' => Some(End { how: Ended::Deleted, fence }),
        'c' => Some(End { how: Ended::Cancelled, fence }),
        '-' => None,
        _ => return None,
    };
    let mut due = replacement.chars();
    let conditional = due.next() == Some('c');
    let deliver = due.next().and_then(Delivery::of_letter);
    let due = due.as_str().parse().ok().map(Timestamp::from_millis);
    Some((end, deliver.zip(due).map(|(deliver, due)| (conditional, deliver, due))))
}

/// The number in front of the sign of an isolated run, and of its notes.
pub(super) fn crash_count(text: &[u8]) -> u32 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let count = text.split_once(' ').map_or(text, |(count, _)| count);
    count.trim_end_matches(['+', '!']).parse().unwrap_or_default()
}

/// The progress of a run, behind its crashes and the number of its last note.
pub(super) fn progress_of(text: &[u8]) -> Option<Progress> {
    let (_, notes) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    Progress::read(&plain(notes.split_once(';')?.1))
}

/// The last fence of a topic, which may have given out none.
fn fence(reply: &mut Reply) -> Result<Fence, StoreError> {
    let text = reply.bytes_or_nothing()?;
    Ok(Fence(std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_command_is_read_as_the_scripts_write_it() {
        let read = |text| {
            let (end, replacement) = command_in(text)?;
            Some((end.map(|end| (end.how == Ended::Acked, end.fence)), replacement))
        };
        let due = Timestamp::from_millis(12);
        assert_eq!(read("a7:"), Some((Some((true, Some(Fence(7)))), None)));
        assert_eq!(read("d:"), Some((Some((false, None)), None)));
        assert_eq!(read("-:rt12"), Some((None, Some((false, Delivery::Both, due)))));
        assert_eq!(read("a7:cq12"), Some((Some((true, Some(Fence(7)))), Some((true, Delivery::Queue, due)))));
        for broken in ["", "a", "x:", "a-:", "ä:"] {
            assert_eq!(read(broken), None, "{broken}");
        }
        assert_eq!(read("c:rq"), Some((Some((false, None)), None)));
    }

    #[test]
    fn crashes_are_counted_without_their_sign() {
        assert_eq!([&b"3"[..], b"3+", b"12!", b"2! 7;3/4 +", b"", b"x"].map(crash_count), [3, 3, 12, 2, 0, 0]);
    }
}
