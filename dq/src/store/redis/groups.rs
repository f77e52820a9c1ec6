//! The query about groups, over the shared connection.

use std::collections::BTreeSet;

use super::RedisStore;
use super::reply::{Readable, Text};
use super::scripts::Step;
use super::topic_state::pause;
use crate::job::{GroupName, JobId, JobState, NodeId, State, Token, TopicKey};
use crate::store::groups::MAX_SEATS;
use crate::store::{GroupPage, GroupSeen, GroupsRequest, MAX_NODES, StoreError};
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
        let call = call.arg((name(after), (*limit).max(1), MAX_SEATS, name(only))).nodes(&nodes);
        let (more, groups): (_, Vec<_>) = self.shards.ask(call).await?;
        let nodes: Vec<_> = nodes.into_iter().collect();
        Ok(GroupPage { groups: groups.into_iter().filter_map(|group| group_in(group, &nodes)).collect(), more })
    }
}

/// A group, as the script tells it.
type GroupRow = (Text, usize, bool, Vec<SeatRow>, Text, Readable<u64>);

/// The id of the job, its state and time, the number of its node, and its token.
type SeatRow = (Readable<JobId>, State, Timestamp, usize, Readable<Token>);

/// A group; `None` if its name is none, as another program may have entered.
fn group_in(
    (Text(name), waiting, is_full, seats, Text(paused), Readable(opens)): GroupRow,
    nodes: &[NodeId],
) -> Option<GroupSeen> {
    let seat = |(Readable(id), state, at, number, Readable(token)): SeatRow| {
        let holder = nodes.get(number.wrapping_sub(1)).cloned();
        let place = match state {
            State::Running => JobState::Running { holder: holder.zip(token.map(|token| token.fence)) },
            state => JobState::of(state, at),
        };
        Some((id?, place))
    };
    let opens = opens.filter(|opens| *opens > 0).map(Timestamp::ceil_micros);
    let seats = seats.into_iter().filter_map(seat).collect();
    Some(GroupSeen { name: GroupName::new(name).ok()?, waiting, seats, is_full, pause: pause(&paused), opens })
}
