//! Who is told of a new lease, and so looks at the leases when it ends (rule 20).

use super::subscriber::Subscriber;
use super::topic::{FALLBACK, LEASE, Topic, ms, secs};
use dq::store::Signal;
use dq::store::step::{Change, MAX_LEASE, Role, Transfer};

/// The watcher `w`, the standby watcher `s`, and `o`, which has no role.
async fn nodes(t: &Topic) -> [Subscriber; 3] {
    assert_eq!(t.transfer("w", 1).await.role, Some(Role::Watcher));
    assert_eq!(t.transfer("s", 1).await.role, Some(Role::Standby));
    assert_eq!(t.transfer("o", 1).await.role, None);
    [t.subscribe("w").await, t.subscribe("s").await, t.subscribe("o").await]
}

/// The leases that each of them was told of since the last call, by their nodes.
async fn told(t: &Topic, nodes: &mut [Subscriber; 3]) -> [Vec<String>; 3] {
    let mut all = [vec![], vec![], vec![]];
    for (told, node) in all.iter_mut().zip(nodes) {
        for signal in node.received_all(t).await {
            if let Signal::Lease(node, lasts) = signal {
                assert_eq!(lasts, LEASE);
                told.push(node.to_string());
            }
        }
    }
    all
}

fn only(place: usize, node: &str) -> [Vec<String>; 3] {
    let mut all = [vec![], vec![], vec![]];
    all[place].push(node.to_owned());
    all
}

const NONE: [Vec<String>; 3] = [vec![], vec![], vec![]];

/// A new lease is told to the watcher only, with how long it lasts; no node is told of a transfer that claims nothing, nor of a
/// renewal (rule 20).
pub async fn new_lease_is_told_to_the_watcher(t: &Topic) {
    let mut nodes = nodes(t).await;
    assert_eq!(told(t, &mut nodes).await, NONE);
    t.running("o", "a").await;
    assert_eq!(told(t, &mut nodes).await, only(0, "o"));
    t.advance(secs(5)).await;
    t.renew("o").await;
    t.running("o", "b").await;
    assert_eq!(told(t, &mut nodes).await, NONE);
}

/// The lease of the watcher itself is told to the standby watcher (rule 20).
pub async fn new_lease_of_the_watcher_is_told_to_the_standby(t: &Topic) {
    let mut nodes = nodes(t).await;
    t.running("w", "a").await;
    assert_eq!(told(t, &mut nodes).await, only(1, "w"));
}

/// A new lease is told to all nodes if no other node has a role (rule 20).
pub async fn new_lease_is_told_to_all_nodes_without_another_role(t: &Topic) {
    let mut nodes = nodes(t).await;
    t.wake("w").await;
    t.wake("s").await;
    t.running("o", "a").await;
    assert_eq!(told(t, &mut nodes).await, [["o"], ["o"], ["o"]]);
    t.advance(FALLBACK + secs(1)).await;
    t.running("o", "b").await;
    assert_eq!(told(t, &mut nodes).await, NONE, "it has had this lease since");
}

/// A node that was told of a lease is told of no other before that one ends, because it looks at all leases then (rule 20).
pub async fn leases_are_told_once_until_the_told_one_ends(t: &Topic) {
    let mut nodes = nodes(t).await;
    let claim = t.running("o", "a").await;
    assert_eq!(told(t, &mut nodes).await, only(0, "o"));
    t.end("o", &claim, Change::Ack).await;
    t.advance(LEASE - ms(1)).await;
    assert_eq!(t.transfer("w", 1).await.role, Some(Role::Watcher));
    let claim = t.running("o", "b").await;
    assert_eq!(told(t, &mut nodes).await, NONE);
    t.end("o", &claim, Change::Ack).await;
    t.advance(ms(1)).await;
    t.running("o", "c").await;
    assert_eq!(told(t, &mut nodes).await, only(0, "o"));
}

/// A node that was told of a lease is told of one that ends before (rule 20).
pub async fn lease_that_ends_before_the_told_one_is_told(t: &Topic) {
    let mut nodes = nodes(t).await;
    t.add("long").await;
    let lease = MAX_LEASE + secs(60);
    t.transfer_with("o", Transfer { lease, ..t.transfer_of("o", 1) }).await;
    let received = nodes[0].received_all(t).await;
    assert!(received.contains(&Signal::Lease(t.node("o"), MAX_LEASE)), "{received:?}");
    t.running("n", "a").await;
    assert_eq!(told(t, &mut nodes).await, only(0, "n"));
}

/// The lease of the node that was told last is told to another one: no node watches itself (rule 20).
pub async fn lease_of_the_told_node_is_told_to_another(t: &Topic) {
    let mut nodes = nodes(t).await;
    t.running("s", "a").await;
    assert_eq!(told(t, &mut nodes).await, only(0, "s"));
    let claim = t.running("w", "b").await;
    assert_eq!(told(t, &mut nodes).await, only(1, "w"));
    t.end("w", &claim, Change::Ack).await;
    t.running("w", "c").await;
    assert_eq!(told(t, &mut nodes).await, NONE, "both look when the leases end");
}

/// Another watcher is told, whatever the last one was told (rule 20).
pub async fn new_watcher_is_told_of_a_new_lease(t: &Topic) {
    let mut nodes = nodes(t).await;
    let claim = t.running("n", "a").await;
    assert_eq!(told(t, &mut nodes).await, only(0, "n"));
    t.end("n", &claim, Change::Ack).await;
    t.release("w").await;
    assert_eq!(t.transfer("o", 1).await.role, Some(Role::Watcher));
    t.running("n", "b").await;
    assert_eq!(told(t, &mut nodes).await, only(2, "n"));
}

/// A node that takes a role after all nodes were told of a lease is told of the next one: it was not there (rule 20).
pub async fn a_node_that_comes_after_all_were_told_is_told(t: &Topic) {
    t.add_and_run("n", "a", Change::Ack).await;
    assert!(t.transfer("o", 1).await.role.is_some());
    let mut o = t.subscribe("o").await;
    t.running("n", "b").await;
    assert!(o.received_all(t).await.contains(&Signal::Lease(t.node("n"), LEASE)));
}

/// A lease is told to all nodes when the node with the role does not listen, or when its role has lapsed (rules 20, 23).
pub async fn new_lease_is_told_to_all_nodes_when_the_watcher_does_not_listen(t: &Topic) {
    assert_eq!(t.transfer("w", 1).await.role, Some(Role::Watcher));
    let mut o = t.subscribe("o").await;
    let claim = t.running("n", "a").await;
    assert!(o.received_all(t).await.contains(&Signal::Lease(t.node("n"), LEASE)));
    t.end("n", &claim, Change::Ack).await;
    t.running("n", "b").await;
    assert!(!o.received_all(t).await.contains(&Signal::Lease(t.node("n"), LEASE)), "all others were told");
    t.running("m", "c").await;
    assert!(o.received_all(t).await.contains(&Signal::Lease(t.node("m"), LEASE)), "perhaps only m was told");
    t.advance(FALLBACK + secs(1)).await;
    let _w = t.subscribe("w").await;
    t.running("x", "d").await;
    assert!(o.received_all(t).await.contains(&Signal::Lease(t.node("x"), LEASE)), "the roles have lapsed");
}

/// A sweep that creates a lease tells of it (rule 20).
pub async fn lease_of_a_sweep_is_told(t: &Topic) {
    t.add_and_run("n", "a", Change::Park).await;
    t.advance(secs(7 * 24 * 3_600)).await;
    let mut nodes = nodes(t).await;
    told(t, &mut nodes).await;
    t.claim_unacked("w", "a").await;
    assert_eq!(told(t, &mut nodes).await, only(1, "w"));
}
