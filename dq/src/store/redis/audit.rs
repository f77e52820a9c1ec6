//! The steps that look at the rows of all nodes: `scan`, `audit` and `recover` (rule 2).

use std::collections::BTreeSet;

use super::all_nodes::{Undecodable, recover_call, with_all_nodes};
use super::examine::{KeyPage, examine_call};
use super::link::RedisLink;
use super::reply::Reply;
use super::scripts::{ScriptCall, Step, TopicScripts};
use super::topic_state::told;
use crate::job::{JobId, NodeId};
use crate::store::step::{Audit, Audited, DEFAULT_BYTES, Recover, Recovered, RowCursor, Scanned};
use crate::store::{Answer, Pending, StoreError};

impl RedisLink {
    /// Sends a request until it names all nodes. It is in flight when this returns.
    fn ask_with_nodes(
        &self,
        step: Step,
        call: impl Fn(&TopicScripts, &BTreeSet<NodeId>) -> ScriptCall + Send + 'static,
    ) -> Pending<Reply> {
        let (connection, scripts) = (self.connection.clone(), self.scripts.clone());
        let mut first = Some(Box::pin(connection.ask_list(call(&scripts, &BTreeSet::new()))));
        let ask = move |nodes: &BTreeSet<NodeId>| {
            first.take().unwrap_or_else(|| Box::pin(connection.ask_list(call(&scripts, nodes))))
        };
        Box::pin(with_all_nodes(step, BTreeSet::new(), ask))
    }

    pub(super) fn scan(&self) -> Pending<Answer> {
        let answer =
            self.ask_with_nodes(Step::Scan, |scripts, nodes| scripts.call_with_nodes(Step::Scan, nodes).nodes(nodes));
        Box::pin(async move {
            let mut reply = answer.await?;
            let clock = reply.time()?;
            let mut leases: Vec<_> = reply.nested()?.each(|ends| Ok(Some((ends.node()?, ends.time()?))))?;
            leases.sort();
            let (records, places) = (reply.count()?, reply.count()?);
            let (state, left) = told(&mut reply, clock)?;
            let follow_ups = reply.is_set()?;
            Ok(Answer::Scan(Scanned { clock, leases, records, places, follow_ups, state, left }))
        })
    }

    /// A page of the jobs, and then of those that are due much later. These have their due time in their record, so they are put back
    /// immediately.
    pub(super) fn audit(&self, request: &Audit) -> Pending<Answer> {
        let position = request.after.as_ref().map_or(String::new(), |at| at.as_str().to_owned());
        let (limit, bytes) = (request.limit.max(1), request.bytes);
        let answer = self
            .ask_with_nodes(Step::Examine, move |scripts, nodes| examine_call(scripts, nodes, &position, limit, bytes));
        let link = self.clone();
        Box::pin(async move {
            let page = KeyPage::read(answer.await?)?;
            let (lost, far, next) = page.audited();
            let far_lost = if next.is_none() { page.far_lost } else { String::new() };
            link.bring_near(far, far_lost).await?;
            Ok(Answer::Audit(Audited { lost, next: next.map(RowCursor::new) }))
        })
    }

    /// Lets far jobs that are in no leaf wait under their due times. `far_lost` ends the note that leaves are gone, once all were found.
    async fn bring_near(&self, mut ids: Vec<JobId>, far_lost: String) -> Result<(), StoreError> {
        if let Some(first) = ids.first() {
            tracing::warn!(topic = %self.scripts.keys.topic().topic, count = ids.len(), %first, "jobs whose place another program removed wait again");
        }
        while !ids.is_empty() {
            let mut reply = self.recovered(ids.clone(), DEFAULT_BYTES, String::new()).await?;
            let (_, examined) = (reply.nested()?, reply.count()?);
            ids.drain(..examined.clamp(1, ids.len()));
        }
        if far_lost.is_empty() {
            return Ok(());
        }
        self.recovered(ids, DEFAULT_BYTES, far_lost).await.map(drop)
    }

    /// The answer to `recover`.
    fn recovered(&self, ids: Vec<JobId>, bytes: usize, far_lost: String) -> Pending<Reply> {
        self.ask_with_nodes(Step::Recover, move |scripts, nodes| {
            recover_call(scripts, nodes, bytes, &far_lost, Undecodable::default(), ids.iter().map(JobId::as_str))
        })
    }

    pub(super) fn recover(&self, request: Recover) -> Pending<Answer> {
        let answer = self.recovered(request.ids, request.bytes, String::new());
        Box::pin(async move {
            let mut reply = answer.await?;
            Ok(Answer::Recover(Recovered { recovered: reply.ids()?, examined: reply.count()? }))
        })
    }
}
