use super::*;

#[test]
fn an_earlier_head_is_told_to_the_watcher_while_there_is_one() {
    let mut bench = Bench::new();
    bench.add(NewJob { due: Due::After(LEASE), ..job("a") });
    assert_eq!(bench.signals(), [(To::Nodes, Signal::Due)]);
    assert_eq!(bench.transfer("n", 1).role, Some(Role::Watcher));
    bench.add(NewJob { due: Due::After(LEASE * 2), ..job("later") });
    assert_eq!(bench.signals(), []);
    bench.add(job("now"));
    assert_eq!(bench.signals(), [(To::Node(node("n")), Signal::Due)]);
    bench.pass(FALLBACK + ROLE_SLACK + Duration::from_millis(1));
    bench.transfer("m", 10);
    bench.add(job("b"));
    assert_eq!(bench.signals(), [(To::Node(node("m")), Signal::Due)]);
}

#[test]
fn a_watcher_whose_role_has_lapsed_is_not_the_only_one_told() {
    let mut bench = Bench::new();
    bench.transfer("n", 1);
    bench.pass(FALLBACK + ROLE_SLACK + Duration::from_millis(1));
    bench.add(job("a"));
    assert_eq!(bench.signals(), [(To::Nodes, Signal::Due)]);
}

#[test]
fn the_watcher_is_told_the_head_the_standby_a_quarter_of_a_second_later_the_others_the_fallback() {
    let mut bench = Bench::new();
    bench.add(NewJob { due: Due::After(Duration::from_secs(1)), ..job("a") });
    let told = ["n", "m", "o"].map(|name| bench.transfer(name, 1)).map(|answer| (answer.role, answer.sleep));
    let second = Duration::from_secs(1);
    assert_eq!(told, [(Some(Role::Watcher), second), (Some(Role::Standby), second + STANDBY_DELAY), (None, FALLBACK),]);
}

#[test]
fn a_standby_that_becomes_the_watcher_leaves_its_place_to_another() {
    let mut bench = Bench::new();
    bench.transfer("n", 1);
    assert_eq!(bench.transfer("m", 1).role, Some(Role::Standby));
    bench.topic.wake(&node("n"));
    assert_eq!(bench.transfer("m", 1).role, Some(Role::Watcher));
    assert_eq!(bench.transfer("o", 1).role, Some(Role::Standby));
}

#[test]
fn a_node_that_stops_or_cannot_take_what_is_due_frees_its_role_and_says_so() {
    let mut bench = Bench::new();
    bench.add(job("a"));
    bench.transfer("n", 0);
    bench.topic.wake(&node("n"));
    bench.after();
    assert_eq!(bench.signals(), [(To::Nodes, Signal::Due)]);
    assert_eq!(bench.transfer("m", 0).role, Some(Role::Watcher));
    let last_seen = bench.sequence("m");
    bench.topic.release(bench.now, &node("m"), Release { last_seen });
    bench.after();
    assert_eq!(bench.signals(), [(To::Nodes, Signal::Due)]);
}

#[test]
fn pending_commands_are_told_to_every_node() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    bench.command(CommandKind::Cancel, "a", None);
    assert_eq!(bench.signals(), [(To::Nodes, Signal::Command(CommandKind::Cancel, id("a")))]);
    bench.command(CommandKind::Ack, "a", Some(Fence(1)));
    assert_eq!(bench.signals(), []);
}

#[test]
fn the_earliest_lease_of_another_node_is_told() {
    let mut bench = Bench::new();
    bench.run("n", job("a"));
    assert_eq!(bench.transfer("n", 1).foreign_lease, None);
    let told = bench.transfer("m", 1).foreign_lease;
    assert_eq!(told, Some((node("n"), Timestamp::from_millis(START_MS + 15_000))));
}
