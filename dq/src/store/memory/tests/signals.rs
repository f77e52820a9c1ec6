use super::*;

#[test]
fn an_earlier_head_is_signalled_to_the_watcher_if_there_is_one() {
    let mut bench = Bench::new();
    bench.add(NewJob { due: Due::After(LEASE), ..job("a") });
    assert_eq!(bench.signals(), [(Recipient::Nodes, Signal::Due(None))]);
    assert_eq!(bench.transfer("n", 1).role, Some(Role::Watcher));
    bench.add(NewJob { due: Due::After(LEASE * 2), ..job("later") });
    assert_eq!(bench.signals(), []);
    bench.add(job("now"));
    assert_eq!(bench.signals(), [(Recipient::Node(node("n")), Signal::Due(Some(Timestamp::from_millis(START_MS))))]);
    bench.advance(FALLBACK + ROLE_SLACK + Duration::from_millis(1));
    bench.transfer("m", 10);
    bench.add(job("b"));
    assert_eq!(bench.signals(), [(Recipient::Node(node("m")), Signal::Due(Some(bench.now.floor())))]);
}

#[test]
fn an_earlier_head_is_signalled_to_all_nodes_once_the_watcher_has_lapsed() {
    let mut bench = Bench::new();
    bench.transfer("n", 1);
    bench.advance(FALLBACK + ROLE_SLACK + Duration::from_millis(1));
    bench.add(job("a"));
    assert_eq!(bench.signals(), [(Recipient::Nodes, Signal::Due(None))]);
}

#[test]
fn the_watcher_sleeps_until_the_head_the_standby_a_little_longer_the_others_the_fallback() {
    let mut bench = Bench::new();
    bench.add(NewJob { due: Due::After(Duration::from_secs(1)), ..job("a") });
    let answers = ["n", "m", "o"].map(|name| bench.transfer(name, 1)).map(|answer| (answer.role, answer.sleep));
    let second = Duration::from_secs(1);
    assert_eq!(
        answers,
        [(Some(Role::Watcher), second), (Some(Role::Standby), second + STANDBY_DELAY), (None, FALLBACK)]
    );
}

#[test]
fn a_standby_that_becomes_the_watcher_frees_its_old_role() {
    let mut bench = Bench::new();
    bench.transfer("n", 1);
    assert_eq!(bench.transfer("m", 1).role, Some(Role::Standby));
    bench.topic.wake(&node("n"));
    assert_eq!(bench.transfer("m", 1).role, Some(Role::Watcher));
    assert_eq!(bench.transfer("o", 1).role, Some(Role::Standby));
}

#[test]
fn a_node_that_stops_or_cannot_claim_due_jobs_frees_its_role_and_signals_the_others() {
    let mut bench = Bench::new();
    bench.add(job("a"));
    bench.transfer("n", 0);
    bench.topic.wake(&node("n"));
    bench.finish_step();
    assert_eq!(bench.signals(), [(Recipient::Nodes, Signal::Due(None))]);
    assert_eq!(bench.transfer("m", 0).role, Some(Role::Watcher));
    let last_seen = bench.sequence("m");
    bench.topic.release(bench.now, &node("m"), Release { last_seen });
    bench.finish_step();
    assert_eq!(bench.signals(), [(Recipient::Nodes, Signal::Due(None))]);
}

#[test]
fn pending_commands_are_signalled_to_every_node() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    bench.command(CommandKind::Cancel, "a", None);
    assert_eq!(bench.signals(), [(Recipient::Nodes, Signal::Command(CommandKind::Cancel, id("a")))]);
    bench.command(CommandKind::Ack, "a", Some(Fence(1)));
    assert_eq!(bench.signals(), []);
}

#[test]
fn a_transfer_returns_the_earliest_lease_of_another_node() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    assert_eq!(bench.transfer("n", 1).foreign_lease, None);
    let earliest = bench.transfer("m", 1).foreign_lease;
    assert_eq!(earliest, Some((node("n"), Timestamp::from_millis(START_MS + 15_000))));
}
