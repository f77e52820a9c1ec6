//! A power cut at every operation of a run, whatever the disk had written of what was not synced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dq::job::Metadata;
use dq::store::file::{FileOptions, FileView, check_on};
use dq::store::step::Change;
use dq::store::{Durability, StoreError};
use dq_testing::disk::{Fate, Operation, SimulatedDisk};

use crate::rig::{Rig, copies, job, now, waits};

/// What disks and systems write at once: a sector, and a page.
const BLOCKS: [usize; 2] = [512, 4_096];

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
    /// What the next process finds is one of the states that the callers' knowledge allows, and a view of the directory shows the same.
    fn check(&self, disk: &SimulatedDisk, view: &FileView, what: &str) {
        let is_new = match check_on(disk) {
            Ok(_) => false,
            Err(dq::store::file::CheckError::NoStore { .. }) => true,
            Err(error) => panic!("{what}: {error}"),
        };
        // Before the next process has made the directory there may be nothing to see.
        let seen = (!is_new).then(|| copies(view));
        let mut rig = Rig::open(disk);
        let found = copies(&*rig.store);
        assert_eq!(seen.unwrap_or_default(), found, "{what}: a view sees what the next process finds");
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
        let claims = rig.claims(1);
        assert!(claims[0].token.fence.0 > self.fence, "{what}: the fence {:?} falls", claims[0].token.fence);
        assert_eq!(copies(view), copies(&*rig.store), "{what}: a view follows the next process");
    }
}

pub fn view_of(disk: &SimulatedDisk) -> FileView {
    FileView::on(Arc::new(disk.clone()), "process 7")
}

/// A run of adds, claims, acks, retries and deletes. It ends with the first error, which is that of the disk.
fn run(
    disk: &SimulatedDisk,
    known: &mut Known,
    view: &FileView,
    with: impl FnOnce(&mut FileOptions),
) -> Result<(), StoreError> {
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
        let mut settled = rig
            .settle(vec![(first, Change::Ack, None), (second, Change::Retry(std::time::Duration::ZERO), Some(retry))]);
        if !waits(&mut settled) {
            return Err(now(settled).expect_err("an outcome waits for the sync"));
        }
        rig.store.commit()?;
        now(settled)?;
        known.ended.insert(first.id.to_string());
        known.attempts.insert(second.id.to_string(), attempts.into());
        assert_eq!(copies(view), copies(&*rig.store), "round {round}: a view beside the run");
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
    run(&whole, &mut known, &view_of(&whole), |_| {}).unwrap();
    let killed = whole.copy();
    known.check(&killed, &view_of(&killed), "after a kill of the process");
    let operations: u64 = Operation::ALL.iter().map(|operation| whole.count(*operation)).sum();
    assert!(whole.count(Operation::Rename) > 1, "snapshots are taken");
    assert!(whole.count(Operation::Remove) > 0, "and replace files");
    let mut cuts = 0;
    for (off_at, block) in (0..operations).zip(BLOCKS.into_iter().cycle()) {
        let disk = SimulatedDisk::with_block(block);
        let (mut known, view) = (Known::default(), view_of(&disk));
        disk.off_at(off_at);
        // A snapshot that fails is no error of the run.
        let ran = run(&disk, &mut known, &view, |_| {});
        assert!(ran.is_err() || off_at + 20 > operations, "operation {off_at} of {operations} was not needed");
        let units = disk.units();
        let mut cut = |what: &str, fate: &mut dyn FnMut(usize) -> Fate| {
            let after = disk.cut(fate);
            known.check(
                &after,
                &view_of(&after),
                &format!("blocks of {block}, off at {off_at} of {units} units, {what}"),
            );
            cuts += 1;
        };
        for kept in 0..=units {
            cut(&format!("the first {kept}"), &mut |unit| if unit < kept { Fate::Kept } else { Fate::Lost });
        }
        for seed in 0..12 {
            let fates = [Fate::Kept, Fate::Lost, Fate::Garbled];
            cut(&format!("seed {seed}"), &mut |unit| fates[(drawn(seed, unit) % 3) as usize]);
        }
        // Only the process was killed, and the view has stayed.
        disk.off_at(u64::MAX);
        known.check(&disk, &view, &format!("killed at {off_at}"));
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
