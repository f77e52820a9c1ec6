//! The steps of a node, each a script over the ordered connection of its link.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, TryFutureExt};

use super::connection::OrderedConnection;
use super::outcomes::{Sorted, sort};
use super::reply::{Reply, malformed};
use super::scripts::{ScriptCall, Step, TopicScripts};
use super::topic_state::told;
use super::{metadata_bytes, micros, millis};
use crate::job::{Isolation, JobId, Metadata, Token};
use crate::store::step::{
    Change, Claim, DEFAULT_BYTES, Exhaust, Isolate, Isolated, LeaseStatus, Note, NoteVerdict, Noted, Noting, Outcome,
    Publish, Published, Reclaim, Reclaimed, Reconcile, Reconciled, Release, Renew, Role, RowCursor, Scan, Sequenced,
    Settle, Settled, Sweep, Swept, Transfer, Transferred, Verdict, Wake,
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
            let (is_done, lease_status) = (reply.is_set()?, reply.lease_status()?);
            Ok(answer_of(match is_done {
                true => Sequenced::Done(read(&link, &mut reply, lease_status)?),
                false => Sequenced::Reconcile(lease_status),
            }))
        })
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
        let mut call = call.arg("").arg(0).arg(DEFAULT_BYTES).arg(0).arg(0);
        for (id, token) in foreign_rows {
            for argument in [id.as_ref(), token.as_ref(), b"d", b"0", b""] {
                call.push(argument);
            }
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
            Request::Renew(request) => self.renew(request),
            Request::Isolate(request) => self.isolate(&request),
            Request::Exhaust(request) => self.exhaust(request),
            Request::Note(request) => self.note(request, Answer::Note),
            Request::Reconcile(request) => self.reconcile(&request),
            Request::Reclaim(request) => self.reclaim(&request),
            Request::Release(request) => self.release(request),
            Request::Sweep(request) => self.sweep(&request),
            Request::Publish(request) => self.publish(request),
            Request::Wake(Wake) => self.wake(),
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
        let call = self.counting(Step::Transfer, 1, node).arg(node).arg(request.last_seen.0).arg(request.limit);
        let call = call.arg(millis(request.lease)).arg(micros(request.fallback)).arg(request.bytes);
        let call = self.limits(
            call.arg(millis(request.lookahead))
                .arg(millis(self.options.ageing))
                .arg(self.options.group_concurrency.unwrap_or(0))
                .arg(self.options.group_rate.map(stored_rate).unwrap_or_default())
                .arg(self.options.group_burst),
        );
        let (fallback, lookahead) = (request.fallback, request.lookahead);
        self.take_number(call, Answer::Transfer, move |link, reply, mut lease_status| {
            let (micros, role) = (u64::try_from(reply.int()?).unwrap_or_default(), role_of(reply.int()?));
            let clock = Timestamp::floor_micros(micros);
            let (sleep, more) = (reply.micros()?.min(fallback), reply.is_set()?);
            let (holder, end) = (reply.node()?, reply.time()?);
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
        let call = self.counting(Step::Settle, without, &self.scripts.owner).arg(&*self.scripts.owner);
        let call = call.arg(request.last_seen.0).arg(millis(request.lease)).arg(request.bytes);
        let Sorted { call, places, mut verdicts } = sort(call, &request.outcomes, self.options);
        let answer = self.connection.ask_list(call);
        Box::pin(async move {
            let mut reply = answer.await?;
            let lease_status = reply.lease_status()?;
            for verdict in [Verdict::Stale, Verdict::Dropped, Verdict::Later] {
                let mut numbers = reply.nested()?;
                while numbers.len() > 0 {
                    let place = numbers.count()?.checked_sub(1).and_then(|n| places.get(n));
                    verdicts[*place
                        .ok_or_else(|| malformed("settle", "it has a verdict for an outcome that was not sent"))?] =
                        verdict.clone();
                }
            }
            Ok(Answer::Settle(Settled { lease_status, verdicts }))
        })
    }

    fn renew(&self, request: Renew) -> Pending<Answer> {
        let call = self.call(Step::Renew).arg(request.last_seen.0).arg(millis(request.lease));
        self.prompt.ask_list(call).map(|reply| reply?.lease_status().map(Answer::Renew)).boxed()
    }

    fn isolate(&self, request: &Isolate) -> Pending<Answer> {
        let isolation = match request.isolation {
            Some(Isolation::Grouped) => "+",
            Some(Isolation::Alone) => "!",
            None => "",
        };
        let call = self.call(Step::Isolate).arg(request.last_seen.0).arg(millis(request.lease)).arg(isolation);
        let call = request.runs.iter().fold(call, |call, (id, token)| call.arg(id.as_str()).arg(token.to_string()));
        let (answer, asked) = (self.connection.ask_list(call), request.runs.len());
        Box::pin(async move {
            let mut reply = answer.await?;
            let (is_current, lease_status) = (reply.is_set()?, reply.lease_status()?);
            let notes: Vec<_> = reply.text()?.chars().map(note_of).collect();
            if is_current && notes.len() != asked {
                return Err(malformed("isolate", "it has another number of notes than runs were sent"));
            }
            Ok(Answer::Isolate(Isolated { lease_status, notes: is_current.then_some(notes) }))
        })
    }

    fn exhaust(&self, request: Exhaust) -> Pending<Answer> {
        let Exhaust { last_seen, lease, id, token, metadata } = request;
        let what = Noting::State(Metadata { exhausted: true, ..metadata });
        self.note(Note { last_seen, lease, id, token, number: 0, what }, Answer::Exhaust)
    }

    fn note(&self, request: Note, answer_of: fn(Noted) -> Answer) -> Pending<Answer> {
        let call = self.call(Step::Note).arg(request.last_seen.0).arg(millis(request.lease));
        let call = call.arg(request.id.as_str()).arg(request.token.to_string());
        let call = match request.what {
            Noting::State(metadata) => call.arg(metadata_bytes(metadata)).arg(""),
            Noting::Progress(progress) => call.arg("").arg(escaped(&progress.written()).as_ref()),
        };
        let call = call.arg(request.number);
        self.connection.ask_list(call).map(move |reply| noted_of(reply?).map(answer_of)).boxed()
    }

    fn reconcile(&self, request: &Reconcile) -> Pending<Answer> {
        let after = request.after.as_ref().map_or("", RowCursor::as_str);
        let call = self.call(Step::Reconcile).arg(request.last_seen.0).arg(after).arg(request.limit.max(1));
        self.take_number(call, Answer::Reconcile, |link, reply, mut lease_status| {
            let (mut found, mut rows, mut foreign_rows) = (reply.nested()?, Vec::new(), Vec::new());
            while found.len() > 0 {
                match row_of(found.bytes()?, found.bytes()?) {
                    Ok(row) => rows.push(row),
                    Err(foreign) => foreign_rows.push(foreign),
                }
            }
            let next = Some(reply.text()?).filter(|cursor| !cursor.is_empty()).map(RowCursor::new);
            link.drop_foreign_rows(&foreign_rows, &mut lease_status);
            link.report_dropped(&reply.ids()?);
            rows.sort();
            Ok(Reconciled { lease_status, rows, next, born: reply.number()? })
        })
    }

    fn reclaim(&self, request: &Reclaim) -> Pending<Answer> {
        let dead = request.node.as_str();
        let call = self.counting(Step::Reclaim, 1, dead).arg(dead).arg(request.seen.as_millis());
        let call = call.arg(request.limit.max(1)).arg(request.max_crashes).arg(request.bytes);
        let call = call.arg(u8::from(self.options.group_on_blocked.waits_for(BlockedBy::Dead)));
        let answer = self.connection.ask_list(call);
        let link = self.clone();
        Box::pin(async move {
            let mut reply = answer.await?;
            let reclaimed = Reclaimed { moved: reply.count()?, left: reply.count()? };
            link.report_dropped(&reply.ids()?);
            Ok(Answer::Reclaim(reclaimed))
        })
    }

    fn release(&self, request: Release) -> Pending<Answer> {
        let call = self.call(Step::Release).arg(request.last_seen.0);
        self.connection.ask_list(call).map(|reply| reply?.lease_status().map(Answer::Release)).boxed()
    }

    /// Adds what the code of the node limits.
    fn limits(&self, call: ScriptCall) -> ScriptCall {
        let LinkOptions { concurrency, rate, .. } = self.options;
        let call = call.arg(concurrency.unwrap_or(0));
        call.arg(rate.map(stored_rate).unwrap_or_default())
    }

    fn sweep(&self, request: &Sweep) -> Pending<Answer> {
        let call = self.call(Step::Sweep).arg(request.last_seen.0).arg(request.limit).arg(millis(request.lease));
        let call = call.arg(millis(request.park_timeout)).arg(millis(request.dead_retention)).arg(request.dead_max);
        let most_done = request.done_max.map(|most| most.to_string()).unwrap_or_default();
        let rate_of_groups = self.options.group_rate.map(stored_rate).unwrap_or_default();
        let call = self.limits(call.arg(request.bytes).arg(most_done).arg(rate_of_groups));
        self.take_number(call, Answer::Sweep, |link, reply, mut lease_status| {
            let clock = reply.time()?;
            let (claims, foreign_rows) = claims_of(reply)?;
            link.drop_foreign_rows(&foreign_rows, &mut lease_status);
            let (pruned_dead, pruned_done, more) = (reply.count()?, reply.count()?, reply.is_set()?);
            link.report_dropped(&reply.ids()?);
            let (state, _) = told(reply, clock)?;
            Ok(Swept { lease_status, clock, claims, pruned_dead, pruned_done, more, state })
        })
    }

    fn publish(&self, request: Publish) -> Pending<Answer> {
        let call = self.call(Step::Publish).arg(request.limit).arg(micros(request.fallback));
        let answer = self.prompt.ask_list(call.arg(millis(request.expires_after)).arg(request.bytes));
        Box::pin(async move {
            let mut reply = answer.await?;
            let (published, dropped) = (reply.count()?, reply.count()?);
            let (sleep, more) = (reply.micros()?.min(request.fallback), reply.is_set()?);
            let last_number = reply.number()?;
            Ok(Answer::Publish(Published { published, dropped, last_number, sleep, more }))
        })
    }

    fn wake(&self) -> Pending<Answer> {
        self.connection.ask(self.call(Step::Wake)).map_ok(|_| Answer::Wake(())).boxed()
    }
}

const fn role_of(number: i64) -> Option<Role> {
    match number {
        1 => Some(Role::Watcher),
        2 => Some(Role::Standby),
        _ => None,
    }
}

fn claims_of(reply: &mut Reply) -> Result<(Vec<Claim>, Vec<ForeignRow>), StoreError> {
    let (mut ids, mut tokens, mut records) = (reply.strings()?, reply.nested()?, reply.strings()?);
    let (mut overrides, mut crashes) = (reply.nested_or_nothing()?, reply.nested_or_nothing()?);
    let (mut claims, mut foreign_rows) = (Vec::with_capacity(ids.len()), Vec::new());
    while tokens.len() > 0 {
        // The next `count` jobs share this token.
        let (text, count) = (tokens.bytes()?, tokens.count()?);
        let token = token_of(&text);
        for _ in 0..count {
            let (id, record) = (ids.id()?, records.record()?);
            let record = match &mut overrides {
                Some(overrides) => record.under(&overrides.bytes_or_nothing()?),
                None => record,
            };
            let crashes = crashes.as_mut().map_or(Ok(0), Reply::int)?;
            let crashes = u32::try_from(crashes).unwrap_or(u32::MAX);
            match (id, token) {
                (Ok(id), Some(token)) => claims.push(Claim { id, token, record, crashes }),
                (Ok(id), None) => foreign_rows.push((Bytes::copy_from_slice(id.as_str().as_bytes()), text.clone())),
                (Err(id), _) => foreign_rows.push((id, text.clone())),
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

fn token_of(text: &[u8]) -> Option<Token> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn row_of(id: Bytes, token: Bytes) -> Result<(JobId, Token), ForeignRow> {
    let job = std::str::from_utf8(&id).ok().and_then(|id| JobId::new(id).ok());
    job.zip(token_of(&token)).ok_or((id, token))
}

fn noted_of(mut reply: Reply) -> Result<Noted, StoreError> {
    let lease_status = reply.lease_status()?;
    let note = reply.text()?.chars().next().map_or(NoteVerdict::Stale, note_of);
    Ok(Noted { lease_status, note })
}

const fn note_of(letter: char) -> NoteVerdict {
    match letter {
        'd' => NoteVerdict::Done,
        'e' => NoteVerdict::Ended,
        'c' => NoteVerdict::Cancelled,
        _ => NoteVerdict::Stale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Codec, Fence, JobId, Metadata, Record};

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
