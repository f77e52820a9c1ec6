//! Fences never fall.

use dq_testing::disk::{Fate, SimulatedDisk};

use crate::rig::{Rig, START, waits};

const HOUR: u64 = 3_600_000_000;

#[test]
fn fences_grow_over_power_cuts_while_the_clock_jumps_back_an_hour_each_time() {
    let (mut disk, mut last, mut waited) = (SimulatedDisk::new(), 0, 0);
    for life in 0..8 {
        let mut rig = Rig::open(&disk);
        rig.clock.set(START - life * HOUR);
        rig.added(&["first", "second", "third"]);
        for n in 0..4 {
            let mut claims = rig.transfer(1);
            if waits(&mut claims) {
                // A fence above what is reserved leaves the store only once the next reservation is synced.
                waited += 1;
                rig.store.commit().unwrap();
            }
            // Claims themselves are never synced, so the next process knows nothing of their fences.
            let Some(claim) = rig.claimed(claims).unwrap().pop() else { break };
            assert!(claim.token.fence.0 > last, "life {life}, claim {n}: fence {} after {last}", claim.token.fence.0);
            last = claim.token.fence.0;
            rig.clock.advance(std::time::Duration::from_secs(1));
        }
        disk = disk.cut(|_| Fate::Lost);
    }
    assert!((1..8).contains(&waited), "a reservation is for many claims: {waited}");
}
