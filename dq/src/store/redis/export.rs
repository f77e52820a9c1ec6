//! Pages of jobs, and the query `export` (rule 27), which reads the same pages, over the shared connection.

use bytes::Bytes;

use super::RedisStore;
use super::keys::Key;
use super::reply::{Readable, Text};
use super::scripts::{Step, TopicScripts};
use crate::job::{Delivery, Fence, JobId, NodeId, Progress, Record, State, Token, TopicKey};
use crate::store::{
    AddedJob, Cursor, End, Ended, Exported, HeldJob, JobCopy, PageRequest, PendingCommand, Replacement, StoreError,
    plain,
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
    pub(super) async fn export_of(
        &self,
        topic: &TopicKey,
        request: PageRequest,
        broadcasts: bool,
    ) -> Result<Exported, StoreError> {
        let scripts = self.scripts_of(topic);
        if request.state != State::Running {
            let mut exported = self.placed_of(&scripts, request, broadcasts, true).await?;
            self.note_taken(topic, &mut exported.copies).await?;
            return Ok(exported);
        }
        let Runs { held, next, clock, fence } = self.runs_of(&scripts, request, true).await?;
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

    /// Until when these ids are taken. The half millisecond of a deleted job is no part of the time.
    pub(super) async fn taken_until(
        &self,
        topic: &TopicKey,
        ids: &[&JobId],
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (keys, names) = (self.keyspace.of(topic), ids.iter().map(|id| id.as_str()).collect::<Vec<_>>());
        self.shards.read_key("taken", &keys, Key::Taken, "ZMSCORE", names).await
    }

    /// A page of one place, in order of time, then id. Only an export has crashes and the last fence.
    pub(super) async fn placed_of(
        &self,
        scripts: &TopicScripts,
        PageRequest { state, after, limit, bytes }: PageRequest,
        broadcasts: bool,
        is_export: bool,
    ) -> Result<Exported, StoreError> {
        let (records, key) = match broadcasts {
            true => (Key::BroadcastJobs, Key::Broadcasts),
            false => (Key::Jobs, [Key::Delayed, Key::Running, Key::Unacked, Key::Dead, Key::Done][state as usize]),
        };
        let names = [records, key, Key::Metadata, Key::Far, Key::FarJobs, Key::FarLeaves, Key::Crashes, Key::Meta];
        let names = names.map(|key| scripts.keys.name(key, ""));
        let call = scripts.call_on(Step::Page, names.into()).arg(limit.max(1));
        let call = match &after {
            Some(cursor) => call.arg(cursor.at.as_millis()).arg(&cursor.id),
            None => call.arg("").arg(""),
        };
        let letter = if key == Key::Delayed { "d" } else { "" };
        let call = call.arg((bytes, letter, if is_export { "e" } else { "" }));
        let (more, Readable(fence), rows): (bool, _, Vec<PlacedRow>) = self.shards.ask(call).await?;
        let (jobs, mut copies, mut next) = (rows.len(), Vec::new(), None);
        for (Readable(id), at, record, metadata, crashes) in rows {
            let Some(id) = id else { continue };
            next = Some(Cursor { at, id: id.to_string() });
            let Some(record) = record else { continue };
            copies.push(match broadcasts {
                true => JobCopy { is_broadcast: true, ..JobCopy::new(id, record, state, at) },
                false => {
                    let record = record.under(&metadata.unwrap_or_default());
                    JobCopy {
                        crashes: crash_count(&crashes.unwrap_or_default()),
                        ..JobCopy::new(id, record, state, at)
                    }
                }
            });
        }
        Ok(Exported { copies, jobs, next: next.filter(|_| more), fence: Fence(fence.unwrap_or_default()) })
    }

    /// A page of RUNNING, node after node, in two scripts. Nodes keep running while it is read, so the pages do not show one moment. Only
    /// an export has crashes, pending commands and the last fence.
    pub(super) async fn runs_of(
        &self,
        scripts: &TopicScripts,
        PageRequest { after, limit, bytes, .. }: PageRequest,
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
        let call = scripts.call_with_nodes(Step::Rows, &names);
        let call = call.arg((limit.max(1), cursor, bytes, nodes.len(), if is_export { "e" } else { "" }));
        let (at, Text(cursor), clock, Readable(fence), rows): (usize, _, _, _, Vec<_>) = self.shards.ask(call).await?;
        let mut held: Vec<_> = rows.into_iter().filter_map(|row| held_job(row, &nodes)).collect();
        held.sort_by(|(a, first), (b, second)| (a, &first.id).cmp(&(b, &second.id)));
        let next = at.checked_sub(1).map_or(following, |at| nodes.get(at).cloned());
        let next = next.map(|node| Cursor { at: Timestamp::EPOCH, id: format!("{node}/{cursor}") });
        Ok(Runs { held, next, clock, fence: Fence(fence.unwrap_or_default()) })
    }
}

/// A job of a place: its id and time, its record, metadata and crashes.
type PlacedRow = (Readable<JobId>, Timestamp, Option<Record>, Option<Bytes>, Option<Bytes>);

/// A job that a node holds: the number of the node, the id, token, record, metadata and crashes, and what waits for the end of its run.
type HeldRow =
    (usize, Readable<JobId>, Readable<Token>, Option<Record>, Option<Bytes>, Option<Bytes>, Text, Option<Record>);

/// Reads a row; `None` if it has no record, or an id that is not of dq.
fn held_job(row: HeldRow, nodes: &[NodeId]) -> Option<(NodeId, HeldJob)> {
    let (node, Readable(id), Readable(token), record, metadata, crashes, Text(command), new) = row;
    let (end, replacing) = command_in(&command).unwrap_or_default();
    let replacement = replacing.zip(new).map(|((conditional, deliver, due), record)| Replacement {
        job: AddedJob { record, due, deliver },
        conditional,
    });
    let (record, crashes) = (record?.under(&metadata.unwrap_or_default()), crash_count(&crashes.unwrap_or_default()));
    let pending = PendingCommand { end, replacement };
    let job = HeldJob { id: id?, record, crashes, token, pending };
    Some((nodes.get(node.wrapping_sub(1))?.clone(), job))
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
