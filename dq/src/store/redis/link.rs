//! The steps of a node, each a script over the node's own line.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::connection::Connection;
use super::keys::{Key, Keys};
use super::outcomes::{Sorted, sorted};
use super::reply::{Reply, strange};
use super::scripts::{Scripts, Step};
use super::{metadata_bytes, micros, millis, within};
use crate::job::{JobId, NodeId, Token};
use crate::store::step::{
    Claim, Exhaust, Isolate, LeaseStatus, NoteVerdict, Noted, Publish, Published, Reclaim, Reclaimed, Reconcile,
    Reconciled, Release, Renew, Role, Scan, Scanned, Sequenced, Settle, Settled, Sweep, Swept, Transfer, Transferred,
    Verdict, Wake,
};
use crate::store::{Link, Pending, StoreError};

/// The way of a node.
#[derive(Debug)]
pub(super) struct RedisLink {
    pub(super) connection: Connection,
    pub(super) scripts: Arc<Scripts>,
    pub(super) keys: Keys,
    pub(super) node: NodeId,
    /// Jobs that were dropped and that no answer tells of.
    pub(super) dropped: Arc<AtomicUsize>,
}

/// How often a scan is sent while nodes come and go.
const SCANS: usize = 16;

impl RedisLink {
    fn call(&self, step: Step) -> super::scripts::Call {
        self.scripts.call(step, &self.keys, self.node.as_str()).arg(self.node.as_str())
    }

    fn sorter(&self) -> Sorter {
        let (connection, scripts) = (self.connection.clone(), Arc::clone(&self.scripts));
        Sorter {
            connection,
            scripts,
            keys: self.keys.clone(),
            node: self.node.clone(),
            dropped: Arc::clone(&self.dropped),
        }
    }
}

/// What is needed to sort out rows whose ids or tokens dq did not give: another program wrote them.
#[derive(Debug, Clone)]
struct Sorter {
    connection: Connection,
    scripts: Arc<Scripts>,
    keys: Keys,
    node: NodeId,
    dropped: Arc<AtomicUsize>,
}

/// A row that cannot be told as a job: its id and its token as they are.
type Stranger = (Bytes, Bytes);

impl Sorter {
    /// Tells of jobs of which nothing was kept, and counts them.
    fn tell_dropped(&self, ids: &[JobId]) {
        if !ids.is_empty() {
            self.dropped.fetch_add(ids.len(), Ordering::Relaxed);
            tracing::warn!(
                topic = %self.keys.topic(), count = ids.len(), first = %ids[0],
                "dropped jobs whose records were removed by another program"
            );
        }
    }

    /// Drops such rows and their records, with a warning, and counts them out: the request is under way when this returns.
    fn sort_out(&self, strangers: &[Stranger], lease_status: &mut LeaseStatus) {
        let Some((first, _)) = strangers.first() else { return };
        let first = first.escape_ascii().to_string();
        self.dropped.fetch_add(strangers.len(), Ordering::Relaxed);
        tracing::warn!(topic = %self.keys.topic(), count = strangers.len(), %first, "dropped jobs whose ids are none of dq's");
        let call = self.scripts.call(Step::Settle, &self.keys, self.node.as_str()).arg(self.node.as_str());
        // No turn is named, so nothing is renewed.
        let mut call = call.arg("").arg(0).arg(0);
        for (id, token) in strangers {
            for argument in [id.as_ref(), token.as_ref(), b"d", b"0", b""] {
                call.push(argument);
            }
        }
        drop(self.connection.ask(call));
        lease_status.rows = lease_status.rows.saturating_sub(strangers.len());
    }
}

fn refused<T: Send + 'static>(error: StoreError) -> Pending<T> {
    Box::pin(std::future::ready(Err(error)))
}

impl Link for RedisLink {
    fn transfer(&self, request: Transfer) -> Pending<Sequenced<Transferred>> {
        if let Err(error) = within("the limit of a transfer", request.limit) {
            return refused(error);
        }
        let call = self.call(Step::Transfer).arg(request.last_seen.0).arg(request.limit);
        let call = call.arg(millis(request.lease)).arg(micros(request.fallback));
        let (answer, sorter) = (self.connection.ask_list(call), self.sorter());
        Box::pin(async move {
            let mut reply = answer.await?;
            let (is_done, mut lease_status) = (reply.is_set()?, reply.lease_status()?);
            if !is_done {
                return Ok(Sequenced::Reconcile(lease_status));
            }
            let (clock, role) = (reply.time()?, role_of(reply.int()?));
            let (sleep, more) = (reply.micros()?.min(request.fallback), reply.is_set()?);
            let (holder, end) = (reply.node()?, reply.time()?);
            let foreign_lease = (!holder.as_str().is_empty()).then_some((holder, end));
            let (claims, strangers) = claims_of(&mut reply)?;
            sorter.sort_out(&strangers, &mut lease_status);
            let dropped = reply.ids()?;
            Ok(Sequenced::Done(Transferred { lease_status, clock, role, sleep, more, foreign_lease, claims, dropped }))
        })
    }

    fn settle(&self, request: Settle) -> Pending<Settled> {
        if let Err(error) = within("the number of outcomes", request.outcomes.len()) {
            return refused(error);
        }
        let call = self.call(Step::Settle).arg(request.last_seen.0).arg(millis(request.lease));
        let Sorted { call, places, mut verdicts } = sorted(call, request.outcomes);
        let answer = self.connection.ask_list(call);
        Box::pin(async move {
            let mut reply = answer.await?;
            let lease_status = reply.lease_status()?;
            for verdict in [Verdict::Stale, Verdict::Dropped] {
                let mut numbers = reply.nested()?;
                while numbers.len() > 0 {
                    let place = numbers.count()?.checked_sub(1).and_then(|n| places.get(n));
                    verdicts[*place.ok_or_else(|| strange("settle", "it judges what was not sent"))?] = verdict.clone();
                }
            }
            Ok(Settled { lease_status, verdicts })
        })
    }

    fn renew(&self, request: Renew) -> Pending<LeaseStatus> {
        let call = self.call(Step::Renew).arg(request.last_seen.0).arg(millis(request.lease));
        let answer = self.connection.ask_list(call);
        Box::pin(async move { answer.await?.lease_status() })
    }

    fn isolate(&self, request: Isolate) -> Pending<Noted> {
        let call = self.call(Step::Isolate).arg(request.last_seen.0).arg(millis(request.lease));
        let answer = self.connection.ask_list(call.arg(request.id.as_str()).arg(request.token.to_string()));
        Box::pin(async move { noted_of(answer.await?) })
    }

    fn exhaust(&self, mut request: Exhaust) -> Pending<Noted> {
        request.metadata.exhausted = true;
        let call = self.call(Step::Exhaust).arg(request.last_seen.0).arg(millis(request.lease));
        let call = call.arg(request.id.as_str()).arg(request.token.to_string());
        let answer = self.connection.ask_list(call.arg(metadata_bytes(request.metadata)));
        Box::pin(async move { noted_of(answer.await?) })
    }

    fn reconcile(&self, request: Reconcile) -> Pending<Sequenced<Reconciled>> {
        if let Err(error) = within("the limit of a reconcile", request.limit) {
            return refused(error);
        }
        let after = request.after.as_ref().map_or("", JobId::as_str);
        let call = self.call(Step::Reconcile).arg(request.last_seen.0).arg(after).arg(request.limit.max(1));
        let (answer, sorter) = (self.connection.ask_list(call), self.sorter());
        Box::pin(async move {
            let mut reply = answer.await?;
            let (is_done, mut lease_status) = (reply.is_set()?, reply.lease_status()?);
            if !is_done {
                return Ok(Sequenced::Reconcile(lease_status));
            }
            let (mut ids, mut tokens) = (reply.nested()?, reply.nested()?);
            let (mut rows, mut strangers) = (Vec::with_capacity(ids.len()), Vec::new());
            while ids.len() > 0 {
                match row_of(ids.bytes()?, tokens.bytes()?) {
                    Ok(row) => rows.push(row),
                    Err(stranger) => strangers.push(stranger),
                }
            }
            let more = reply.is_set()?;
            sorter.sort_out(&strangers, &mut lease_status);
            sorter.tell_dropped(&reply.ids()?);
            let next = if more { rows.last().map(|(id, _)| id.clone()) } else { None };
            rows.sort();
            Ok(Sequenced::Done(Reconciled { lease_status, rows, next }))
        })
    }

    fn reclaim(&self, request: Reclaim) -> Pending<Reclaimed> {
        if let Err(error) = within("the limit of a reclaim", request.limit) {
            return refused(error);
        }
        let dead = request.node.as_str();
        let call = self.scripts.call(Step::Reclaim, &self.keys, dead).arg(dead).arg(request.seen.as_millis());
        let answer = self.connection.ask_list(call.arg(request.limit.max(1)).arg(request.max_crashes));
        let sorter = self.sorter();
        Box::pin(async move {
            let mut reply = answer.await?;
            let reclaimed = Reclaimed { moved: reply.count()?, left: reply.count()? };
            sorter.tell_dropped(&reply.ids()?);
            Ok(reclaimed)
        })
    }

    fn release(&self, request: Release) -> Pending<LeaseStatus> {
        let answer = self.connection.ask_list(self.call(Step::Release).arg(request.last_seen.0));
        Box::pin(async move { answer.await?.lease_status() })
    }

    fn sweep(&self, request: Sweep) -> Pending<Sequenced<Swept>> {
        if let Err(error) = within("the limit of an age", request.limit) {
            return refused(error);
        }
        let call = self.call(Step::Sweep).arg(request.last_seen.0).arg(request.limit).arg(millis(request.lease));
        let call = call.arg(millis(request.unacked_age)).arg(millis(request.dead_kept)).arg(request.dead_most);
        let (answer, sorter) = (self.connection.ask_list(call), self.sorter());
        Box::pin(async move {
            let mut reply = answer.await?;
            let (is_done, mut lease_status) = (reply.is_set()?, reply.lease_status()?);
            if !is_done {
                return Ok(Sequenced::Reconcile(lease_status));
            }
            let clock = reply.time()?;
            let (claims, strangers) = claims_of(&mut reply)?;
            sorter.sort_out(&strangers, &mut lease_status);
            let (pruned_dead, pruned_done, more) = (reply.count()?, reply.count()?, reply.is_set()?);
            sorter.tell_dropped(&reply.ids()?);
            Ok(Sequenced::Done(Swept { lease_status, clock, claims, pruned_dead, pruned_done, more }))
        })
    }

    fn publish(&self, request: Publish) -> Pending<Published> {
        if let Err(error) = within("the limit of a cast", request.limit) {
            return refused(error);
        }
        let call = self.call(Step::Publish).arg(request.limit).arg(micros(request.fallback));
        let answer = self.connection.ask_list(call.arg(millis(request.expires_after)));
        Box::pin(async move {
            let mut reply = answer.await?;
            let (published, dropped) = (reply.count()?, reply.count()?);
            let (sleep, more) = (reply.micros()?.min(request.fallback), reply.is_set()?);
            Ok(Published { published, dropped, sleep, more })
        })
    }

    fn wake(&self, Wake: Wake) -> Pending<()> {
        let answer = self.connection.ask(self.call(Step::Wake));
        Box::pin(async move { answer.await.map(drop) })
    }

    fn dropped(&self) -> usize {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    fn scan(&self, Scan: Scan) -> Pending<Scanned> {
        let mut nodes = BTreeSet::new();
        let mut answer = Box::pin(self.connection.ask_list(scan_call(&self.scripts, &self.keys, &nodes)));
        let (connection, scripts, keys) = (self.connection.clone(), Arc::clone(&self.scripts), self.keys.clone());
        Box::pin(async move {
            for _ in 0..SCANS {
                let (again, scanned) = scanned_of(answer.await?)?;
                if !again {
                    return Ok(scanned);
                }
                nodes.extend(scanned.leases.into_iter().map(|(node, _)| node));
                answer = Box::pin(connection.ask_list(scan_call(&scripts, &keys, &nodes)));
            }
            Err(StoreError::Refused { operation: "scan", reason: "nodes come and go too fast to be counted".into() })
        })
    }
}

fn scan_call(scripts: &Scripts, keys: &Keys, nodes: &BTreeSet<NodeId>) -> super::scripts::Call {
    let own = Step::Scan.keys().iter().filter(|key| !key.is_owned());
    let mut names: Vec<_> = own.map(|key| keys.name(*key, "")).collect();
    names.extend(nodes.iter().map(|node| keys.name(Key::Running, node.as_str())));
    let mut call = scripts.call_on(Step::Scan, names, keys);
    nodes.iter().for_each(|node| call.push(node.as_str()));
    call
}

fn scanned_of(mut reply: Reply) -> Result<(bool, Scanned), StoreError> {
    let (again, clock, mut ends) = (reply.is_set()?, reply.time()?, reply.nested()?);
    let mut leases = Vec::with_capacity(ends.len() / 2);
    while ends.len() > 0 {
        leases.push((ends.node()?, ends.time()?));
    }
    leases.sort();
    Ok((again, Scanned { clock, leases, records: reply.count()?, places: reply.count()? }))
}

const fn role_of(number: i64) -> Option<Role> {
    match number {
        1 => Some(Role::Watcher),
        2 => Some(Role::Standby),
        _ => None,
    }
}

fn claims_of(reply: &mut Reply) -> Result<(Vec<Claim>, Vec<Stranger>), StoreError> {
    let (mut ids, mut tokens) = (reply.nested()?, reply.nested()?);
    let (mut records, mut crashes) = (reply.nested()?, reply.nested()?);
    // Jobs that are due together have one token.
    let one = if tokens.len() == 1 { Some(tokens.bytes()?) } else { None };
    let (mut claims, mut strangers) = (Vec::with_capacity(ids.len()), Vec::new());
    while ids.len() > 0 {
        let token = if let Some(one) = &one { one.clone() } else { tokens.bytes()? };
        let (row, record) = (row_of(ids.bytes()?, token), records.record()?);
        let crashes = if crashes.len() > 0 { u32::try_from(crashes.int()?).unwrap_or(u32::MAX) } else { 0 };
        match row {
            Ok((id, token)) => claims.push(Claim { id, token, record, crashes }),
            Err(stranger) => strangers.push(stranger),
        }
    }
    Ok((claims, strangers))
}

fn row_of(id: Bytes, token: Bytes) -> Result<(JobId, Token), Stranger> {
    let job = std::str::from_utf8(&id).ok().and_then(|id| JobId::new(id).ok());
    job.zip(std::str::from_utf8(&token).ok().and_then(|token| token.parse().ok())).ok_or((id, token))
}

fn noted_of(mut reply: Reply) -> Result<Noted, StoreError> {
    let lease_status = reply.lease_status()?;
    let note = match reply.text()?.as_str() {
        "d" => NoteVerdict::Done,
        "e" => NoteVerdict::Ended,
        _ => NoteVerdict::Stale,
    };
    Ok(Noted { lease_status, note })
}
