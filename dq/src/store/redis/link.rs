//! The steps of a node, each a script over the ordered connection of its link.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, TryFutureExt};
use redis::FromRedisValue;

use super::connection::OrderedConnection;
use super::outcomes::{Sorted, sort};
use super::reply::{Reply, Strings, Text, malformed, parsed, readable};
use super::scripts::{ScriptCall, Step, TopicScripts};
use super::topic_state::told;
use super::{metadata_bytes, micros, millis};
use crate::job::{Isolation, JobId, Metadata, NodeId};
use crate::store::step::{
    Change, Claim, DEFAULT_BYTES, Exhaust, Isolate, Isolated, LeaseStatus, Note, Noted, Noting, Outcome, Publish,
    Published, Reclaim, Reclaimed, Reconcile, Reconciled, Release, Renew, Role, RowCursor, Scan, Sequenced, Settle,
    Settled, Sweep, Swept, Transfer, Transferred, Verdict, Wake,
};
use crate::store::{Answer, Link, LinkOptions, Pending, Request, RequestKind, StoreError, escaped, stored_rate};
use crate::time::Timestamp;
use dq_grammar::BlockedBy;

/// The link of one node to one topic.
#[derive(Debug, Clone)]
pub(super) struct RedisLink {
    pub(super) connection: OrderedConnection,
    /// For steps that must not wait behind a large answer, and need no order with the others: `renew` and `publish`.
    pub(super) prompt: OrderedConnection,
    /// Of the topic and the node.
    pub(super) scripts: TopicScripts,
    pub(super) options: LinkOptions,
    /// How many jobs were dropped that no answer reports.
    pub(super) dropped: Arc<AtomicUsize>,
}

impl RedisLink {
    fn call(&self, step: Step) -> ScriptCall {
        self.scripts.call(step).arg(&*self.scripts.owner)
    }

    /// Sends a step that takes a sequence number. `read` reads its answer if it did.
    fn take_number<T: 'static>(
        &self,
        call: ScriptCall,
        answer_of: fn(Sequenced<T>) -> Answer,
        read: impl FnOnce(&Self, &mut Reply, LeaseStatus) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<Answer> {
        let (answer, link) = (self.connection.ask_list(call), self.clone());
        Box::pin(async move {
            let mut reply = answer.await?;
            let (is_done, lease_status) = (reply.read()?, reply.lease_status()?);
            Ok(answer_of(match is_done {
                true => Sequenced::Done(read(&link, &mut reply, lease_status)?),
                false => Sequenced::Reconcile(lease_status),
            }))
        })
    }

    /// Sends a step whose answer is read as it is.
    fn ask_for<T: FromRedisValue + 'static>(&self, call: ScriptCall, answer_of: fn(T) -> Answer) -> Pending<Answer> {
        self.connection.ask_list(call).map(move |reply| reply?.whole().map(answer_of)).boxed()
    }

    /// A call of a step that counts if the topic does; otherwise it has none of the last `without` keys.
    fn counting(&self, step: Step, without: usize, owner: &str) -> ScriptCall {
        let without = if self.options.counts { 0 } else { without };
        self.scripts.call_with_first(step, step.keys().len() - without, owner)
    }
}

/// How many of its last keys a settle does not need that counts nothing, and has no tick.
const SETTLES_WITHOUT: usize = 3;

/// A row that cannot be a job of dq: id and token as bytes.
type ForeignRow = (Bytes, Bytes);

impl RedisLink {
    /// Logs and counts jobs that were dropped because their record was missing.
    fn report_dropped(&self, ids: &[JobId]) {
        if !ids.is_empty() {
            self.dropped.fetch_add(ids.len(), Ordering::Relaxed);
            tracing::error!(
                topic = %self.scripts.keys.topic().topic, count = ids.len(), first = %ids[0],
                "dropped jobs whose records were removed by another program"
            );
        }
    }

    /// Drops these rows and their records, with a warning, and subtracts them from the lease status. The request is in
    /// flight when this returns.
    fn drop_foreign_rows(&self, foreign_rows: &[ForeignRow], lease_status: &mut LeaseStatus) {
        let Some((first, _)) = foreign_rows.first() else { return };
        let first = first.escape_ascii().to_string();
        self.dropped.fetch_add(foreign_rows.len(), Ordering::Relaxed);
        tracing::warn!(topic = %self.scripts.keys.topic().topic, count = foreign_rows.len(), %first, "dropped rows that dq did not write");
        let (step, node) = (Step::Settle, &*self.scripts.owner);
        // Nothing of this is counted, and no schedule had a tick.
        let call = self.scripts.call_with_first(step, step.keys().len() - SETTLES_WITHOUT, node).arg(node);
        // The request names no sequence number, so it renews nothing.
        let mut call = call.arg(("", 0, DEFAULT_BYTES, 0, 0));
        for (id, token) in foreign_rows {
            call.push((id.as_ref(), token.as_ref(), "d", 0, ""));
        }
        drop(self.connection.ask(call));
        lease_status.rows = lease_status.rows.saturating_sub(foreign_rows.len());
    }
}

impl Link for RedisLink {
    fn ask(&self, request: Request) -> Pending<Answer> {
        if let Err(error) = request.check() {
            return Box::pin(ready(Err(error)));
        }
        match request {
            Request::Transfer(request) => self.transfer(&request),
            Request::Settle(request) => self.settle(&request),
            Request::Renew(Renew { last_seen, lease }) => {
                let call = self.call(Step::Renew).arg((last_seen.0, millis(lease)));
                self.prompt.ask_list(call).map(|reply| reply?.whole().map(Answer::Renew)).boxed()
            }
            Request::Isolate(request) => self.isolate(&request),
            Request::Exhaust(Exhaust { last_seen, lease, id, token, metadata }) => {
                let what = Noting::State(Metadata { exhausted: true, ..metadata });
                self.note(Note { last_seen, lease, id, token, number: 0, what }, Answer::Exhaust)
            }
            Request::Note(request) => self.note(request, Answer::Note),
            Request::Reconcile(request) => self.reconcile(&request),
            Request::Reclaim(request) => self.reclaim(&request),
            Request::Release(Release { last_seen }) => {
                self.ask_for(self.call(Step::Release).arg(last_seen.0), Answer::Release)
            }
            Request::Sweep(request) => self.sweep(&request),
            Request::Publish(request) => self.publish(request),
            Request::Wake(Wake) => self.connection.ask(self.call(Step::Wake)).map_ok(|_| Answer::Wake(())).boxed(),
            Request::Scan(Scan) => self.scan(),
            Request::Audit(request) => self.audit(&request),
            Request::Recover(request) => self.recover(request),
        }
    }

    fn dropped(&self) -> usize {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    fn silent_for(&self, kind: RequestKind) -> Option<Duration> {
        match kind {
            RequestKind::Renew | RequestKind::Publish => Some(self.prompt.silent_for()),
            _ => Some(self.connection.silent_for()),
        }
    }
}

impl RedisLink {
    fn transfer(&self, request: &Transfer) -> Pending<Answer> {
        let node = &*self.scripts.owner;
        let Transfer { last_seen, limit, bytes, lease, fallback, lookahead } = *request;
        let LinkOptions { ageing, concurrency, rate, group_concurrency, group_rate, group_burst, .. } = self.options;
        let call = self.counting(Step::Transfer, 1, node).arg((node, last_seen.0, limit));
        let call = call.arg((millis(lease), micros(fallback), bytes, millis(lookahead), millis(ageing)));
        let [rate, group_rate] = [rate, group_rate].map(|rate| rate.map(stored_rate).unwrap_or_default());
        let (concurrency, group_concurrency) = (concurrency.unwrap_or(0), group_concurrency.unwrap_or(0));
        let call = call.arg((group_concurrency, group_rate, group_burst, concurrency, rate));
        self.take_number(call, Answer::Transfer, move |link, reply, mut lease_status| {
            let (micros, role): (_, usize) = (reply.read()?, reply.read()?);
            let role = [Role::Watcher, Role::Standby].get(role.wrapping_sub(1)).copied();
            let clock = Timestamp::floor_micros(micros);
            let (sleep, more) = (Duration::from_micros(reply.read()?).min(fallback), reply.read()?);
            let (holder, end): (NodeId, _) = (reply.read()?, reply.read()?);
            let foreign_lease = (!holder.as_str().is_empty()).then_some((holder, end));
            let (claims, foreign_rows) = claims_of(reply)?;
            check_due(&claims, clock.after(lookahead))?;
            link.drop_foreign_rows(&foreign_rows, &mut lease_status);
            let dropped = reply.ids()?;
            let (state, left) = told(reply, clock)?;
            Ok(Transferred {
                lease_status,
                clock,
                micros,
                role,
                sleep,
                more,
                foreign_lease,
                claims,
                dropped,
                state,
                left,
            })
        })
    }

    fn settle(&self, request: &Settle) -> Pending<Answer> {
        let is_tick = |outcome: &Outcome| matches!(outcome.change, Change::Tick(_));
        // Without ticks it does not need the index of schedules.
        let without = if request.outcomes.iter().any(is_tick) { 1 } else { SETTLES_WITHOUT };
        let call = self.counting(Step::Settle, without, &self.scripts.owner);
        let call = call.arg((&*self.scripts.owner, request.last_seen.0, millis(request.lease), request.bytes));
        let Sorted { call, places, mut verdicts } = sort(call, &request.outcomes, self.options);
        let answer = self.connection.ask_list(call);
        Box::pin(async move {
            let mut reply = answer.await?;
            let lease_status = reply.lease_status()?;
            for verdict in [Verdict::Stale, Verdict::Dropped, Verdict::Later] {
                for number in reply.read::<Vec<usize>>()? {
                    let place = places.get(number.wrapping_sub(1));
                    let unsent = || malformed("settle", "it has a verdict for an outcome that was not sent");
                    verdicts[*place.ok_or_else(unsent)?] = verdict.clone();
                }
            }
            Ok(Answer::Settle(Settled { lease_status, verdicts }))
        })
    }

    fn isolate(&self, request: &Isolate) -> Pending<Answer> {
        let isolation = match request.isolation {
            Some(Isolation::Grouped) => "+",
            Some(Isolation::Alone) => "!",
            None => "",
        };
        let call = self.call(Step::Isolate).arg((request.last_seen.0, millis(request.lease), isolation));
        let call = request.runs.iter().fold(call, |call, (id, token)| call.arg((id.as_str(), token.to_string())));
        let (answer, asked) = (self.connection.ask_list(call), request.runs.len());
        Box::pin(async move {
            let (lease_status, notes): (_, Option<Vec<_>>) = answer.await?.whole()?;
            if notes.as_ref().is_some_and(|notes| notes.len() != asked) {
                return Err(malformed("isolate", "it has another number of notes than runs were sent"));
            }
            Ok(Answer::Isolate(Isolated { lease_status, notes }))
        })
    }

    fn note(&self, request: Note, answer_of: fn(Noted) -> Answer) -> Pending<Answer> {
        let Note { last_seen, lease, id, token, number, what } = request;
        let call = self.call(Step::Note).arg((last_seen.0, millis(lease), id.as_str(), token.to_string()));
        let call = match what {
            Noting::State(metadata) => call.arg((metadata_bytes(metadata), "")),
            Noting::Progress(progress) => call.arg(("", &*escaped(&progress.written()))),
        };
        self.ask_for(call.arg(number), answer_of)
    }

    fn reconcile(&self, request: &Reconcile) -> Pending<Answer> {
        let after = request.after.as_ref().map_or("", RowCursor::as_str);
        let call = self.call(Step::Reconcile).arg((request.last_seen.0, after, request.limit.max(1)));
        self.take_number(call, Answer::Reconcile, |link, reply, mut lease_status| {
            let (mut rows, mut foreign_rows) = (Vec::new(), Vec::new());
            for (id, token) in reply.read::<Vec<ForeignRow>>()? {
                match parsed(&id).zip(parsed(&token)) {
                    Some(row) => rows.push(row),
                    None => foreign_rows.push((id, token)),
                }
            }
            let next = reply.read::<Option<_>>()?.map(|Text(cursor)| RowCursor::new(cursor));
            link.drop_foreign_rows(&foreign_rows, &mut lease_status);
            link.report_dropped(&reply.ids()?);
            rows.sort();
            Ok(Reconciled { lease_status, rows, next, born: reply.read()? })
        })
    }

    fn reclaim(&self, request: &Reclaim) -> Pending<Answer> {
        let dead = request.node.as_str();
        let keeps_seats = self.options.group_on_blocked.waits_for(BlockedBy::Dead);
        let call = self.counting(Step::Reclaim, 1, dead).arg((dead, request.seen.as_millis()));
        let call = call.arg((request.limit.max(1), request.max_crashes, request.bytes, keeps_seats));
        let (answer, link) = (self.connection.ask_list(call), self.clone());
        Box::pin(async move {
            let (moved, left, dropped) = answer.await?.whole()?;
            link.report_dropped(&readable(dropped));
            Ok(Answer::Reclaim(Reclaimed { moved, left }))
        })
    }

    fn sweep(&self, request: &Sweep) -> Pending<Answer> {
        let Sweep { last_seen, limit, bytes, lease, park_timeout, dead_retention, dead_max, done_max } = *request;
        let call = self.call(Step::Sweep).arg((last_seen.0, limit, millis(lease), millis(park_timeout)));
        let most_done = done_max.map(|most| most.to_string()).unwrap_or_default();
        let LinkOptions { concurrency, rate, group_rate, .. } = self.options;
        let [rate, group_rate] = [rate, group_rate].map(|rate| rate.map(stored_rate).unwrap_or_default());
        let call = call.arg((millis(dead_retention), dead_max, bytes, most_done));
        let call = call.arg((group_rate, concurrency.unwrap_or(0), rate));
        self.take_number(call, Answer::Sweep, |link, reply, mut lease_status| {
            let clock = reply.read()?;
            let (claims, foreign_rows) = claims_of(reply)?;
            link.drop_foreign_rows(&foreign_rows, &mut lease_status);
            let (pruned_dead, pruned_done, more) = (reply.read()?, reply.read()?, reply.read()?);
            link.report_dropped(&reply.ids()?);
            let (state, _) = told(reply, clock)?;
            Ok(Swept { lease_status, clock, claims, pruned_dead, pruned_done, more, state })
        })
    }

    fn publish(&self, request: Publish) -> Pending<Answer> {
        let Publish { limit, bytes, fallback, expires_after } = request;
        let call = self.call(Step::Publish).arg((limit, micros(fallback), millis(expires_after), bytes));
        let answer = self.prompt.ask_list(call);
        Box::pin(async move {
            let (published, dropped, sleep, more, last_number) = answer.await?.whole()?;
            let sleep = Duration::from_micros(sleep).min(fallback);
            Ok(Answer::Publish(Published { published, dropped, last_number, sleep, more }))
        })
    }
}

fn claims_of(reply: &mut Reply) -> Result<(Vec<Claim>, Vec<ForeignRow>), StoreError> {
    let (mut ids, tokens): (Strings, Vec<(Bytes, usize)>) = (reply.read()?, reply.read()?);
    let mut records: Strings = reply.read()?;
    let (overrides, crashes) = (reply.read::<Vec<Option<Bytes>>>()?, reply.read::<Vec<i64>>()?);
    let (mut overrides, mut crashes) = (overrides.into_iter(), crashes.into_iter());
    let (mut claims, mut foreign_rows) = (Vec::with_capacity(ids.len()), Vec::new());
    // So many of the jobs share each token.
    for (text, count) in tokens {
        let token = parsed(&text);
        for _ in 0..count {
            let Some((id, record)) = ids.next().zip(records.next_record()) else {
                return Err(malformed(reply.operation, "it has tokens without a job"));
            };
            let record = record.under(&overrides.next().flatten().unwrap_or_default());
            let crashes = crashes.next().map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX));
            match parsed(&id).zip(token) {
                Some((id, token)) => claims.push(Claim { id, token, record, crashes }),
                None => foreign_rows.push((id, text.clone())),
            }
        }
    }
    match ids.len() {
        0 => Ok((claims, foreign_rows)),
        _ => Err(malformed(reply.operation, "it has jobs without a token")),
    }
}

/// The node would hold a job until it is due, and renew its lease until then. A transfer claims none that is due later than this.
fn check_due(claims: &[Claim], latest: Timestamp) -> Result<(), StoreError> {
    match claims.iter().find(|claim| claim.token.due > latest) {
        Some(claim) => Err(malformed("transfer", &format!("the job {} that it claims is not due", claim.id))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Codec, Fence, JobId, Metadata, Record, Token};

    #[test]
    fn an_answer_with_a_claim_of_a_job_that_is_not_due_is_refused() {
        let claim = |due| Claim {
            id: JobId::new("a").unwrap(),
            token: Token { fence: Fence(1), due: Timestamp::from_millis(due) },
            record: Record::new(&Metadata::default(), Codec::Json, b"1"),
            crashes: 0,
        };
        let checked = |dues: &[u64]| {
            let claims: Vec<_> = dues.iter().map(|due| claim(*due)).collect();
            check_due(&claims, Timestamp::from_millis(5)).map_err(|error| error.to_string())
        };
        assert_eq!(checked(&[1, 5]), Ok(()));
        let refused = checked(&[1, 6, 2]).unwrap_err();
        assert!(refused.contains("malformed: the job a that it claims is not due"), "{refused}");
    }
}
