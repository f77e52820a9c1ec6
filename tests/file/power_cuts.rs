//! A power cut at every operation of a run, whatever the disk had written of what was not synced.

use std::collections::{BTreeMap, BTreeSet};

use dq::job::Metadata;
use dq::store::file::{check_on, FileOptions};
use dq::store::step::Change;
use dq::store::{Durability, StoreError};
use dq_testing::disk::{Fate, Operation, SimulatedDisk};

use crate::rig::{Rig, job, now, waits};

/// What callers know.
#[derive(Debug, Default, Clone)]
struct Known {
    /// Adds that were confirmed.
    added: BTreeSet<String>,
    /// Jobs whose end was asked for: acked or deleted.
    ending: BTreeSet<String>,
    /// Ends that were confirmed.
    ended: BTreeSet<String>,
    /// Attempts of confirmed retries.
    attempts: BTreeMap<String, u32>,
    /// Every fence that left the store is at most this.
    fence: u64,
}

impl Known {
    /// What the next process finds is one of the states that the callers' knowledge allows.
    fn judge(&self, disk: &SimulatedDisk, what: &str) {
        match check_on(disk) {
            Ok(_) | Err(dq::store::file::CheckError::NoStore { .. }) => {}
            Err(error) => panic!("{what}: {error}"),
        }
        let mut rig = Rig::open(disk);
        for id in &self.added {
            let found = rig.get(&[id]).remove(0);
            if self.ended.contains(id) {
                assert!(found.is_none(), "{what}: {id} is back");
            } else if !self.ending.contains(id) {
                let found = found.unwrap_or_else(|| panic!("{what}: {id} is lost"));
                let attempts = found.record.metadata().unwrap().attempts;
                let confirmed = self.attempts.get(id).copied().unwrap_or(0);
                assert!(u32::from(attempts) >= confirmed, "{what}: {id} has {attempts} attempts of {confirmed}");
            }
        }
        drop(rig.add("late"));
        let claims = rig.transfer(1);
        rig.store.commit().unwrap();
        let claims = rig.claimed(claims).unwrap();
        assert!(claims[0].token.fence.0 > self.fence, "{what}: the fence {:?} falls", claims[0].token.fence);
    }
}

/// A run of adds, claims, acks, retries and deletes. It ends with the first error, which is that of the disk.
fn run(disk: &SimulatedDisk, known: &mut Known, with: impl FnOnce(&mut FileOptions)) -> Result<(), StoreError> {
    let mut rig = Rig::try_open(disk, with)?;
    for round in 0..12 {
        let ids: Vec<_> = (0..3).map(|n| format!("{round}.{n}")).collect();
        let added = rig.add_all(ids.iter().map(|id| job(id, "a payload of some bytes")).collect());
        let deleted = (round > 0).then(|| format!("{}.0", round - 1));
        known.ending.extend(deleted.clone());
        let delete = deleted.as_ref().map(|id| rig.delete(id));
        rig.store.commit()?;
        now(added)?;
        known.added.extend(ids);
        if let Some(delete) = delete {
            now(delete)?;
            known.ended.extend(deleted);
        }
        let mut claims = rig.transfer(2);
        if waits(&mut claims) {
            rig.store.commit()?;
        }
        let claims = rig.claimed(claims)?;
        known.fence = known.fence.max(claims.iter().map(|claim| claim.token.fence.0).max().unwrap_or(0));
        let [first, second] = &claims[..] else { panic!("two jobs are due") };
        let attempts = second.record.metadata().unwrap().attempts + 1;
        let retry = Metadata { attempts, error: Some("it failed".into()), ..Metadata::default() };
        known.ending.insert(first.id.to_string());
        let mut settled =
            rig.settle(vec![(first, Change::Ack, None), (second, Change::Retry(std::time::Duration::ZERO), Some(retry))]);
        assert!(waits(&mut settled), "an outcome waits for the sync");
        rig.store.commit()?;
        now(settled)?;
        known.ended.insert(first.id.to_string());
        known.attempts.insert(second.id.to_string(), attempts.into());
    }
    Ok(())
}

/// 0 to 2, by a seed and a number.
fn drawn(seed: u64, number: usize) -> u64 {
    let mixed = (seed << 32 | number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33
}

#[test]
fn a_power_cut_at_every_operation_loses_nothing_that_was_confirmed_and_brings_nothing_back() {
    let whole = SimulatedDisk::new();
    let mut known = Known::default();
    run(&whole, &mut known, |_| {}).unwrap();
    known.judge(&whole.copy(), "after a kill of the process");
    let operations: u64 = Operation::ALL.iter().map(|operation| whole.count(*operation)).sum();
    assert!(whole.count(Operation::Rename) > 1, "snapshots are taken");
    assert!(whole.count(Operation::Remove) > 0, "and replace files");
    let mut cuts = 0;
    for off_at in 0..operations {
        let disk = SimulatedDisk::new();
        disk.off_at(off_at);
        let mut known = Known::default();
        // A snapshot that fails is no error of the run.
        let ran = run(&disk, &mut known, |_| {});
        assert!(ran.is_err() || off_at + 20 > operations, "operation {off_at} of {operations} was not needed");
        let units = disk.units();
        for kept in 0..=units {
            let fate = |unit| if unit < kept { Fate::Kept } else { Fate::Lost };
            known.judge(&disk.cut(fate), &format!("off at {off_at}, the first {kept} of {units} units"));
            cuts += 1;
        }
        for seed in 0..12 {
            let fate = |unit| [Fate::Kept, Fate::Lost, Fate::Garbled][(drawn(seed, unit) % 3) as usize];
            known.judge(&disk.cut(fate), &format!("off at {off_at}, seed {seed}"));
            cuts += 1;
        }
    }
    assert!(cuts > 1_000, "only {cuts} cuts");
}

#[test]
fn local_waits_for_the_sync_and_an_interval_does_not() {
    for (durability, waits_for_it) in
        [(Durability::Local, true), (Durability::Interval(std::time::Duration::from_millis(50)), false)]
    {
        let disk = SimulatedDisk::new();
        let mut rig = Rig::try_open(&disk, |options| options.durability = durability).unwrap();
        rig.added(&["synced"]);
        let mut added = rig.add("later");
        assert_eq!(waits(&mut added), waits_for_it, "{durability:?}");
        let cut = Rig::open(&disk.cut(|_| Fate::Lost));
        assert!(cut.has("synced") && !cut.has("later"), "a power cut loses what came since the last sync");
        let killed = Rig::open(&disk.copy());
        assert!(killed.has("synced") && !killed.has("later"), "a kill loses what was not written");
        rig.store.commit().unwrap();
        let cut = Rig::open(&disk.cut(|_| Fate::Lost));
        assert!(cut.has("synced") && cut.has("later"), "{durability:?}");
    }
}
