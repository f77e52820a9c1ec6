//! The query `export` (rule 27), over the shared connection.

use super::RedisStore;
use super::keys::{Key, Keys};
use super::reply::Reply;
use super::scripts::Step;
use crate::job::{Deliver, Fence, NodeId, State, TopicKey};
use crate::store::{
    CopyPlace, Cursor, ExportPart, ExportRequest, Exported, HeldJob, JobCopy, PendingEnd, PendingReplacement,
    StoreError,
};
use crate::time::Timestamp;

impl RedisStore {
    pub(super) async fn export_of(&self, topic: &TopicKey, request: ExportRequest) -> Result<Exported, StoreError> {
        let keys = self.keyspace.of(topic);
        let (place_key, place) = match request.part {
            ExportPart::State(State::Running) => return self.export_of_running(&keys, &request).await,
            ExportPart::State(State::Delayed) => (Key::Delayed, CopyPlace::Delayed),
            ExportPart::State(State::Unacked) => (Key::Unacked, CopyPlace::Unacked),
            ExportPart::State(State::Dead) => (Key::Dead, CopyPlace::Dead),
            ExportPart::State(State::Done) => (Key::Done, CopyPlace::Done),
            ExportPart::Broadcasts => (Key::Broadcasts, CopyPlace::Broadcast),
        };
        let is_broadcast = place == CopyPlace::Broadcast;
        let records = if is_broadcast { Key::BroadcastJobs } else { Key::Jobs };
        let keys_of = [records, place_key, Key::Metadata, Key::Far, Key::FarJobs, Key::Crashes, Key::Meta];
        let names = keys_of.map(|key| keys.name(key, ""));
        let call = self.scripts.call_on(Step::Export, names.into(), &keys).arg(request.limit.max(1));
        let call = match &request.after {
            Some(cursor) => call.arg(cursor.at.as_millis()).arg(&cursor.id),
            None => call.arg("").arg(""),
        };
        let mut reply = self
            .queries
            .ask_list(call.arg(request.bytes).arg(if place == CopyPlace::Delayed { "d" } else { "" }))
            .await?;
        let (mut ids, mut times) = (reply.nested()?, reply.nested()?);
        let (mut records, mut overrides) = (reply.nested()?, reply.nested()?);
        let (mut crashes, more, fence) = (reply.nested()?, reply.is_set()?, fence(&mut reply)?);
        let (jobs, mut copies, mut next) = (ids.len(), Vec::with_capacity(ids.len()), None);
        while ids.len() > 0 {
            let (id, at, record) = (ids.id()?, times.time()?, records.record_or_nothing()?);
            let (metadata, crashes) = (overrides.bytes_or_nothing()?, crash_count(&crashes.bytes_or_nothing()?));
            let Ok(id) = id else { continue };
            next = Some(Cursor { at, id: id.to_string() });
            let Some(record) = record else { continue };
            copies.push(match is_broadcast {
                true => JobCopy { id, record, crashes: 0, place, at },
                false => JobCopy { id, record: record.under(&metadata), crashes, place, at },
            });
        }
        Ok(Exported { copies, jobs, next: next.filter(|_| more), fence })
    }

    /// A page of RUNNING: rows of one node.
    async fn export_of_running(&self, keys: &Keys, request: &ExportRequest) -> Result<Exported, StoreError> {
        let after = request.after.as_ref().and_then(|cursor| cursor.id.split_once('/'));
        let (last, cursor) = after.unwrap_or_default();
        let first = (!last.is_empty()).then(|| NodeId::new(last));
        let behind = self.nodes_behind(keys, last, 2).await?;
        let mut nodes = first.into_iter().chain(behind.into_iter().map(|(node, _)| node));
        let Some(node) = nodes.next() else {
            return Ok(Exported { copies: Vec::new(), jobs: 0, next: None, fence: Fence::default() });
        };
        let mut call = self.scripts.call(Step::ExportRuns, keys, node.as_str()).arg(request.limit.max(1));
        call = call.arg(cursor).arg(request.bytes);
        let mut reply = self.queries.ask_list(call).await?;
        let held = held_jobs(&mut reply)?;
        let (cursor, clock) = (reply.text()?, reply.time()?);
        let next = match cursor.as_str() {
            "" => nodes.next().map(|node| (node, String::new())),
            _ => Some((node, cursor)),
        };
        let next = next
            .map(|(node, cursor): (NodeId, String)| Cursor { at: Timestamp::EPOCH, id: format!("{node}/{cursor}") });
        let jobs = held.len();
        let copies = held.into_iter().flat_map(|job| job.given_back(clock)).collect();
        Ok(Exported { copies, jobs, next, fence: fence(&mut reply)? })
    }
}

fn held_jobs(reply: &mut Reply) -> Result<Vec<HeldJob>, StoreError> {
    let (mut ids, mut tokens) = (reply.nested()?, reply.nested()?);
    let (mut records, mut overrides) = (reply.nested()?, reply.nested()?);
    let (mut crashes, mut pending, mut replacements) = (reply.nested()?, reply.nested()?, reply.nested()?);
    let mut held = Vec::with_capacity(ids.len());
    while ids.len() > 0 {
        let (id, token, record) = (ids.id()?, tokens.text()?, records.record_or_nothing()?);
        let (metadata, crashes) = (overrides.bytes_or_nothing()?, crash_count(&crashes.bytes_or_nothing()?));
        let (command, new) = (pending.bytes_or_nothing()?, replacements.record_or_nothing()?);
        let (end, replacement) = std::str::from_utf8(&command).ok().and_then(command_in).unwrap_or_default();
        let replacement = replacement.zip(new);
        held.extend(id.ok().zip(record).map(|(id, record)| HeldJob {
            id,
            record: record.under(&metadata),
            crashes,
            token: token.parse().ok(),
            end,
            replacement: replacement.map(|((conditional, deliver, due), record)| PendingReplacement {
                record,
                due,
                deliver,
                conditional,
            }),
        }));
    }
    Ok(held)
}

/// What a replacement is beside its record: whether it is conditional, its delivery, its due time.
type Replacing = (bool, Deliver, Timestamp);

/// Reads a pending command, which is `END FENCE : WHEN DELIVER DUE` without the blanks. Text that is none counts as none.
fn command_in(text: &str) -> Option<(Option<PendingEnd>, Option<Replacing>)> {
    let (end, replacement) = text.split_once(':')?;
    let mut fence = end.chars();
    let how = fence.next()?;
    let fence = match fence.as_str() {
        "" => None,
        fence => Some(Fence(fence.parse().ok()?)),
    };
    let end = match how {
        'a' | 'd' | 'c' => Some(PendingEnd { is_ack: how == 'a', fence }),
        '-' => None,
        _ => return None,
    };
    let mut due = replacement.chars();
    let conditional = due.next() == Some('c');
    let deliver = due.next().and_then(Deliver::of_letter);
    let due = due.as_str().parse().ok().map(Timestamp::from_millis);
    Some((end, deliver.zip(due).map(|(deliver, due)| (conditional, deliver, due))))
}

/// The number in front of the sign of an isolated run.
pub(super) fn crash_count(text: &[u8]) -> u32 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.trim_end_matches(['+', '!']).parse().unwrap_or_default()
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
            Some((end.map(|end| (end.is_ack, end.fence)), replacement))
        };
        let due = Timestamp::from_millis(12);
        assert_eq!(read("a7:"), Some((Some((true, Some(Fence(7)))), None)));
        assert_eq!(read("d:"), Some((Some((false, None)), None)));
        assert_eq!(read("-:rt12"), Some((None, Some((false, Deliver::Both, due)))));
        assert_eq!(read("a7:cq12"), Some((Some((true, Some(Fence(7)))), Some((true, Deliver::Queue, due)))));
        for broken in ["", "a", "x:", "a-:", "ä:"] {
            assert_eq!(read(broken), None, "{broken}");
        }
        assert_eq!(read("c:rq"), Some((Some((false, None)), None)));
    }

    #[test]
    fn crashes_are_counted_without_their_sign() {
        assert_eq!([&b"3"[..], b"3+", b"12!", b"", b"x"].map(crash_count), [3, 3, 12, 0, 0]);
    }
}
