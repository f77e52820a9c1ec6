//! Fences never fall.

use dq_testing::disk::{Fate, SimulatedDisk};

use crate::rig::{Rig, START, waits};

const HOUR: u64 = 3_600_000_000;

#[test]
fn fences_grow_over_power_cuts_while_the_clock_jumps_back_an_hour_each_time() {
    let (mut disk, mut last) = (SimulatedDisk::new(), 0);
    for life in 0..8 {
        let mut rig = Rig::open(&disk);
        rig.clock.set(START - life * HOUR);
        rig.added(&["first", "second", "third"]);
        // The first claim waits for a reservation that is synced; no other claim is ever synced.
        let mut claims = rig.transfer(1);
        assert!(waits(&mut claims), "life {life}: the reservation is not synced");
        let unsynced = Rig::open(&disk.cut(|_| Fate::Lost));
        drop(unsynced);
        rig.store.commit().unwrap();
        for n in 0..3 {
            let claimed = rig.claimed(claims).unwrap();
            let fence = claimed[0].token.fence.0;
            assert!(fence > last, "life {life}, claim {n}: fence {fence} after {last}");
            last = fence;
            rig.clock.set(START - life * HOUR + n * 1_000_000);
            claims = rig.transfer(1);
            if n == 2 {
                break;
            }
        }
        disk = disk.cut(|_| Fate::Lost);
    }
}
