//! Steps that change more than a frame of the journal holds.

use dq::store::file::check_on;
use dq::store::step::NoteVerdict;
use dq::store::{AddOutcome, BatchAnswer};
use dq_testing::disk::{Fate, SimulatedDisk};

use crate::rig::{Rig, job, key};

#[test]
fn a_step_of_many_large_rows_is_split_and_survives_as_a_whole_once_it_is_confirmed() {
    let disk = SimulatedDisk::new();
    let with = |options: &mut dq::store::file::FileOptions| {
        (options.segment_bytes, options.snapshot_bytes) = (64 << 20, 1 << 40);
    };
    let mut rig = Rig::try_open(&disk, with).unwrap();
    let payload = format!("\"{}\"", "x".repeat(256 << 10));
    let ids: Vec<_> = (0..250).map(|n| n.to_string()).collect();
    let added = rig.add_all(ids.iter().map(|id| job(id, &payload)).collect());
    let BatchAnswer::Done(outcomes) = rig.confirmed(added) else { panic!("the batch is not late") };
    assert_eq!(outcomes, vec![AddOutcome::Added; 250], "the step has more than 60 MiB");
    rig.added(&["another"]);
    drop(rig);
    let cut = disk.cut(|_| Fate::Lost);
    let checked = check_on(&cut).unwrap();
    assert_eq!(checked.topics[0].counts.delayed, 251);
    assert!(checked.frames > 60, "{} frames", checked.frames);
    let reopened = Rig::try_open(&cut, with).unwrap();
    assert!(ids.iter().all(|id| reopened.get(&[id])[0].as_ref().unwrap().record.as_bytes().len() > 256 << 10));
}

#[test]
fn the_largest_row_fits_a_frame() {
    let disk = SimulatedDisk::new();
    let mut rig = Rig::try_open(&disk, |options| options.snapshot_bytes = 1 << 40).unwrap();
    // A running job of 16 MiB with a replacement of 16 MiB, which is one row.
    let payload = format!("\"{}\"", "x".repeat((16 << 20) - 2));
    drop(rig.add_all(vec![job("a", &payload)]));
    let claim = rig.claims(1).remove(0);
    let replaced = rig.add_all(vec![job("a", &payload)]);
    rig.confirmed(replaced);
    // A dump goes on, so the next change of the row logs it whole.
    rig.store.rows().unwrap().begin_dump(&key()).unwrap();
    let (written, isolated) = (disk.written(), rig.isolate(&claim));
    assert_eq!(rig.confirmed(isolated).notes, Some(vec![NoteVerdict::Done]));
    assert!(disk.written() - written > 32 << 20, "{} bytes", disk.written() - written);
    let reopened = Rig::open(&disk.copy());
    let row = reopened.store.rows().unwrap().view(&key()).jobs.remove(&claim.id).unwrap();
    assert!(row.replacement.is_some() && row.row.unwrap().isolation.is_some());
}
