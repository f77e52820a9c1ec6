//! Where the keys of a topic do not agree, for the doctor and the audit.
//!
//! The script `examine` reads the keys of a topic page by page, and says of each id where the topic has it. What of this is wrong is said
//! here, in [`wrong_with`], and `recover` puts it right.

use std::collections::BTreeSet;

use bytes::Bytes;
use redis::{Pipeline, Value};

use super::RedisStore;
use super::all_nodes::with_all_nodes;
use super::keys::Key;
use super::reply::{Reply, lossy};
use super::rows::{foreign_row, is_id};
use super::scripts::{ScriptCall, Step, TopicScripts};
use crate::job::{JobId, NodeId, SCHEDULE_PREFIX, TopicKey};
use crate::store::step::DEFAULT_BYTES;
use crate::store::{Examine, Examined, FindingCode, ForeignRow, MAX_EXAMINED, Mismatch, StoreError};

/// What a position among the rows begins with that the doctor reads one by one.
const ROWS: &str = "rows";

/// The numbers of the key with jobs, which the script reads first, of the one with records of broadcasts, and of the rows of nodes.
const JOBS: usize = 1;
const BROADCAST_JOBS: usize = 8;
const ROWS_OF_NODE: usize = 12;

/// What a topic notes of its jobs, in the order of the script.
const NOTES: [&str; 5] = ["protocol", "retains", "largest", "priorities", "groups"];

/// What is wrong with a record that the doctor sets aside.
const SECOND_RECORD: &str = "the job has another record, in `jobs` or in `far-jobs`";

/// The letters of the places, and of the rows of nodes.
const PLACES: [char; 5] = ['d', 'u', 'x', 'f', 'r'];

/// A call for the page that begins at a position, about as large.
pub(super) fn examine_call(
    scripts: &TopicScripts,
    nodes: &BTreeSet<NodeId>,
    position: &str,
    limit: usize,
    bytes: usize,
) -> ScriptCall {
    scripts.call_with_nodes(Step::Examine, nodes).arg(position).arg(limit).arg(bytes).nodes(nodes)
}

/// A page of a key.
pub(super) struct KeyPage {
    /// Where the next page begins; empty at the end.
    next: String,
    part: usize,
    looked_at: usize,
    /// The ids, and the letters of where the topic has them.
    found: Vec<(String, String)>,
    /// What is to be set aside: what is no id, in a key that is not read row by row, and of a job with two records the one of a job that is due
    /// much later, unless only this one has its place.
    foreign: Vec<(Key, Bytes)>,
    /// The node whose rows these are, or nothing; and whether it has a lease and no row.
    node: String,
    is_idle: bool,
    /// The note of `meta` that leaves are gone, as it was before the far jobs were read.
    pub(super) far_lost: String,
    /// The last fence in a page of jobs; empty where there is none.
    fence: String,
    /// What the topic notes of its jobs, in the order of [`NOTES`]; empty where it is missing. And what it should be for the jobs of this
    /// page; 0 if these need none.
    notes: Vec<(String, usize)>,
}

impl KeyPage {
    pub(super) fn read(mut reply: Reply) -> Result<Self, StoreError> {
        let (next, part, looked_at) = (reply.text()?, reply.count()?, reply.count()?);
        let key = match part {
            JOBS => Some(Key::Jobs),
            BROADCAST_JOBS => Some(Key::BroadcastJobs),
            ROWS_OF_NODE => Some(Key::Running),
            _ => None,
        };
        let mut foreign = Vec::new();
        let found = reply.nested()?.each(|found| {
            let (id, letters) = (found.bytes()?, found.text()?);
            if !is_id(&id) {
                foreign.extend(key.map(|key| (key, id)));
                return Ok(None);
            }
            if letters.contains('j') && letters.contains('w') {
                foreign.push((if is_lost(&letters) { Key::Jobs } else { Key::FarJobs }, id.clone()));
            }
            Ok(Some((lossy(&id), letters)))
        })?;
        let (node, is_idle, far_lost) = (reply.text()?, reply.is_set()?, reply.text()?);
        let fence = lossy(&reply.bytes_or_nothing()?);
        let notes = reply.nested()?.each(|notes| Ok(Some((lossy(&notes.bytes_or_nothing()?), notes.count()?))))?;
        Ok(Self { next, part, looked_at, found, foreign, node, is_idle, far_lost, fence, notes })
    }

    /// The jobs whose letters are such.
    fn jobs_where(&self, is_such: fn(&str) -> bool) -> Vec<JobId> {
        let found = self.found.iter().filter(|(_, letters)| is_such(letters));
        found.filter_map(|(id, _)| JobId::new(id.as_str()).ok()).collect()
    }

    /// What an audit finds: lost jobs, far jobs that their leaves do not have, and where it continues.
    pub(super) fn audited(&self) -> (Vec<JobId>, Vec<JobId>, Option<String>) {
        let continues = matches!(self.next.split_once(':'), Some(("1" | "2", _)));
        let next = continues.then(|| self.next.clone());
        match self.part {
            JOBS => (self.jobs_where(is_lost), Vec::new(), next),
            _ => (Vec::new(), self.jobs_where(is_missing_in_leaf), next),
        }
    }

    /// Everything that is wrong.
    fn mismatches(&self) -> Vec<(FindingCode, String, String)> {
        let idle = self.is_idle.then(|| (FindingCode::LeaseWithoutRows, self.node.clone(), String::new()));
        let wrong = self.found.iter().flat_map(|(id, letters)| {
            wrong_with(id, letters, &self.node).into_iter().map(|(code, detail)| (code, id.clone(), detail))
        });
        let notes = NOTES.into_iter().zip(&self.notes).filter(|(name, note)| is_behind(name, note));
        let note =
            |(name, (_, needed)): (&str, &(_, usize))| (FindingCode::NotesBehind, name.into(), needed.to_string());
        wrong.chain(notes.map(note)).chain(idle).collect()
    }
}

/// Whether a topic notes too little of its jobs. A record may grow a little; only much larger answers do harm.
fn is_behind(name: &str, (noted, needed): &(String, usize)) -> bool {
    let doubled = noted.parse::<usize>().unwrap_or_default().saturating_mul(2);
    *needed > 0 && if name == "largest" { *needed > doubled } else { noted.is_empty() }
}

/// Whether a job has a record in `jobs` and is in no place. Perhaps it has another record, in `far-jobs`.
fn is_lost(letters: &str) -> bool {
    letters.contains('j') && !letters.contains(PLACES)
}

fn is_missing_in_leaf(letters: &str) -> bool {
    letters.contains('w') && !letters.contains('l')
}

/// What is wrong with a job that the topic has in these places: the one comparison of places, rows and other keys with records.
fn wrong_with(id: &str, letters: &str, node: &str) -> Vec<(FindingCode, String)> {
    let has = |letter| letters.contains(letter);
    let (is_job, foreign, none) = (has('j'), foreign_in(letters, node), String::new);
    let wrong = [
        (is_lost(letters) && !has('w'), FindingCode::JobWithoutPlace, none()),
        (is_missing_in_leaf(letters) && (is_lost(letters) || !is_job), FindingCode::FarWithoutLeaf, none()),
        (is_job && id.starts_with(SCHEDULE_PREFIX) && !has('s'), FindingCode::ScheduleNotListed, none()),
        (has('B') && !has('b'), FindingCode::BroadcastWithoutPlace, none()),
        (has('g'), FindingCode::NotInGroup, none()),
        (!foreign.is_empty(), FindingCode::ForeignChange, foreign),
    ];
    wrong.into_iter().filter(|(is_wrong, ..)| *is_wrong).map(|(_, code, detail)| (code, detail)).collect()
}

/// Which keys have something of a job that its record does not explain; empty if none do. A job has one place, and one without a record has
/// nothing. `node` is the one whose rows are read, or nothing.
fn foreign_in(letters: &str, node: &str) -> String {
    let (is_job, is_broadcast) = (letters.contains('j'), letters.contains('B'));
    let key = |letter| match letter {
        'd' => Some("`delayed`"),
        'u' => Some("`unacked`"),
        'x' => Some("`dead`"),
        'f' => Some("`done`"),
        'r' => Some("`running`"),
        'b' if !is_broadcast => Some("`broadcasts`"),
        'M' => Some("`metadata`"),
        'P' => Some("`pending`"),
        'C' => Some("`crashes`"),
        _ => None,
    };
    let keys: Vec<_> = letters.chars().filter_map(key).collect();
    if keys.len() <= usize::from(is_job) {
        return String::new();
    }
    let of = if node.is_empty() { String::new() } else { format!(" of node {node}") };
    let what = if is_job { "the job is in several places" } else { "a job whose record is gone is still in" };
    format!("{what}: {}{of}", keys.join(", "))
}

impl RedisStore {
    pub(super) async fn examine_of(&self, topic: &TopicKey, request: Examine) -> Result<Examined, StoreError> {
        let (scripts, at) = (self.scripts_of(topic), request.after.unwrap_or_default());
        if let Some(at) = at.strip_prefix(ROWS) {
            return self.examine_rows(topic, at).await;
        }
        let ask = |nodes: &BTreeSet<NodeId>| {
            self.shards.ask_list(examine_call(&scripts, nodes, &at, MAX_EXAMINED, DEFAULT_BYTES))
        };
        let nodes = request.nodes.into_iter().collect();
        let page = KeyPage::read(with_all_nodes(Step::Examine, nodes, ask).await?)?;
        let of_topic = |(code, id, detail)| Mismatch { code, topic: topic.topic.clone(), id, detail };
        let mut mismatches: Vec<_> = page.mismatches().into_iter().map(of_topic).collect();
        mismatches.extend(Mismatch::of_fence(&topic.topic, &page.fence));
        mismatches.sort();
        // What the script does not read follows.
        let next = Some(if page.next.is_empty() { ROWS.to_owned() } else { page.next.clone() });
        let looked_at = page.looked_at;
        let foreign = self.foreign_rows(topic, page).await?;
        Ok(Examined { mismatches, foreign, looked_at, next, ..Examined::default() })
    }

    /// The rows of a page that are to be set aside, with their values: a repair takes away what is still the same.
    async fn foreign_rows(&self, topic: &TopicKey, page: KeyPage) -> Result<Vec<ForeignRow>, StoreError> {
        let (keys, mut reads) = (self.keyspace.of(topic), Pipeline::new());
        page.foreign
            .iter()
            .for_each(|(key, name)| _ = reads.cmd("HGET").arg(keys.name(*key, &page.node)).arg(&name[..]));
        let values = self.shards.commands("examine", &reads).await?;
        let row = |((key, name), value): ((Key, Bytes), Value)| {
            let Value::BulkString(value) = value else { return None };
            let second = is_id(&name).then(|| SECOND_RECORD.to_owned());
            let row = foreign_row(topic, key, &page.node, name, value.into());
            Some(ForeignRow { reason: second.unwrap_or(row.reason), ..row })
        };
        Ok(page.foreign.into_iter().zip(values).filter_map(row).collect())
    }
}
