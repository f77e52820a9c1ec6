//! The scripts as the server loads them.

use std::sync::Arc;

use dq::environment::TokioClock;
use dq_tests::redis::Keyspace;

/// A function of Lua has 200 locals at most. What the next feature needs must find room in each script, with the clock of the server and with
/// that of a test.
#[test]
fn every_script_has_room_for_sixty_more_locals() {
    let keyspace = Keyspace::create();
    let mut connection = keyspace.connect();
    let more: Vec<_> = (0..60).map(|n| format!("more_{n}")).collect();
    let mut loaded = 0;
    for store in [keyspace.store(), keyspace.store_under(Arc::new(TokioClock::at(1)))] {
        for script in store.scripts() {
            connection.command(&["SCRIPT", "LOAD", &format!("local {}\n{script}", more.join(", "))]);
            loaded += 1;
        }
    }
    assert!(loaded > 70, "{loaded}");
}
