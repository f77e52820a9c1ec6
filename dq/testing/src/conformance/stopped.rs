//! Groups that stand, as the query shows them, and how they continue (rule 4).

use super::groups::{add, group_on_blocked, limit};
use super::topic::{Topic, id, ms, secs};
use dq::job::{GroupName, JobState, State};
use dq::store::step::{Change, Claim, RejoinDue};
use dq::store::{CommandKind, CommandOutcome, GroupPage, GroupSeen, GroupsRequest};

pub(super) fn named(name: &str) -> GroupName {
    GroupName::new(name).expect("it names a group")
}

pub(super) async fn groups(t: &Topic, after: Option<&str>, limit: usize) -> GroupPage {
    let request = GroupsRequest { after: after.map(named), only: None, limit };
    t.store.groups(&t.key, &request).await.expect("the query is answered")
}

pub(super) async fn group(t: &Topic, name: &str) -> Option<GroupSeen> {
    let request = GroupsRequest { after: None, only: Some(named(name)), limit: 1 };
    t.store.groups(&t.key, &request).await.expect("the query is answered").groups.pop()
}

pub(super) async fn pass(t: &Topic, name: &str) -> CommandOutcome {
    t.command(CommandKind::Pass, name, None).await
}

/// Makes the first job of a group DEAD, which keeps its seat; two more wait.
async fn stop(t: &Topic) -> Claim {
    limit(t, 1).await;
    t.linked("n", group_on_blocked("dead: wait"));
    add(t, &["a-1", "a-2", "a-3"]).await;
    let claim = t.claim("n", "a-1").await;
    t.end("n", &claim, Change::Dead).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    claim
}

/// The query names the groups that have jobs, how many wait, and the jobs with a seat: the node of a RUNNING one, and the state of another
/// (query `groups`).
pub async fn query_names_the_groups_and_who_has_their_seats(t: &Topic) {
    limit(t, 1).await;
    t.add("plain").await;
    assert_eq!(groups(t, None, 10).await, GroupPage::default());
    add(t, &["a-1", "a-2", "a-3", "b-1"]).await;
    let claims = t.claims("n").await;
    t.end("n", &claims[1], Change::Retry(secs(9))).await;
    let fence = claims[0].token.fence;
    let running = JobState::Running { holder: Some((t.node("n"), fence)) };
    let seen = |name, waiting, seat: &str, place| {
        let seats = vec![(id(seat), place)];
        GroupSeen { name: named(name), waiting, seats, is_full: waiting > 0, pause: None, opens: None }
    };
    let b = seen("b", 0, "b-1", JobState::Delayed { due: t.in_ms(9_000) });
    assert_eq!(groups(t, None, 10).await, GroupPage { groups: vec![seen("a", 2, "a-1", running), b], more: false });
    t.end("n", &claims[0], Change::Ack).await;
    let a = group(t, "a").await.expect("it has jobs");
    assert_eq!((a.waiting, a.seats.len(), a.is_full), (2, 0, false));
    assert_eq!(group(t, "c").await, None);
}

/// Pages are in the order of the names (query `groups`).
pub async fn groups_come_in_pages(t: &Topic) {
    add(t, &["b-1", "a-1", "c-1", "a b-1", "a-2"]).await;
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = groups(t, after.as_deref(), 2).await;
        assert_eq!(page.groups.len(), 2);
        names.extend(page.groups.iter().map(|group| group.name.to_string()));
        after = names.last().cloned();
        if !page.more {
            break;
        }
    }
    assert_eq!(names, ["a", "a b", "b", "c"]);
    assert_eq!(groups(t, Some("b"), 100).await.groups.len(), 1);
}

/// A group waits for the jobs that its node names, however their runs have ended, until they have run again (rule 4).
pub async fn group_waits_for_what_its_node_names(t: &Topic) {
    limit(t, 1).await;
    let again = Change::Rejoin(RejoinDue::After(secs(5)));
    for (n, (text, change)) in [
        ("retry: wait", Change::Retry(secs(5))),
        ("rejoin: wait", again),
        ("park: wait", Change::Park),
        ("dead: wait", Change::Dead),
    ]
    .into_iter()
    .enumerate()
    {
        let node = format!("n{n}");
        t.linked(&node, group_on_blocked(text));
        add(t, &["a-1", "a-2"]).await;
        t.run(&node, "a-1", change).await;
        assert_eq!(t.claimed_ids("m").await, [""; 0], "{text}");
        t.advance(secs(5)).await;
        t.requeue("a-1").await;
        for name in ["a-1", "a-2"] {
            t.run("m", name, Change::Ack).await;
        }
    }
}

/// A parked job keeps the seat that its node leaves it while `on_park_timeout` runs, until it is acked (rules 4, 25).
pub async fn parked_job_stops_its_group_until_it_is_acked(t: &Topic) {
    limit(t, 1).await;
    for node in ["n", "m"] {
        t.linked(node, group_on_blocked("park: wait"));
    }
    add(t, &["a-1", "a-2"]).await;
    t.run("n", "a-1", Change::Park).await;
    t.advance(secs(7 * 24 * 3_600)).await;
    for change in [Change::Rollback, Change::Park] {
        let claim = t.claim_unacked("m", "a-1").await;
        assert_eq!(t.claimed_ids("n").await, [""; 0]);
        t.end("m", &claim, change).await;
        assert_eq!(t.claimed_ids("n").await, [""; 0]);
    }
    assert!(t.ack_outside("a-1").await.changed);
    t.claim("n", "a-2").await;
}

/// A group that a DEAD job stops continues once the job was passed; the job stays DEAD (rule 4).
pub async fn stopped_group_passes_the_job(t: &Topic) {
    stop(t).await;
    let seen = group(t, "a").await.expect("it has jobs");
    assert!(matches!(seen.seats.as_slice(), [(_, JobState::Dead { .. })]), "{seen:?}");
    assert!(seen.is_full);
    let passed = pass(t, "a-1").await;
    assert_eq!((passed.found, passed.changed, passed.removed), (Some(State::Dead), true, None));
    assert!(!pass(t, "a-1").await.changed);
    assert_eq!(t.state("a-1").await, Some(State::Dead));
    let second = t.claim("n", "a-2").await;
    t.advance(ms(1)).await;
    t.requeue("a-1").await;
    t.end("n", &second, Change::Ack).await;
    for name in ["a-3", "a-1"] {
        let claim = t.claim("n", name).await;
        t.advance(ms(1)).await;
        t.end("n", &claim, Change::Ack).await;
    }
}

/// A job that waits for its retry is passed as well, and joins its group with its due time (rule 4).
pub async fn job_that_waits_for_its_retry_is_passed(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-1", "a-2"]).await;
    let claim = t.claim("n", "a-1").await;
    t.end("n", &claim, Change::Retry(secs(5))).await;
    let due = t.due("a-1").await;
    assert!(pass(t, "a-1").await.changed);
    assert_eq!(t.due("a-1").await, due);
    let second = t.claim("n", "a-2").await;
    t.advance(secs(5)).await;
    assert_eq!(t.claimed_ids("m").await, [""; 0]);
    t.end("n", &second, Change::Ack).await;
    t.claim("m", "a-1").await;
}

/// A running job keeps its seat, and what has none is as it was (rule 4).
pub async fn pass_of_what_has_no_seat_changes_nothing(t: &Topic) {
    limit(t, 1).await;
    t.add("plain").await;
    add(t, &["a-1", "a-2"]).await;
    let claims = t.claims("n").await;
    for (name, found) in [("a-1", Some(State::Running)), ("a-2", Some(State::Delayed)), ("none", None)] {
        let passed = pass(t, name).await;
        assert_eq!((passed.found, passed.changed), (found, false), "{name}");
    }
    assert!(!pass(t, "plain").await.changed);
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    for claim in &claims {
        t.end("n", claim, Change::Ack).await;
    }
    t.claim("n", "a-2").await;
}
