//! The query about groups, over the shared connection.

use std::collections::BTreeSet;

use super::RedisStore;
use super::reply::Reply;
use super::scripts::Step;
use super::topic_state::pause;
use crate::job::{GroupName, NodeId, State, Token, TopicKey};
use crate::store::groups::MAX_SEATS;
use crate::store::{GroupPage, GroupSeen, GroupsRequest, JobPlace, MAX_NODES, StoreError};
use crate::time::Timestamp;

impl RedisStore {
    /// One script names the nodes, and a second one reads the groups, with the nodes that hold their jobs.
    pub(super) async fn groups_of(&self, topic: &TopicKey, request: &GroupsRequest) -> Result<GroupPage, StoreError> {
        let scripts = self.scripts_of(topic);
        let named = self.nodes_behind(&scripts, "", MAX_NODES).await?;
        let nodes: BTreeSet<_> = named.into_iter().map(|(node, _)| node).collect();
        let call = scripts.call_with_nodes(Step::Groups, &nodes);
        let GroupsRequest { after, only, limit } = request;
        let name = |name: &Option<GroupName>| name.as_ref().map_or_else(String::new, GroupName::to_string);
        let call = call.arg(name(after)).arg((*limit).max(1)).arg(MAX_SEATS).arg(name(only)).nodes(&nodes);
        let mut reply = self.shards.ask_list(call).await?;
        let (more, nodes) = (reply.is_set()?, nodes.into_iter().collect::<Vec<_>>());
        let groups = reply.nested()?.each(|list| group_in(list.nested()?, &nodes))?;
        Ok(GroupPage { groups, more })
    }
}

/// Reads a group; `None` if its name is none, as another program may have entered.
fn group_in(mut reply: Reply, nodes: &[NodeId]) -> Result<Option<GroupSeen>, StoreError> {
    let (name, waiting, is_full) = (reply.text()?, reply.count()?, reply.is_set()?);
    let seats = reply.nested()?.each(|seats| {
        let (id, state, at) = (seats.id()?, seats.state()?, seats.time()?);
        let (number, token) = (seats.count()?, seats.text()?);
        let place = match state {
            State::Running => {
                let holder = number.checked_sub(1).and_then(|at| nodes.get(at));
                let fence = token.parse().ok().map(|token: Token| token.fence);
                JobPlace::Running { holder: holder.cloned().zip(fence) }
            }
            state => JobPlace::of(state, at),
        };
        Ok(id.ok().map(|id| (id, place)))
    })?;
    let (pause, opens) = (pause(&reply.text()?), reply.text()?.parse::<u64>().unwrap_or_default());
    let opens = (opens > 0).then(|| Timestamp::from_millis(opens.div_ceil(1_000)));
    Ok(GroupName::new(name).ok().map(|name| GroupSeen { name, waiting, seats, is_full, pause, opens }))
}
